"""The commands `pypi-assets admin ...`, which operators seldom need. Its views are in `admin_views.py`."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets import terminal
from pypi_assets.cli.admin_views import (
    indexes_command,
    ranges_command,
    settings_command,
    where_command,
)
from pypi_assets.cli.contexts import existing_catalog, opened_catalog, opened_crawler, opened_readers
from pypi_assets.cli.crawl import reads_to_json, report_failed
from pypi_assets.cli.inspect import inspect_command
from pypi_assets.cli.options import JSON, command
from pypi_assets.cli.report import report_group
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.terminal import counted, plain, print_json, print_message

if TYPE_CHECKING:
    from pypi_assets.extracts.reprocess import Reprocessed

_SHOWN_FILES = 3
_METRICS_EVERY_S = 60.0
_GREATEST_PORT = 65_535


@click.group("admin")
def admin_group() -> None:
    """Maintain and inspect a catalog and its storage."""


for _command in (
    inspect_command,
    ranges_command,
    where_command,
    indexes_command,
    settings_command,
    report_group,
):
    admin_group.add_command(_command)


@command("migrate", group=admin_group)
@JSON
def migrate_command(as_json: bool) -> None:
    """Upgrade the tables of the catalog.

    Run it after an upgrade of pypi-assets; it does nothing if the tables are up to date. Stop all processes that use
    the catalog, and back it up first.
    """
    from pypi_assets.catalog.database import migrate_catalog
    from pypi_assets.settings import load_settings

    before, after = migrate_catalog(load_settings().resolved_database_url)
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        click.echo(f"the catalog has schema {after}, which is up to date")
    else:
        click.echo(f"the catalog has schema {after} now" + (f", and had {before}" if before else ", and had no tables"))


@command("restore", group=admin_group)
@JSON
def dump_restore_command(as_json: bool) -> None:
    """Register the dumps of the storage in the catalog.

    Use it for a catalog that has lost its dumps. It reads their manifests.
    """
    from pypi_assets.catalog.coordination.leases import lease
    from pypi_assets.components import storage_from
    from pypi_assets.dumps.restore import restore_index
    from pypi_assets.settings import load_settings
    from pypi_assets.upkeep.deletion import LEASE_NAME

    settings = load_settings()
    with opened_catalog(settings) as catalog, lease(catalog, LEASE_NAME):  # nothing is deleted at the same time
        found = restore_index(catalog, storage_from(settings, read_only=True))
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(f"complete dumps in the catalog: {len(found.restored)}")
    for problem in found.damaged:
        print_message(problem)
    if found.damaged:
        raise click.exceptions.Exit(1)


@command("prune", "--dry-run", group=admin_group)
@click.option("--dry-run", is_flag=True, help="Only report the rows that would be deleted.")
@JSON
def prune_command(dry_run: bool, as_json: bool) -> None:
    """Delete old rows of the catalog.

    Visits are kept for PYPI_ASSETS_VISITS_KEPT_DAYS, and attempts to read for PYPI_ASSETS_READ_ATTEMPTS_KEPT_DAYS. Rows
    that no file refers to any more are deleted as well. A run checks a bounded number of rows, and the next run
    continues.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.settings import load_settings
    from pypi_assets.upkeep.deletion import DeletionChain, kept_from

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        rows = DeletionChain(catalog, storage_from(settings, catalog), kept_from(settings)).clean_rows(dry_run=dry_run)
    if as_json:
        print_json(rows)
        return
    done = "would be deleted" if dry_run else "deleted"
    for table, count in rows.items():
        click.echo(f"{table}: {count} {done}")


@admin_group.group("extracts")
def extracts_group() -> None:
    """Manage the stored extracts of distributions.

    An extract is the stored part of a distribution's file. `pypi-assets admin reprocess` makes the record from it
    again, without a download. A pack is a file that holds many extracts.
    """


