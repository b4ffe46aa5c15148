"""The commands `pypi-assets leveldb ...`, which build, list, fetch and verify LevelDB versions."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets import terminal
from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import JSON, command, row_output
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.progress import Progress
from pypi_assets.terminal import Output, counted, print_json, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.leveldbs.versions.publish import BuildResult
    from pypi_assets.storage.store import Storage

_DATASET = click.option(
    "--dataset", type=click.Choice(list(DATASETS)), help="Only this dataset; default: all datasets."
)


@click.group("leveldb")
def leveldb_group() -> None:
    """Build, list, fetch and verify LevelDB versions.

    A LevelDB is a small database in files. Each dataset, such as modules, has numbered versions, each as of a serial.
    Lookups read the newest version.
    """


@command("update", group=leveldb_group)
@_DATASET
@click.option("--from-scratch", is_flag=True, help="Build from the dumps alone, without the previous version.")
@click.option("--force", is_flag=True, help="Build a version even if nothing has changed.")
@JSON
def leveldb_update_command(dataset: str | None, from_scratch: bool, force: bool, as_json: bool) -> None:
    """Build and publish the next version of each dataset.

    It adds the dumps that the last version lacks. Run `pypi-assets dump full` or `pypi-assets dump incremental` first.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.leveldbs.format.leveldb_errors import NotBuiltYetError
    from pypi_assets.leveldbs.versions.publish import build_version
    from pypi_assets.leveldbs.versions.shared_reading import SharedReading
    from pypi_assets.settings import load_settings

    settings = load_settings()
    results: list[BuildResult] = []
    with (
        existing_catalog(settings) as catalog,
        terminal.progress_shown() as report,
        SharedReading([dataset] if dataset else DATASETS) as shared,
    ):
        storage = storage_from(settings, catalog)
        version = None  # versions that are built together get the same number
        for name in shared.names:
            try:
                result = build_version(
                    name,
                    storage=storage,
                    catalog=catalog,
                    version=version,
                    force=force,
                    from_scratch=from_scratch,
                    write_buffer_bytes=settings.leveldb_write_buffer_bytes,
                    memory_bytes=settings.leveldb_memory_bytes,
                    work_dir=settings.leveldbs_dir,
                    progress=partial(_report_rows, report, name),
                    shared=shared,
                )
            except NotBuiltYetError as error:
                if dataset:
                    raise
                print_message(str(error))  # the other datasets are built anyway
                continue
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
            f"{result.dataset} version {result.version} at serial {result.serial}: {base}{why},"
            f" {counted(result.rows, 'row')} applied, {counted(result.written, 'record')} written"
        )


def _report_rows(report: Callable[[Progress], None], dataset: str, rows: int) -> None:
    report(Progress(f"{dataset} rows", rows, 0))


