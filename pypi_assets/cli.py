"""The `pypi-assets` command: the whole way from the index to the lookups without a UI.

A thin skin: it puts the parts together as the settings say, and prints. What is done is decided elsewhere.
"""

import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from pypi_assets import terminal
from pypi_assets.assembly import catalog_from, crawler_from, index_from, limits_from, readers_from, storage_from
from pypi_assets.catalog.answers import answerable_serial, live_files
from pypi_assets.catalog.crawls import followed_index
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.dumps import FULL_DUMP_SHARDS
from pypi_assets.catalog.ledger import complete_serial
from pypi_assets.catalog.projects import find_project
from pypi_assets.catalog.queue import list_failed_visits
from pypi_assets.catalog.range_states import range_statuses
from pypi_assets.catalog.ranges import RangeError
from pypi_assets.catalog.reads import list_failures
from pypi_assets.catalog.rows import project_rows_at, providing_releases
from pypi_assets.crawl.crawler import Crawler, Progress
from pypi_assets.crawl.full import crawl_full
from pypi_assets.crawl.incremental import crawl_incremental
from pypi_assets.crawl.packs import PackError, clean_packs
from pypi_assets.crawl.reading import ReadCounts
from pypi_assets.crawl.reprocess import reprocess, stored_records
from pypi_assets.crawl.retry import retry
from pypi_assets.devindex.commands import devindex
from pypi_assets.distributions.extracts import ExtractError
from pypi_assets.distributions.models import EXTRACTOR_VERSION, DistributionRecord
from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.records import record_to_json
from pypi_assets.distributions.workers import ReaderStartError
from pypi_assets.dumps.full import full_dump
from pypi_assets.dumps.manifest import Manifest
from pypi_assets.dumps.restore import restore_index
from pypi_assets.dumps.rows import DumpDamagedError, as_dumped
from pypi_assets.dumps.writer import write_missing_ranges
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.index.urls import redact
from pypi_assets.leveldbs.datasets import DATASETS
from pypi_assets.leveldbs.input_lists import published_versions
from pypi_assets.leveldbs.manifest import read_published
from pypi_assets.leveldbs.publish import BuildResult, build_version
from pypi_assets.leveldbs.records import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.readers import Answer, Reader, module_answer, project_answer
from pypi_assets.settings import Settings, SettingsError, load_settings
from pypi_assets.status import Status, ask_last_serial, read_status, status_to_json
from pypi_assets.storage.store import Storage, StorageError
from pypi_assets.terminal import local_time, plain, print_facts, print_json, print_json_rows, print_table, say

INTERRUPTED = 130
_SHOWN_COMPLETE_RANGES = 10
_STOPPED = "Stopped. What was done is kept; run the same command again and it goes on from there."
_FAILURES = (
    CatalogError,
    RangeError,
    PackageIndexError,
    StorageError,
    DumpDamagedError,
    LeveldbError,
    PackError,
    ExtractError,
    ReaderStartError,
    OSError,
)
_OUR_FAULTS = (DataError, IntegrityError, ProgrammingError)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:==\s*([^\s,;=<>]+)\s*)?")


