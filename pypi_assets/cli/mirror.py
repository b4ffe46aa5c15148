"""The commands `pypi-assets mirror ...`, which follow another instance's published files."""

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets import terminal
from pypi_assets.cli.options import JSON, command
from pypi_assets.progress import Progress
from pypi_assets.terminal import counted, print_json, print_json_line, print_message

if TYPE_CHECKING:
    from pypi_assets.journal.replay import Replayed
    from pypi_assets.mirror.following import MirrorRound
    from pypi_assets.mirror.past_catalog import Past, PastFollower
    from pypi_assets.settings import Settings
    from pypi_assets.storage.store import Storage

_LEAST_INTERVAL_S = 1.0


@click.group("mirror")
def mirror_group() -> None:
    """Follow another instance's published files, without crawling.

    A mirror answers look-ups, pages and the Simple index of the latest serial at once, and of earlier serials after it
    has replayed the journal. It never sends a request to the index.
    """


@command("run", "--from https://assets.example.org/storage --follow", group=mirror_group)
@click.option(
    "--from", "url", metavar="URL", required=True, help="Source: https:// (static files), s3://, gs://, az://, file://."
)
@click.option("--follow", is_flag=True, help="Repeat until stopped. Without it, run one round.")
@click.option(
    "--interval",
    "interval_s",
    default=60.0,
    show_default=True,
    type=click.FloatRange(_LEAST_INTERVAL_S),
    help="With --follow: seconds between two rounds.",
)
@click.option(
    "--concurrency", default=4, show_default=True, type=click.IntRange(1, 64), help="Number of files to copy at once."
)
@click.option("--latest-only", is_flag=True, help="Do not replay the journal: there are no answers of earlier serials.")
@click.option("--verify", is_flag=True, help="Check the hashes of all local files as well, and copy files that differ.")
@click.option("--take-over", is_flag=True, help="Write to the storage of a mirror whose home is lost.")
@click.option(
    "--public-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Reject a source whose journal is not signed with this key (PEM).",
)
@JSON
def mirror_run_command(
    url: str,
    interval_s: float,
    concurrency: int,
    public_key: Path | None,
    *,
    follow: bool,
    latest_only: bool,
    verify: bool,
    take_over: bool,
    as_json: bool,
) -> None:
    """Copy new published files of the instance at URL.

    URL is the root of its storage, which contains published.json. Each file is checked against its manifest, and the
    journal against its chain. Files that a stopped run has copied are not copied again.

    Then the journal is replayed into the catalog of the home or of PYPI_ASSETS_DATABASE_URL, for answers of earlier
    serials. With --follow, the replay runs at the same time as the copying.
    """
    from pypi_assets.index.connections import Network
    from pypi_assets.journal.signing import load_public_key
    from pypi_assets.mirror.following import Mirror
    from pypi_assets.mirror.following import follow as keep_following
    from pypi_assets.mirror.mirror_state import identity_of, journal_end
    from pypi_assets.mirror.sources import open_source
    from pypi_assets.settings import load_settings
    from pypi_assets.storage.store import open_storage

    settings = load_settings()
    network = Network(
        proxy=settings.proxy,
        ca_file=str(settings.ca_file) if settings.ca_file else None,
        client_cert=str(settings.client_cert) if settings.client_cert else None,
    )
    source = open_source(url, connections=concurrency, network=network)
    storage = open_storage(settings.resolved_storage_url)
    with ExitStack() as opened:
        opened.enter_context(_alone(settings.resolved_home))
        opened.callback(source.close)
        report = opened.enter_context(terminal.progress_shown())
        mirror = Mirror(
            source,
            storage,
            grace_s=settings.superseded_kept_hours * 3600,
            at_once=concurrency,
            verify=verify,
            cache_dir=settings.leveldbs_dir,
            home=identity_of(settings.resolved_home),
            take_over=take_over,
            public_key=None if public_key is None else load_public_key(public_key),
            progress=lambda files: report(Progress("files", files, 0)),
        )
        if not follow:
            _print_round(mirror.run(), as_json=as_json)
            if not latest_only and journal_end(storage):
                past = _past_of(storage, settings, lambda records: report(Progress("records", records, 0)))
                opened.enter_context(closing(past.catalog))
                _print_past(past.catch_up(), as_json=as_json)
            return
        past_follower = None if latest_only else _past_follower(_past_of(storage, settings), as_json=as_json)

        def after_round(done: "MirrorRound") -> None:
            _print_round(done, as_json=as_json, only_changes=True)
            if past_follower is not None:
                past_follower.wake()

        keep_following(
            mirror,
            interval_s,
            stop=threading.Event(),
            done=after_round,
            failed=lambda error, pause_s: print_message(f"{error}\nThe next round begins in {pause_s:.0f} s."),
        )