@command("clean", "--dry-run", group=extracts_group, within="admin")
@click.option("--dry-run", is_flag=True, help="Only report the packs that would be deleted.")
@JSON
def extracts_clean_command(dry_run: bool, as_json: bool) -> None:
    """Delete orphaned packs.

    A pack is orphaned if no distribution refers to it and it is older than a day.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.settings import load_settings
    from pypi_assets.upkeep.deletion import DeletionChain, kept_from

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        chain = DeletionChain(catalog, storage_from(settings, catalog), kept_from(settings))
        cleaned = chain.clean_packs(dry_run=dry_run)
    if as_json:
        print_json(asdict(cleaned))
        return
    done = "would be deleted" if dry_run else "deleted"
    click.echo(f"{len(cleaned.deleted)} of {counted(cleaned.packs, 'pack')} {done}, {cleaned.size} bytes")


@command("reprocess", "--project requests", group=admin_group)
@click.option(
    "--older-than-version",
    type=click.IntRange(1),
    default=EXTRACTOR_VERSION,
    show_default=True,
    help="Reprocess only records that an older extractor version made; default: the current version.",
)
@click.option("--project", help="Reprocess only the records of this project.")
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="Number of processes, about 100 MB each; default: one per core, at most 8.",
)
@click.option(
    "--read-again",
    is_flag=True,
    help="Queue files without a usable extract, to be downloaded again by `pypi-assets failures retry`.",
)
@JSON
def reprocess_command(
    older_than_version: int, project: str | None, processes: int | None, read_again: bool, as_json: bool
) -> None:
    """Make records from stored extracts again.

    Run it after an upgrade that changes how files are read. No file is downloaded. The next full dump contains the
    changes: run `pypi-assets dump redo` to write it.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.extracts.reprocess import PROCESSES, reprocess
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with (
        existing_catalog(settings) as catalog,
        opened_readers(settings) as readers,
        terminal.progress_shown() as report,
    ):
        result = reprocess(
            catalog,
            storage_from(settings, catalog),
            readers,
            older_than=older_than_version,
            project=project,
            processes=processes or PROCESSES,
            read_again=read_again,
            report=report,
        )
    if as_json:
        print_json(asdict(result))
    else:
        click.echo(
            f"{counted(result.looked_at, 'record')} made again in {result.seconds:.1f} s, {result.changed} of them"
            f" changed: {result.gained_modules} gained modules, {result.lost_modules} lost modules,"
            f" {result.changed_requirements} have other requirements, {result.changed_errors} another error or none"
        )
        for sort, examples in result.examples.items():
            for example in examples:
                click.echo(f"  {sort}: {plain(example)}")
    if result.overtaken:
        print_message(f"skipped, since a crawl re-read them at the same time: {result.overtaken}")
    if result.unread:
        broken = f"broken packs: {len(result.broken_packs)}"
        print_message(f"extracts that cannot be read; their old records stay: {result.unread}; {broken}")
    for problem in result.problems:
        print_message(problem)
    if result.not_supplied:
        first = ", ".join(map(plain, result.not_supplied_files[:_SHOWN_FILES]))
        print_message(
            f"no stored extract can update {counted(result.not_supplied, 'file')}: {first} ...; {_next(result)}"
        )


def _next(result: "Reprocessed") -> str:
    if result.queued:
        return f"{result.queued} are queued: `pypi-assets failures retry` reads them"
    return "`pypi-assets admin reprocess --read-again` queues them, to be read from the index again"


class _Percent(click.FloatRange):
    name = "number"  # for the message about a value that is not a number


@command("audit", "--share 10", group=admin_group)
@click.option(
    "--share",
    type=_Percent(0, 100),
    metavar="PERCENT",
    help="Also visit this share of all projects, longest unvisited first; default: PYPI_ASSETS_AUDIT_SHARE_PERCENT.",
)
@JSON
def audit_command(share: float | None, as_json: bool) -> None:
    """Find drift between the index and the catalog.

    Drift is a difference that no event in the index's changelog explains. The audit compares the serials of all
    projects with the project list, visits the projects that differ and a share of the others, and reports the
    differences.
    """
    from pypi_assets.crawl.index_audit import audit_index
    from pypi_assets.settings import load_settings

    share = load_settings().audit_share_percent if share is None else share
    with opened_crawler() as crawler:
        result = audit_index(crawler, share)
    audit, findings = result.audit, result.audit.findings
    if as_json:
        print_json(
            {
                "serial": audit.serial,
                "share_percent": audit.share_percent,
                "visited": result.visits.done,
                "visits_given_up": result.visits.exhausted,
                "drift": findings.counts,
                "examples": findings.examples,
                "reads": reads_to_json(result.reads),
            }
        )
    else:
        found = ", ".join(f"{count} {cause}" for cause, count in findings.counts.items()) or "no drift"
        click.echo(f"audit at serial {audit.serial}: {counted(result.visits.done, 'project')} visited, {found}")
        for cause, projects in findings.examples.items():
            click.echo(f"  {cause}: {plain(projects)}")
    report_failed(result.reads, result.visits.exhausted)


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _GREATEST_PORT:
        raise click.BadParameter(f"{value} is not HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)


def _in_a_folder(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and not value.absolute().parent.is_dir():
        raise click.BadParameter(f"the folder {value.absolute().parent} does not exist; create it, or choose another")
    return value


@command("metrics", "--listen 127.0.0.1:9464", group=admin_group)
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_in_a_folder,
    help="Write the metrics to this file, and replace it atomically.",
)
@click.option(
    "--listen", metavar="HOST:PORT", callback=_address, help="Serve the metrics at this address until stopped."
)
@click.option(
    "--every",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Measure again every SECONDS until stopped; default with --listen: 60.",
)
def metrics_command(path: Path | None, listen: tuple[str, int] | None, every: float | None) -> None:
    """Print, write or serve metrics for Prometheus.

    They describe the state of every stage, like `pypi-assets status`. Without an option, they are printed once.
    """
    from pypi_assets.metrics import StatusMetrics
    from pypi_assets.settings import load_settings

    taken = StatusMetrics(load_settings())
    taken.take()
    if listen:
        try:
            print_message(f"serving metrics at {taken.listen(*listen)}")
        except OSError as error:
            address = ":".join(map(str, listen))
            reason = f"{error.strerror or error}; choose another address with --listen"
            raise click.ClickException(f"cannot listen on {address}: {reason}") from error
    while True:
        if path:
            taken.write(path)
        elif not listen:
            click.echo(taken.text(), nl=False)
        if not (every or listen):
            return
        time.sleep(every or _METRICS_EVERY_S)
        taken.take()