class _Commands(click.Group):
    """Turns what can be expected to go wrong into one clear message and an exit code: 1, or 2 for wrong settings."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say(_STOPPED)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read the output has had enough; click ends quietly
            raise
        except SettingsError as error:
            raise _SettingsFailure(_lines(error)) from error
        except DBAPIError as error:
            if isinstance(error, _OUR_FAULTS):
                raise
            raise click.ClickException(f"the database failed: {plain(error.orig)}") from error
        except _FAILURES as error:
            raise click.ClickException(_lines(error)) from error


class _SettingsFailure(click.ClickException):
    exit_code = 2


def _lines(error: Exception) -> str:
    return "\n".join(plain(line) for line in str(error).splitlines())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pypi-assets")
def cli() -> None:
    """Keeps an exact, queryable picture of a Python package index.

    Settings are read from the environment (PYPI_ASSETS_...). Exit codes: 0 done, 1 it could not be done, 2 wrong usage
    or settings. What is asked for and not found is an empty answer, not a failure.
    """


@cli.group()
def crawl() -> None:
    """Bring the catalog up to the index."""


@cli.group()
def dump() -> None:
    """Write data dumps from the catalog."""


@cli.group()
def leveldb() -> None:
    """Build, list and verify the LevelDB versions that lookups read."""


@cli.group()
def lookup() -> None:
    """Ask the newest LevelDB versions; of an earlier serial, the catalog."""


@cli.group()
def failures() -> None:
    """What could not be read or visited, and trying it again."""


@cli.group()
def extracts() -> None:
    """What was kept of each distribution that was read."""


cli.add_command(devindex)

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_AT_SERIAL = click.option(
    "--at-serial", type=click.IntRange(0), help="As of this serial; default: the newest that is published."
)
_DATASET = click.option("--dataset", type=click.Choice(list(DATASETS)), help="Only this dataset; default: each.")


def _command(group: click.Group, name: str, example: str = "") -> Callable[[Callable[..., None]], click.Command]:
    """A subcommand of `group` with an example at the end of its help."""
    path = name if group is cli else f"{group.name} {name}"
    return group.command(name, epilog=f"Example: pypi-assets {path} {example}".rstrip())


def _print_rows(columns: Sequence[str], rows: Iterable[dict[str, Any]], as_json: bool) -> int:
    """Prints rows whole as JSON, or their `columns`; returns how many there were."""
    if as_json:
        return print_json_rows(rows)
    return print_table(columns, ([row[column] for column in columns] for row in rows))


@contextmanager
def _opened_catalog(settings: Settings) -> Iterator[Catalog]:
    catalog = catalog_from(settings)
    try:
        yield catalog
    finally:
        catalog.close()


@contextmanager
def _opened_crawler() -> Iterator[Crawler]:
    settings = load_settings()
    settings.require_contact()
    with (
        _opened_catalog(settings) as catalog,
        index_from(settings, catalog) as index,
        readers_from(settings) as readers,
        terminal.progress_shown() as report,
    ):
        yield crawler_from(settings, index, catalog, storage_from(settings), readers, report)


@_command(cli, "status")
@_JSON
def status_command(as_json: bool) -> None:
    """How things stand: index, catalog, dumps, LevelDB versions, and what to do next."""
    settings = load_settings()
    status = read_status(settings)
    crawl = status.catalog.open_crawl
    expected_end = local_time(crawl.expected_end if crawl else None)
    if as_json:
        for error in (status.index_error, status.storage_error):
            if error:
                say(error)
        last_full_crawl = local_time(status.catalog.last_crawl_completed_at)
        print_json(status_to_json(status, expected_end=expected_end, last_full_crawl=last_full_crawl))
        return
    facts = [("index", f"{redact(settings.index_url)}, serial {plain(status.index_serial)}")]
    facts += [("catalog", _told_catalog(status)), ("distributions", _told_distributions(status))]
    if unexplained := status.catalog.unexplained_changes:
        facts.append(("unexplained", f"{unexplained} changes of files that no event explains; the pages were believed"))
    if crawl is not None:
        told = f"open at serial {crawl.serial}: {crawl.shards_done} of {crawl.shards} shards"
        told += f", {crawl.projects_done} of {crawl.projects} projects, {crawl.projects_per_second:.1f} a second"
        facts.append(("full crawl", f"{told}, expected end {plain(expected_end)}"))
    counts = ", ".join(f"{count} {kind}" for kind, count in status.dump_counts.items())
    facts.append(("dumps", f"{counts}; they reach serial {plain(status.cover.serial or None)}"))
    for name, newest in status.leveldbs.items():
        facts.append((name, f"version {plain(newest.version)}, serial {plain(newest.serial)}"))
    facts.append(("database", make_url(settings.resolved_database_url).render_as_string(hide_password=True)))
    facts.append(("storage", settings.resolved_storage_url))
    print_facts(facts + ([("to do", line) for line in status.to_do()] or [("state", "all is well")]))


def _told_catalog(status: Status) -> str:
    if status.catalog.complete_serial is None:
        return "no full crawl is complete yet"
    told = f"complete up to serial {status.catalog.complete_serial}, exact from {status.catalog.exact_from}"
    return told if status.lag is None else f"{told}, {status.lag} serials behind the index"


def _told_distributions(status: Status) -> str:
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in status.outcomes.items() if count]
    return ": ".join([f"{status.catalog.live_distributions} live", *([", ".join(counts)] if counts else [])])


@_command(crawl, "full")
@click.option(
    "--with-history", is_flag=True, help="Replay the whole changelog first: exact serials from the beginning on."
)
@_JSON
def crawl_full_command(with_history: bool, as_json: bool) -> None:
    """List the index, visit every project and read every distribution; goes on with an open full crawl."""
    with _opened_crawler() as crawler:
        result = crawl_full(crawler, with_history=with_history)
        with crawler.catalog.read() as connection:
            complete = complete_serial(connection)
    answer = {
        "serial": result.crawl.serial,
        "complete_serial": complete,
        "projects": result.listing.projects,
        "missing_projects": list(result.listing.missing),
        "visits_given_up": result.visits.gave_up,
        "reads": asdict(result.reads),
    }
    if result.listing.missing:
        say(f"not on the index: {', '.join(result.listing.missing)}")
    if as_json:
        print_json(answer)
    else:
        click.echo(
            f"full crawl at serial {result.crawl.serial}: {result.listing.projects} projects visited,"
            f" {_told_reads(result.reads)}"
        )
    _tell_failed(result.reads, result.visits.gave_up)


@_command(crawl, "incremental")
@_JSON
def crawl_incremental_command(as_json: bool) -> None:
    """Follow the changelog up to the index's last serial; goes on with ranges that are open."""
    with _opened_crawler() as crawler:
        results = crawl_incremental(crawler)
        with crawler.catalog.read() as connection:
            complete = complete_serial(connection)
    if as_json:
        ranges = [
            {
                "range": result.serials.key,
                "events": result.events.events,
                "unknown_events": result.events.unknown,
                "unexplained_changes": result.unexplained_changes,
                "projects": result.visits.total,
                "visits_given_up": result.visits.gave_up,
                "reads": asdict(result.reads),
            }
            for result in results
        ]
        print_json({"complete_serial": complete, "ranges": ranges})
    elif not results:
        click.echo(f"nothing is new: the catalog is complete up to serial {complete}")
    for result in results:
        if not as_json:
            unknown = f" ({result.events.unknown} of unknown kinds)" if result.events.unknown else ""
            click.echo(
                f"range {result.serials}: {result.events.events} events{unknown}, {result.visits.total} projects"
                f" visited, {_told_reads(result.reads)}"
            )
        if result.unexplained_changes:
            say(f"range {result.serials}: changes of files that no event explains: {result.unexplained_changes}")
        _tell_failed(result.reads, result.visits.gave_up)