@command("list", group=leveldb_group)
@_DATASET
@row_output
def leveldb_list_command(dataset: str | None, output: Output) -> None:
    """List the published versions, newest last.

    Sizes are in bytes. The row of a version that cannot be read has the problem.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.leveldbs.versions.input_lists import published_versions
    from pypi_assets.leveldbs.versions.missing_version import no_version
    from pypi_assets.settings import load_settings

    storage = storage_from(load_settings(), read_only=True)
    published = {name: published_versions(storage, name) for name in ([dataset] if dataset else DATASETS)}
    rows = [_listed_version(storage, name, version) for name, versions in published.items() for version in versions]
    print_rows(("dataset", "version", "serial", "records", "bytes", "base_version", "problem"), rows, output)
    for name, versions in published.items():
        if not versions:
            print_message(str(no_version(DATASETS[name], storage)))


def _listed_version(storage: "Storage", dataset: str, version: int) -> dict[str, object]:
    from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
    from pypi_assets.leveldbs.versions.leveldb_manifest import read_published

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


@command("fetch", "modules --into modules-leveldb", group=leveldb_group)
@click.argument("dataset", type=click.Choice(list(DATASETS)))
@click.option("--version", type=click.IntRange(1), help="The version to fetch; default: the newest.")
@click.option(
    "--into",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write: a new or empty one, or one that was fetched before.",
)
@JSON
def leveldb_fetch_command(dataset: str, version: int | None, folder: Path, as_json: bool) -> None:
    """Make DIR one LevelDB with the records of a version, for any program that reads LevelDBs.

    Tables are hard links if the storage is on the same disk. Each file is compared with its hash. A DIR that was
    fetched before is replaced by the version; if nothing has changed, it stays. Neither DIR nor its readers can change
    the storage.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.leveldbs.format.leveldb_errors import NoVersionError
    from pypi_assets.leveldbs.versions.fetched_folder import FetchState, fetch_version
    from pypi_assets.leveldbs.versions.input_lists import published_versions
    from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
    from pypi_assets.leveldbs.versions.missing_version import no_version
    from pypi_assets.settings import load_settings

    settings = load_settings()
    storage = storage_from(settings, read_only=True)
    versions = published_versions(storage, dataset)
    if not versions:
        raise no_version(DATASETS[dataset], storage)
    if version is not None and version not in versions:
        raise NoVersionError(
            f"there is no version {version} of {dataset} in {storage.url}: see `pypi-assets leveldb list`"
        )
    published = read_published(storage, dataset, version or versions[-1])
    with terminal.progress_shown() as report:
        numbers, total = count(1), len(published.manifest.files)
        fetched = fetch_version(
            storage,
            published,
            folder,
            settings.leveldbs_dir,
            copied=lambda _: report(Progress(f"{dataset} files", next(numbers), total)),
        )
    if as_json:
        print_json(asdict(fetched))
        return
    result = {
        FetchState.FETCHED: f"{counted(fetched.files, 'file')}, {fetched.linked} of them linked,"
        f" {fetched.bytes} bytes in {fetched.folder}",
        FetchState.UNCHANGED: f"{fetched.folder} is up to date",
        FetchState.IN_USE: f"{fetched.folder} is open in another program, and stays as it is",
    }[fetched.state]
    click.echo(f"{dataset} version {fetched.version} at serial {fetched.serial}: {result}")


@command("verify", "--dataset modules --version 3 --deep", group=leveldb_group)
@_DATASET
@click.option("--version", type=click.IntRange(1), help="The version to check; default: the newest.")
@click.option(
    "--deep", is_flag=True, help="Also rebuild the version from its input list, and compare all records and edges."
)
@JSON
def leveldb_verify_command(dataset: str | None, version: int | None, deep: bool, as_json: bool) -> None:
    """Check published versions record by record.

    It checks the newest version of each dataset, unless options select others. Exits with 1 if a version is corrupt;
    the next `pypi-assets leveldb update` replaces it.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.leveldbs.format.leveldb_errors import NoVersionError
    from pypi_assets.leveldbs.versions.input_lists import published_versions
    from pypi_assets.leveldbs.versions.missing_version import no_version
    from pypi_assets.leveldbs.versions.verify import verify
    from pypi_assets.settings import load_settings

    settings = load_settings()
    storage = storage_from(settings, read_only=True)
    found = []
    for name in [dataset] if dataset else DATASETS:
        published = published_versions(storage, name)
        if not published:
            unpublished = no_version(DATASETS[name], storage)
            if dataset:
                raise unpublished
            print_message(str(unpublished))  # this is not corruption: dumps may lack columns that the dataset needs
            continue
        found.append(verify(name, version or published[-1], storage=storage, deep=deep, work_dir=settings.leveldbs_dir))
    if not found:
        raise NoVersionError("there is no published version to verify")
    if as_json:
        print_json([asdict(one) | {"ok": one.ok} for one in found])
    for one in found:
        if one.ok and not as_json:
            click.echo(f"{one.dataset} version {one.version}: {counted(one.records, 'record')}, all correct")
        for problem in one.problems:
            print_message(f"{one.dataset} version {one.version}: {problem}")
    if not all(one.ok for one in found):
        raise click.exceptions.Exit(1)
