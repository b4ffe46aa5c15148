"""The command that publishes the journal to Kafka."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.journal_tail import check_consumer
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON
from pypi_assets.errors import SettingsError
from pypi_assets.progress import Progress
from pypi_assets.terminal import print_json, print_json_line, print_message, progress_shown

if TYPE_CHECKING:
    from pypi_assets.journal.kafka import KafkaPublisher, Producer

_POLL_S = 1.0
"""Seconds between two looks for more, with --follow."""
_LONGEST_PAUSE_S = 60.0


@click.command("publish", epilog="Example: pypi-assets journal publish --follow")
@click.option("--follow", is_flag=True, help="Wait for more, until stopped.")
@click.option(
    "--since",
    metavar="CURSOR|SERIAL|DATE",
    help="Where to begin the first time; now: with what comes next. Default: the beginning.",
)
@click.option("--consumer", default="kafka", show_default=True, metavar="NAME", help="Under which name to go on.")
@JSON
def journal_publish_command(*, follow: bool, since: str | None, consumer: str, as_json: bool) -> None:
    """Publish the journal to Kafka, a topic for each stream.

    Goes on where it stopped. The brokers are PYPI_ASSETS_KAFKA_BOOTSTRAP_SERVERS, the topics begin with
    PYPI_ASSETS_KAFKA_TOPIC_PREFIX, and PYPI_ASSETS_KAFKA_PROPERTIES is a file with more properties of the client, such
    as those of TLS. Each record is published at least once. Needs the extra kafka.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.cli.follow import stop_by_signals
    from pypi_assets.journal.kafka import KafkaPublisher, open_producer, patience_of, read_properties
    from pypi_assets.journal.reading import Journal
    from pypi_assets.journal.tailing import SinceError, cursor_since
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
            _follow(publisher, open_again, stopping, as_json=as_json)
            return
        count = publisher.publish()
    if as_json:
        print_json({"messages": count, "consumer": consumer})
    else:
        print_message(f"{count} messages are published")


def _follow(
    publisher: "KafkaPublisher", open_again: Callable[[], "Producer"], stopping: threading.Event, *, as_json: bool
) -> None:
    """Publishes what comes, again after growing pauses where the brokers are not reached, until stopped."""
    from pypi_assets.journal.kafka import KafkaTransientError

    failures = 0
    while not stopping.is_set():
        try:
            count = publisher.publish()
            failures = 0
        except KafkaTransientError as error:
            failures += 1
            print_message(f"{error}; it is tried again")
            stopping.wait(min(2.0**failures, _LONGEST_PAUSE_S))
            publisher.producer = open_again()
            continue
        except KeyboardInterrupt:
            return
        if count and as_json:
            print_json_line({"messages": count})
        elif count:
            print_message(f"{count} messages are published")
        stopping.wait(_POLL_S)