def _told_reads(reads: ReadCounts) -> str:
    told = {"read": reads.data, "with errors": reads.errors, "unsupported": reads.unsupported}
    told |= {"vanished": reads.vanished, "given up": reads.gave_up}
    done = ", ".join(f"{count} {name}" for name, count in told.items() if count)
    if not done:
        return "distributions: none to read"
    return (
        f"distributions: {done} ({reads.bytes_fetched} bytes fetched, {reads.requests} requests, {reads.seconds:.1f} s)"
    )


def _tell_failed(reads: ReadCounts, visits: int) -> None:
    if failed := reads.errors + reads.gave_up:
        say(f"distributions that could not be read: {failed}; see `pypi-assets failures list`")
    if visits:
        say(f"projects that could not be visited: {visits}; see `pypi-assets failures list`")


@_command(dump, "full", "--shards 16")
@click.option(
    "--shards",
    type=click.Choice([str(shards) for shards in FULL_DUMP_SHARDS]),
    default="256",
    show_default=True,
    help="How many files; 1 or 16 are enough for a small index.",
)
@_JSON
def dump_full_command(shards: str, as_json: bool) -> None:
    """Dump what is live at the complete serial; goes on with an open dump of so many shards."""
    settings = load_settings()
    with _opened_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings)
        manifest = full_dump(
            catalog, storage, int(shards), lambda written: report(Progress("shards", written, int(shards)))
        )
    _print_dumps([manifest], storage, as_json)


