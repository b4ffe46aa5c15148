"""The command that shows in which partitions a project is."""

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_rows

_COLUMNS = ("assets", "partition", "file")


@command("where", "requests")
@click.argument("project")
@row_output
def where_command(project: str, output: Output) -> None:
    """Show the partitions and the dump's file that PROJECT is in.

    Partitions follow from the hash of the normalized name, so the project need not be known. The file is that of the
    newest full dump.
    """
    from packaging.utils import canonicalize_name

    from pypi_assets.assembly import storage_from
    from pypi_assets.catalog.observed.projects import project_part_key, project_shard
    from pypi_assets.catalog.publications.dump_files import MOST_SHARDS, DumpKind
    from pypi_assets.dumps.dump_manifest import read_manifest
    from pypi_assets.dumps.dump_paths import file_path, shard_key, shard_of
    from pypi_assets.dumps.full_dump import newest_dump
    from pypi_assets.settings import load_settings

    normalized = canonicalize_name(project)
    settings = load_settings()
    with existing_catalog(settings) as catalog:
        newest, file = newest_dump(catalog, DumpKind.FULL), None
        if newest is not None:
            storage = storage_from(settings, catalog)
            files = {one.shard: one.name for one in read_manifest(storage, newest.directory).files}
            file = storage.uri(file_path(newest.directory, files[shard_of(normalized, newest.shards)]))
    crawled, dumped = project_part_key(project_shard(normalized)), shard_key(shard_of(normalized, MOST_SHARDS))
    rows = [("crawled_projects, crawled_distribution_data", crawled, None), ("full_dump", dumped, file)]
    print_rows(_COLUMNS, [dict(zip(_COLUMNS, row, strict=True)) for row in rows], output)