def _past_of(storage: "Storage", settings: "Settings", progress: "Callable[[int], None] | None" = None) -> "Past":
    # imported only here, since copying the newest files uses no catalog
    from pypi_assets.components import catalog_from
    from pypi_assets.mirror.past_catalog import Past

    return Past(storage, catalog_from(settings), progress)


def _past_follower(past: "Past", *, as_json: bool) -> "PastFollower":
    """Return a started follower. Its thread may use the catalog until the process ends."""
    from pypi_assets.mirror.past_catalog import PastFollower

    return PastFollower(
        past,
        done=lambda done: _print_past(done, as_json=as_json),
        failed=lambda error: print_message(f"the journal cannot be replayed now: {error}"),
    )


@command("status", group=mirror_group)
@JSON
def mirror_status_command(*, as_json: bool) -> None:
    """Show the files of the mirror, and how it follows its source."""
    from pypi_assets.mirror.mirror_state import mirror_status
    from pypi_assets.settings import load_settings
    from pypi_assets.storage.store import open_storage

    settings = load_settings()
    status = mirror_status(open_storage(settings.resolved_storage_url, read_only=True))
    past = _past(settings)
    if as_json:
        print_json(asdict(status) | {"past_from": past and past[0], "past_to": past and past[1]})
        return
    print_message(f"{status.state}: {status.source}")
    if status.index_url is not None:
        print_message(f"index: {status.index_url}")
        print_message(f"dumps: up to serial {status.dumps_serial}")
    for dataset, version in status.leveldbs.items():
        print_message(f"{dataset}: version {version}")
    for stream, through in status.journal.items():
        print_message(f"journal, {stream}: up to serial {through}")
    print_message("earlier serials: " + (f"{past[0]} to {past[1]}" if past else "none yet"))
    print_message(f"complete since: {_time(status.synced_at)}; last checked: {_time(status.checked_at)}")
    if status.error is not None:
        print_message(f"fails since {_time(status.failing_since)}: {status.error}")


def _past(settings: "Settings") -> tuple[int, int] | None:
    """Return the first and the last serial that the catalog answers for; None if there are none."""
    from pypi_assets.catalog.database import NoCatalogError
    from pypi_assets.catalog.ledger.range_ledger import complete_serial
    from pypi_assets.catalog.reports.moments import first_exact_serial
    from pypi_assets.components import existing_catalog_from

    try:
        catalog = existing_catalog_from(settings)
    except NoCatalogError:
        return None
    with closing(catalog), catalog.read() as connection:
        first, last = first_exact_serial(connection), complete_serial(connection)
    return None if first is None or first > last else (first, last)


def _print_round(done: "MirrorRound", *, as_json: bool, only_changes: bool = False) -> None:
    if only_changes and not (done.files or done.deleted):
        return
    if as_json:
        print_json_line(asdict(done))
        return
    if not done.files:
        print_message(f"nothing is new; dumps reach serial {done.dumps_serial}")
    else:
        print_message(
            f"{counted(done.files, 'file', ',')} ({done.size:,} bytes) copied; dumps reach serial {done.dumps_serial}"
        )
    if done.deleted:
        print_message(f"{counted(done.deleted, 'orphaned file', ',')} deleted")
    if done.unknown_datasets:
        names = ", ".join(done.unknown_datasets)
        print_message(f"not copied, since this version of pypi-assets does not know these datasets: {names}")


def _print_past(done: "Replayed | None", *, as_json: bool) -> None:
    if done is None:
        return
    if as_json:
        print_json_line({"exact_from": done.exact_from, "replayed_to": done.through, "records": done.records})
        return
    print_message(
        f"{counted(done.records, 'record', ',')} replayed; answers for the serials {done.exact_from} to {done.through}"
    )


def _time(at: float | None) -> str:
    from datetime import UTC, datetime

    return "never" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Reject a second run with the same home. The lock ends with the process."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "mirror.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise click.ClickException(f"another process runs the mirror of {home}") from None
        yield