@_command(dump, "incremental")
@_JSON
def dump_incremental_command(as_json: bool) -> None:
    """Dump each complete range that has no dump yet."""
    settings = load_settings()
    with _opened_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings)
        manifests: list[Manifest] = []
        for manifest in write_missing_ranges(catalog, storage):
            manifests.append(manifest)
            report(Progress("dumps", len(manifests), 0))
    _print_dumps(manifests, storage, as_json)
    if not manifests:
        say("every complete range is dumped")


@_command(dump, "restore")
@_JSON
def dump_restore_command(as_json: bool) -> None:
    """Enter into the catalog every committed dump that the storage holds, by its manifest."""
    settings = load_settings()
    with _opened_catalog(settings) as catalog:
        found = restore_index(catalog, storage_from(settings, read_only=True))
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(f"{len(found.restored)} committed dumps are in the catalog")
    for problem in found.damaged:
        say(problem)
    if found.damaged:
        raise click.exceptions.Exit(1)


def _print_dumps(manifests: Sequence[Manifest], storage: Storage, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "kind": manifest.kind.value,
                    "range": manifest.serials.key,
                    "directory": manifest.directory,
                    "shards": manifest.shards,
                    "rows": manifest.rows,
                    "bytes": manifest.size,
                }
                for manifest in manifests
            ]
        )
        return
    for manifest in manifests:
        click.echo(
            f"{manifest.kind.value} dump {manifest.directory}: {manifest.rows} rows in {len(manifest.files)} files,"
            f" {manifest.size} bytes, below {storage.url}"
        )


@_command(leveldb, "update")
@_DATASET
@click.option("--from-scratch", is_flag=True, help="Build from the dumps alone, not on the version before.")
@click.option("--force", is_flag=True, help="Build a version even where nothing is new.")
@_JSON
def leveldb_update_command(dataset: str | None, from_scratch: bool, force: bool, as_json: bool) -> None:
    """Build and publish the next version of each dataset from the dumps."""
    settings = load_settings()
    results: list[BuildResult] = []
    with _opened_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings)
        version = None  # one number for what is built together
        for name in [dataset] if dataset else DATASETS:
            result = build_version(
                name,
                storage=storage,
                catalog=catalog,
                version=version,
                force=force,
                from_scratch=from_scratch,
                write_buffer_bytes=settings.leveldb_write_buffer_bytes,
                work_dir=_private_folder(settings),
                progress=partial(_tell_rows, report, name),
            )
            version = result.version if result.published else version
            results.append(result)
    if as_json:
        print_json([asdict(result) for result in results])
        return
    for result in results:
        if not result.published:
            click.echo(f"{result.dataset}: {result.reason}")
            continue
        base = f"built on version {result.base_version}" if result.base_version else "built from scratch"
        why = f" ({result.rebuilt_because})" if result.rebuilt_because else ""
        click.echo(
            f"{result.dataset} version {result.version} at serial {result.serial}: {base}{why}, {result.rows} rows"
            f" applied, {result.written} records written"
        )


def _tell_rows(report: Callable[[Progress], None], dataset: str, rows: int) -> None:
    report(Progress(f"{dataset} rows", rows, 0))


@_command(leveldb, "list")
@_DATASET
@_JSON
def leveldb_list_command(dataset: str | None, as_json: bool) -> None:
    """List the published versions, newest last."""
    storage = storage_from(load_settings(), read_only=True)
    rows = [
        _listed_version(storage, name, version)
        for name in ([dataset] if dataset else DATASETS)
        for version in published_versions(storage, name)
    ]
    columns = ("dataset", "version", "serial", "records", "bytes", "base_version", "problem")
    if not _print_rows(columns, rows, as_json):
        say("no version is published: run `pypi-assets leveldb update`")


def _listed_version(storage: Storage, dataset: str, version: int) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(("serial", "records", "bytes", "base_version", "dumps", "problem"))
    row = {"dataset": dataset, "version": version} | row
    try:
        manifest = read_published(storage, dataset, version).manifest
    except LeveldbError as error:
        return row | {"problem": str(error)}
    return row | {
        "serial": manifest.serial,
        "records": sum(manifest.counts.values()),
        "bytes": sum(file.size for file in manifest.files),
        "base_version": manifest.base_version,
        "dumps": list(manifest.cover),
    }


