"""The commands about webhooks: they deliver the journal, and show what could not be delivered."""

import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON
from pypi_assets.terminal import counted, local_time, print_json_rows, print_message, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.publications.journal_deliveries import Letter
    from pypi_assets.journal.delivering import Delivered
    from pypi_assets.journal.reading import Journal
    from pypi_assets.journal.webhooks import Sender, Webhook
    from pypi_assets.settings import Settings

_POLL_S = 1.0
_COLUMNS = ("letter", "webhook", "project", "attempts", "state", "next", "error")


def _example(text: str) -> str:
    return f"Example: pypi-assets journal {text}"


@click.command("deliver", epilog=_example("deliver --follow"))
@click.option("--follow", is_flag=True, help="Go on as more is published, until stopped.")
def journal_deliver_command(*, follow: bool) -> None:
    """Post what is new in the journal to the webhooks of PYPI_ASSETS_WEBHOOKS.

    Each change is posted at least once, and those of one project in order. A post that fails is tried again after
    growing pauses, for a day and a half; then `journal letters` shows it. Any number of processes can run this.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.errors import SettingsError
    from pypi_assets.journal.delivering import deliver
    from pypi_assets.journal.reading import Journal
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
        journal.heads()  # where there is none, that is reported at once
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
    """Serves each webhook in a thread of its own, until one fails with what no pause helps against, or is stopped."""
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
    missed = "" if one.missed is None else f"; what it lacks of the serials {one.missed} was pruned, and is not sent"
    return f"{one.webhook}: {counted(one.received, 'letter')} received{failed}{died}, {one.waiting} waiting{missed}"


@click.command("letters", epilog=_example("letters --dead --json"))
@click.option("--webhook", "name", metavar="NAME", help="Only those of this webhook.")
@click.option("--dead", is_flag=True, help="Only those that are not tried again by themselves.")
@click.option("--resend", is_flag=True, help="Make dead letters due again, which `journal deliver` then posts.")
@click.option("--letter", "letter_id", type=click.IntRange(1), metavar="ID", help="With --resend, only this letter.")
@JSON
def journal_letters_command(
    *, name: str | None, dead: bool, resend: bool, letter_id: int | None, as_json: bool
) -> None:
    """List what webhooks have not received yet, with the reason.

    A letter has changes of one project. Its later letters wait for it, until it is dead.
    """
    from pypi_assets.catalog.publications.journal_deliveries import letters_of, resend_letters
    from pypi_assets.settings import load_settings

    if letter_id is not None and not resend:
        raise click.UsageError("--letter goes with --resend alone")
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
        print_message("no letter is dead" if dead else "no letter waits")


def _consumer(catalog: "Catalog", name: str) -> str:
    """The consumer of the webhook `name`, which can also be named as it is listed."""
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
