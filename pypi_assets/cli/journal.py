"""Commands that write the journal: every change, in order, in segments with a chain of hashes.

Those that read it are in files of their own, one each.
"""

import click

from pypi_assets import terminal
from pypi_assets.cli.journal_deliver import journal_deliver_command, journal_letters_command
from pypi_assets.cli.journal_prune import journal_prune_command
from pypi_assets.cli.journal_publish import journal_publish_command
from pypi_assets.cli.journal_replay import journal_replay_command
from pypi_assets.cli.journal_tail import journal_consumers_command, journal_tail_command
from pypi_assets.cli.journal_takedown import journal_takedown_command, journal_takedowns_command
from pypi_assets.cli.journal_verify import journal_sign_command, journal_verify_command
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.progress import Progress
from pypi_assets.terminal import print_json, print_message

_STREAMS = ("index", "observed", "content")


@click.group("journal")
def journal_group() -> None:
    """Write, read and check the journal of all changes.

    It has three streams: what the index announced (`index`), what became of files (`observed`), and what they contain
    (`content`). After each `pypi-assets crawl incremental`, `journal write` adds what has changed.
    """


journal_group.add_command(journal_tail_command)
journal_group.add_command(journal_consumers_command)
journal_group.add_command(journal_replay_command)
journal_group.add_command(journal_sign_command)
journal_group.add_command(journal_verify_command)
journal_group.add_command(journal_deliver_command)
journal_group.add_command(journal_letters_command)
journal_group.add_command(journal_publish_command)
journal_group.add_command(journal_takedown_command)
journal_group.add_command(journal_takedowns_command)
journal_group.add_command(journal_prune_command)


@command("write", group=journal_group)
@JSON
def journal_write_command(as_json: bool) -> None:
    """Write what the journal lacks.

    Each serial range that was crawled whole becomes a segment of the streams observed and content; the stream index
    is cut on a fixed grid. The first time takes about as long as a full dump.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.journal.publishing import write_missing
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        written = list(write_missing(catalog, storage, lambda records: report(Progress("records", records, 0))))
    if as_json:
        print_json([{"range": one.serials.key, "records": one.records, "bytes": one.size} for one in written])
        return
    for one in written:
        counts = ", ".join(f"{count:,} {stream}" for stream, count in sorted(one.records.items()))
        print_message(f"{one.serials}: {counts}")
    if not written:
        print_message("every complete range is in the journal")


@command("restart", "index", group=journal_group)
@click.argument("stream", type=click.Choice(_STREAMS))
def journal_restart_command(stream: str) -> None:
    """Begin STREAM again, as its next generation.

    Needed where older events were stored since it was begun (`pypi-assets crawl full --with-history`), or where its
    files were lost. Readers find the new generation by themselves; the files of the old one stay.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.catalog.reports.journal_format import Stream
    from pypi_assets.journal.publishing import begin_generation
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        generation = begin_generation(catalog, storage_from(settings, catalog), Stream(stream))
    print_message(f"generation {generation} of the stream {stream} is begun: `pypi-assets journal write` writes it")