@_command(leveldb, "verify", "--dataset modules --version 3 --deep")
@_DATASET
@click.option("--version", type=click.IntRange(1), help="Which version; default: the newest.")
@click.option("--deep", is_flag=True, help="Also rebuild it from its input list and compare record by record.")
@_JSON
def leveldb_verify_command(dataset: str | None, version: int | None, deep: bool, as_json: bool) -> None:
    """Check published versions record by record; exits with 1 where something is wrong."""
    settings = load_settings()
    storage = storage_from(settings, read_only=True)
    found = []
    for name in [dataset] if dataset else DATASETS:
        published = published_versions(storage, name)
        if not published:
            raise LeveldbDamagedError(f"no version of {name} is published: run `pypi-assets leveldb update`")
        found.append(
            verify(name, version or published[-1], storage=storage, deep=deep, work_dir=_private_folder(settings))
        )
    if as_json:
        print_json([asdict(one) | {"ok": one.ok} for one in found])
    for one in found:
        if one.ok and not as_json:
            click.echo(f"{one.dataset} version {one.version}: {one.records} records, all as they must be")
        for problem in one.problems:
            say(f"{one.dataset} version {one.version}: {problem}")
    if not all(one.ok for one in found):
        raise click.exceptions.Exit(1)


@_command(lookup, "module", "yaml")
@click.argument("name")
@_AT_SERIAL
@_JSON
def lookup_module_command(name: str, at_serial: int | None, as_json: bool) -> None:
    """Which projects provide the module NAME, and in which versions."""
    if not name.strip():
        raise click.BadParameter("a module has a name, like google.auth", param_hint="NAME")
    settings = load_settings()
    if at_serial is not None:
        with _opened_catalog(settings) as catalog:
            serial = answerable_serial(catalog, at_serial)
            answer = module_answer(serial, providing_releases(catalog, serial, name))
    else:
        storage = storage_from(settings, read_only=True)
        with open_latest("modules", storage, _private_folder(settings), check_hashes=False) as reader:
            _tell_skipped(reader)
            answer = reader.module(name)
    _print_answer(answer, f"no project provides the module {name}", ("project", "versions"), as_json)


@_command(lookup, "project", "requests==2.32.3")
@click.argument("requirement", metavar="NAME[==VERSION]")
@_AT_SERIAL
@_JSON
def lookup_project_command(requirement: str, at_serial: int | None, as_json: bool) -> None:
    """What the distributions of a project, or of one version of it, require."""
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise click.BadParameter(f"{requirement!r} is neither a project's NAME nor NAME==VERSION")
    settings = load_settings()
    if at_serial is not None:
        with _opened_catalog(settings) as catalog:
            serial = answerable_serial(catalog, at_serial)
            answer = project_answer(serial, map(as_dumped, project_rows_at(catalog, serial, match[1])), match[2])
    else:
        storage = storage_from(settings, read_only=True)
        with open_latest("depgraph", storage, _private_folder(settings), check_hashes=False) as reader:
            _tell_skipped(reader)
            answer = reader.project(match[1], match[2])
    nothing = f"no distribution of {match[1]}{f' in version {match[2]}' if match[2] else ''} is known"
    columns = ("filename", "version", "requires_python", "yanked", "requires_dist")
    _print_answer(answer, nothing, columns, as_json)


def _private_folder(settings: Settings) -> Path:
    """Where LevelDBs of a remote store are built and kept for reading."""
    return settings.resolved_home / "leveldbs"


def _tell_skipped(reader: Reader) -> None:
    for skipped in reader.skipped:
        say(f"not used: {skipped}")


def _print_answer(answer: Answer, nothing: str, columns: Sequence[str], as_json: bool) -> None:
    if not answer.results:
        say(f"{nothing} as of serial {answer.serial}")
    elif answer.version is None:
        say(f"as of serial {answer.serial}, from the catalog")
    _print_rows(columns, answer.results, as_json)


