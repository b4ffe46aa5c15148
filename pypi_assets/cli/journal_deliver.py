"""The commands that send the journal to webhooks and to Kafka, and list undelivered letters."""

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.journal_tail import check_consumer
from pypi_assets.cli.options import JSON, command
from pypi_assets.errors import SettingsError
from pypi_assets.progress import Progress
from pypi_assets.terminal import (
    counted,
    local_time,
    print_json,
    print_json_line,
    print_json_rows,
    print_message,
    print_table,
    progress_shown,
)
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.publications.journal_deliveries import Letter
    from pypi_assets.journal.delivering import Delivered
    from pypi_assets.journal.kafka import KafkaPublisher, Producer
    from pypi_assets.journal.record_reader import Journal
    from pypi_assets.journal.webhooks import Sender, Webhook
    from pypi_assets.settings import Settings

_POLL_S = 1.0
_COLUMNS = ("letter", "webhook", "project", "attempts", "state", "next", "error")


@command("deliver", "--follow", within="journal")
@click.option("--follow", is_flag=True, help="Wait for new changes, until stopped.")
def journal_deliver_command(*, follow: bool) -> None:
    """Post new changes of the journal to the webhooks of PYPI_ASSETS_WEBHOOKS.

    Each change is posted at least once, and changes of one project in order. A failed post is retried after growing
    pauses, for a day and a half; then `journal letters` shows it as dead. Any number of processes can run this command.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.errors import SettingsError
    from pypi_assets.journal.delivering import deliver
    from pypi_assets.journal.record_reader import Journal
    from pypi_assets.journal.webhooks import SETTING, WEBHOOKS_ACCEPTS, parse_webhooks
    from pypi_assets.settings import load_settings

    settings = load_settings()
    webhooks = parse_webhooks(settings.webhooks)
    if not webhooks:
        raise SettingsError(f"{SETTING} is not set; it accepts {WEBHOOKS_ACCEPTS}")
    with ExitStack() as stack:
        catalog = stack.enter_context(existing_catalog(settings))
        journal = Journal(storage_from(settings, catalog, read_only=True))
        sender = _sender(settings)
        stack.callback(sender.close)
        journal.heads()  # reports a missing journal at once
        if follow:
            _follow(catalog, journal, webhooks, sender)
            return
        for one in deliver(catalog, journal, webhooks, sender):
            print_message(_described(one))


def _sender(settings: "Settings") -> "Sender":
    from pypi_assets.index.connections import Network
    from pypi_assets.journal.webhooks import Sender

    ca_file = None if settings.ca_file is None else str(settings.ca_file)
    return Sender(Network(proxy=settings.proxy, ca_file=ca_file), allows_private=settings.webhooks_private)


def _follow(catalog: "Catalog", journal: "Journal", webhooks: "list[Webhook]", sender: "Sender") -> None:
    """Serve each webhook in its own thread, until a thread fails with a permanent error, or until stopped."""
    from pypi_assets.journal.delivering import deliver_to

    is_over = threading.Event()
    errors: list[BaseException] = []

    def serve(webhook: "Webhook") -> None:
        try:
            while not is_over.is_set():
                done = deliver_to(catalog, journal, webhook, sender)
                if done is not None and (done.received or done.failed or done.missed):
                    print_message(_described(done))
                is_over.wait(_POLL_S)
        except BaseException as error:  # noqa: BLE001 - raised in the main thread
            errors.append(error)
            is_over.set()

    threads = [threading.Thread(target=serve, args=(one,), name=one.consumer, daemon=True) for one in webhooks]
    for thread in threads:
        thread.start()
    try:
        is_over.wait()
    finally:
        is_over.set()
        for thread in threads:
            with suppress(RuntimeError):
                thread.join()
    raise errors[0]


def _described(one: "Delivered") -> str:
    failed = f", {one.failed} failed" if one.failed else ""
    died = f", {one.died} abandoned (`pypi-assets journal letters`)" if one.died else ""
    missed = "" if one.missed is None else f"; unsent changes of the serials {one.missed} were pruned"
    return f"{one.webhook}: {counted(one.received, 'letter')} received{failed}{died}, {one.waiting} waiting{missed}"


@command("letters", "--dead --json", within="journal")
@click.option("--webhook", "name", metavar="NAME", help="Only letters to this webhook.")
@click.option("--dead", is_flag=True, help="Only dead letters, which are not retried.")
@click.option("--resend", is_flag=True, help="Queue dead letters again, for `journal deliver` to post.")
@click.option("--letter", "letter_id", type=click.IntRange(1), metavar="ID", help="With --resend: only this letter.")
@JSON
def journal_letters_command(
    *, name: str | None, dead: bool, resend: bool, letter_id: int | None, as_json: bool
) -> None:
    """List letters that webhooks have not received, with the reason.

    A letter has changes of one project. Later letters about the same project wait for it, until it is dead.
    """
    from pypi_assets.catalog.publications.journal_deliveries import letters_of, resend_letters
    from pypi_assets.settings import load_settings

    if letter_id is not None and not resend:
        raise click.UsageError("--letter works only with --resend")
    with existing_catalog(load_settings()) as catalog:
        consumer = None if name is None else _consumer(catalog, name)
        if resend:
            count = resend_letters(catalog, consumer, letter_id)
            if letter_id is not None and not count:
                raise click.UsageError(
                    f"there is no dead letter {letter_id}: `pypi-assets journal letters --dead` lists them"
                )
            print_message(f"{counted(count, 'letter')} will be sent again by `pypi-assets journal deliver`")
            return
        with catalog.read() as connection:
            found = list(letters_of(connection, consumer, dead_only=dead))
    if as_json:
        print_json_rows(map(_json_row, found))
        return
    print_table(_COLUMNS, map(_row, found))
    if not found:
        print_message("there are no dead letters" if dead else "there are no waiting letters")


def _consumer(catalog: "Catalog", name: str) -> str:
    """Return the consumer of a webhook. `name` is the webhook's name or its consumer's name, as listed."""
    from pypi_assets.catalog.publications.journal_deliveries import find_consumer
    from pypi_assets.journal.webhooks import consumer_of

    with catalog.read() as connection:
        for consumer in (consumer_of(name), name):
            if find_consumer(connection, consumer) is not None:
                return consumer
    raise click.UsageError(f"there is no webhook {name!r}: `pypi-assets journal consumers` lists them")


def _json_row(letter: "Letter") -> dict[str, object]:
    import orjson

    return {
        "id": letter.id,
        "consumer": letter.consumer,
        "project": letter.project or None,
        "cursor": letter.cursor,
        "attempts": letter.attempts,
        "is_dead": letter.is_dead,
        "due": utc_text(letter.due_at),
        "error": letter.error_text,
        "changes": orjson.loads(letter.content),
    }


def _row(letter: "Letter") -> tuple[object, ...]:
    return (
        letter.id,
        letter.consumer,
        letter.project,
        letter.attempts,
        "dead" if letter.is_dead else "waiting",
        None if letter.is_dead else local_time(letter.due_at),
        letter.error_text,
    )


_LOOK_EVERY_S = 1.0
"""Seconds between two polls for new records, with --follow."""
_LONGEST_PAUSE_S = 60.0


@command("publish", "--follow", within="journal")
@click.option("--follow", is_flag=True, help="Wait for new records, until stopped.")
@click.option(
    "--since",
    metavar="CURSOR|SERIAL|DATE",
    help="Where to begin the first time; now: with the next record. Default: the beginning.",
)
@click.option(
    "--consumer", default="kafka", show_default=True, metavar="NAME", help="Store the progress under this name."
)
@JSON
def journal_publish_command(*, follow: bool, since: str | None, consumer: str, as_json: bool) -> None:
    """Publish the journal to Kafka, a topic for each stream.

    Continues where it stopped. PYPI_ASSETS_KAFKA_BOOTSTRAP_SERVERS names the brokers, and the names of topics begin
    with PYPI_ASSETS_KAFKA_TOPIC_PREFIX. PYPI_ASSETS_KAFKA_PROPERTIES is a file with more properties of the client, such
    as those for TLS. Each record is published at least once. Needs the extra kafka.
    """
    from pypi_assets.cli.follow import stop_by_signals
    from pypi_assets.components import storage_from
    from pypi_assets.journal.journal_errors import SinceError
    from pypi_assets.journal.kafka import KafkaPublisher, open_producer, patience_of, read_properties
    from pypi_assets.journal.record_reader import Journal
    from pypi_assets.journal.tailing import cursor_since
    from pypi_assets.settings import load_settings

    settings = load_settings()
    if not settings.kafka_bootstrap_servers:
        raise SettingsError("PYPI_ASSETS_KAFKA_BOOTSTRAP_SERVERS is not set: it names the brokers, as HOST:PORT")
    check_consumer(consumer)
    properties = {} if settings.kafka_properties is None else read_properties(settings.kafka_properties)
    with existing_catalog(settings) as catalog, progress_shown() as report, stop_by_signals() as stopping:
        journal = Journal(storage_from(settings, catalog, read_only=True))
        try:
            begin_at = None if since is None else cursor_since(since, journal, catalog)
        except SinceError as error:
            raise click.UsageError(f"--since: {error}") from None

        def note(acknowledged: int) -> None:
            report(Progress("messages", acknowledged, 0))
            if stopping.is_set():
                raise KeyboardInterrupt

        open_again = partial(open_producer, settings.kafka_bootstrap_servers, properties)
        publisher = KafkaPublisher(
            catalog,
            journal,
            open_again(),
            settings.kafka_topic_prefix,
            consumer,
            begin_at,
            note,
            patience_s=patience_of(properties),
        )
        if follow:
            _publish_and_follow(publisher, open_again, stopping, as_json=as_json)
            return
        count = publisher.publish()
    if as_json:
        print_json({"messages": count, "consumer": consumer})
    else:
        print_message(f"{count} messages were published")


def _publish_and_follow(
    publisher: "KafkaPublisher", open_again: Callable[[], "Producer"], stopping: threading.Event, *, as_json: bool
) -> None:
    """Publish new records until stopped. If no broker can be reached, retry after growing pauses."""
    from pypi_assets.journal.kafka import KafkaTransientError

    failures = 0
    while not stopping.is_set():
        try:
            count = publisher.publish()
            failures = 0
        except KafkaTransientError as error:
            failures += 1
            print_message(f"{error}; it will be retried")
            stopping.wait(min(2.0**failures, _LONGEST_PAUSE_S))
            publisher.producer = open_again()
            continue
        except KeyboardInterrupt:
            return
        if count and as_json:
            print_json_line({"messages": count})
        elif count:
            print_message(f"{count} messages were published")
        stopping.wait(_LOOK_EVERY_S)