@_command(cli, "files", "--project requests --at-serial 1200")
@click.option("--project", help="Only the files of this project.")
@click.option("--at-serial", type=click.IntRange(0), help="As of this serial; default: the complete serial.")
@_JSON
def files_command(project: str | None, at_serial: int | None, as_json: bool) -> None:
    """The distributions that are live in the catalog."""
    with _opened_catalog(load_settings()) as catalog:
        serial = answerable_serial(catalog, at_serial)
        with catalog.read() as connection:
            known = project is None or find_project(connection, project) is not None
        if not known:
            say(f"the catalog knows no project {project}")
        columns = ("filename", "project", "version", "kind", "yanked", "outcome", "live_since")
        count = _print_rows(columns, (asdict(file) for file in live_files(catalog, serial, project)), as_json)
        if known and not count:
            say(f"no distribution {f'of {project} ' if project else ''}is live at serial {serial}")


@_command(cli, "ranges", "--all")
@click.option("--all", "all_ranges", is_flag=True, help="Also those that have long been complete.")
@_JSON
def ranges_command(all_ranges: bool, as_json: bool) -> None:
    """The serial ranges of the ledger: complete, running, failed, waiting, and what is missing up to the index."""
    settings = load_settings()
    with _opened_catalog(settings) as catalog:
        with catalog.read() as connection:
            followed = followed_index(connection)
        index_serial, problem = ask_last_serial(settings, followed)
        with catalog.read() as connection:
            found = range_statuses(
                connection, index_serial=index_serial, complete=None if all_ranges else _SHOWN_COMPLETE_RANGES
            )
    columns = ("range", "state", "projects", "visited", "gave_up", "asked", "completed", "error")
    rows = [
        {
            "range": status.serials.key,
            "state": status.state.value,
            "projects": status.visits.total,
            "visited": status.visits.done,
            "gave_up": status.visits.gave_up,
            "asked": local_time(status.asked_at),
            "begun": local_time(status.begun_at),
            "completed": local_time(status.completed_at),
            "error": status.error_text,
        }
        for status in found
    ]
    if problem:
        say(problem)
    if not _print_rows(columns, rows, as_json):
        say("there are no ranges: run `pypi-assets crawl full` first")


@_command(failures, "list")
@_JSON
def failures_list_command(as_json: bool) -> None:
    """Distributions that could not be read, and projects that could not be visited."""
    with _opened_catalog(load_settings()) as catalog, catalog.read() as connection:
        found = list_failures(connection) + list_failed_visits(connection)
    columns = ("project", "filename", "outcome", "kind", "attempts", "text")
    if not _print_rows(columns, (asdict(failure) for failure in found), as_json):
        say("nothing has failed")


@_command(failures, "retry", '--kind "corrupt archive" --project requests')
@click.option("--kind", help="Only failures of this kind, as `failures list` shows it.")
@click.option("--project", help="Only failures of this project.")
@_JSON
def failures_retry_command(kind: str | None, project: str | None, as_json: bool) -> None:
    """Try again what failed, and what is pending; as patient as a crawl."""
    with _opened_crawler() as crawler:
        result = retry(crawler, kind, project)
    if as_json:
        print_json(asdict(result))
    else:
        click.echo(
            f"tried {result.retried_reads} reads and {result.retried_visits} visits again: {_told_reads(result.reads)}"
        )
    if (kind or project) and not result.retried_reads and not result.retried_visits:
        say("nothing of that has failed; see `pypi-assets failures list`")
    _tell_failed(result.reads, result.visits_given_up)


@_command(cli, "reprocess", "--project requests")
@click.option(
    "--older-than-version",
    type=click.IntRange(1),
    default=EXTRACTOR_VERSION,
    show_default=True,
    help="Records that an extractor older than this made; the default is the one of today.",
)
@click.option("--project", help="Only the records of this project.")
@_JSON
def reprocess_command(older_than_version: int, project: str | None, as_json: bool) -> None:
    """Make records anew from what was kept of the distributions, without a request to the index.

    The next full dump tells what changed.
    """
    settings = load_settings()
    with (
        _opened_catalog(settings) as catalog,
        readers_from(settings) as readers,
        terminal.progress_shown() as report,
    ):
        result = reprocess(
            catalog,
            storage_from(settings),
            readers,
            older_than=older_than_version,
            project=project,
            at_once=os.cpu_count() or 1,
            report=report,
        )
    if as_json:
        print_json(asdict(result))
    else:
        click.echo(
            f"{result.looked_at} records made anew in {result.seconds:.1f} s, {result.changed} of them changed:"
            f" {result.gained_modules} gained modules, {result.lost_modules} lost modules,"
            f" {result.changed_requirements} have other requirements, {result.changed_errors} another error or none"
        )
        for sort, examples in result.examples.items():
            for example in examples:
                click.echo(f"  {sort}: {plain(example)}")
    if result.overtaken:
        say(f"read anew meanwhile, and left as they are: {result.overtaken}")
    if result.unread:
        say(f"no record could be made of {result.unread}: they keep theirs; broken packs: {len(result.broken_packs)}")
    for problem in result.problems:
        say(problem)


@_command(extracts, "clean", "--dry-run")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@_JSON
def extracts_clean_command(dry_run: bool, as_json: bool) -> None:
    """Delete the packs that no distribution points to and that are older than a day."""
    settings = load_settings()
    with _opened_catalog(settings) as catalog:
        cleaned = clean_packs(catalog, storage_from(settings), dry_run=dry_run)
    if as_json:
        print_json(asdict(cleaned))
        return
    done = "would be deleted" if dry_run else "deleted"
    click.echo(f"{len(cleaned.deleted)} of {cleaned.packs} packs {done}, {cleaned.size} bytes")


@_command(cli, "inspect", "dist/demo-1.0-py3-none-any.whl dist/demo-1.0.tar.gz")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--from-extract", is_flag=True, help="FILES are names of distributions: read their stored extracts.")
@click.option("--project", help="With --from-extract: the project that they belong to, if the names do not tell.")
@_JSON
def inspect_command(files: tuple[Path, ...], from_extract: bool, project: str | None, as_json: bool) -> None:
    """Read distributions from disk, without running anything of them, and print their records."""
    if from_extract:
        _inspect_extracts([str(filename) for filename in files], project, as_json)
        return
    if project is not None:
        raise click.BadParameter("it is read only with --from-extract", param_hint="--project")
    for path in files:
        if not path.is_file():
            raise click.BadParameter(f"file {str(path)!r} does not exist", param_hint="FILES")
    limits = limits_from(load_settings())
    unread = 0

    def records() -> Iterator[DistributionRecord]:
        nonlocal unread
        for path in files:
            try:
                yield read_path(path, limits=limits)
            except OSError as error:
                unread += 1
                say(f"cannot read {path}: {error.strerror or error}")

    if as_json:
        print_json_rows(record_to_json(record) for record in records())
    else:
        for record in records():
            _print_record(record_to_json(record))
    if unread:
        raise click.exceptions.Exit(1)


def _inspect_extracts(filenames: Sequence[str], project: str | None, as_json: bool) -> None:
    settings = load_settings()
    with _opened_catalog(settings) as catalog:
        storage = storage_from(settings, read_only=True)
        found = [one for filename in filenames for one in stored_records(catalog, storage, filename, project)]
    rows = [
        record_to_json(record)
        | {"of_project": place.project, "pack": place.pack, "offset": place.offset, "extract_bytes": place.length}
        for place, record in found
    ]
    if as_json:
        print_json_rows(rows)
        return
    for row in rows:
        _print_record(row)


def _print_record(fields: dict[str, object]) -> None:
    shown = fields | {"error": ": ".join(fields["error"].values()) if isinstance(fields["error"], dict) else None}
    empty: tuple[object, ...] = (None, [], {}, False)
    print_facts((name.replace("_", " "), value) for name, value in shown.items() if value not in empty)
    click.echo()


def main() -> None:
    """The entry point. A first Ctrl-C waits for the requests that are under way, a second one does not."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, stop_at_once)
        raise KeyboardInterrupt

    def stop_at_once(_number: int, _frame: FrameType | None) -> None:
        terminal.show_cursor()
        say(_STOPPED)
        os._exit(INTERRUPTED)  # safe at any moment; an ordinary exit would wait for the threads

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    cli()
