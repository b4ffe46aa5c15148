"""Reprocessed records replace the stored ones, whatever form the stored records have."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reads.stored_extracts import (
    count_unsupplied,
    find_extracts,
    make_pending,
    records_older_than,
    store_reprocessed,
    unsupplied_records,
)
from pypi_assets.catalog.reads.stored_json import to_json
from pypi_assets.catalog.tables import distribution_data, distributions, extract_packs
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionKind, DistributionRecord
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

RECORD = DistributionRecord(
    "demo-1.zip",
    DistributionKind.SDIST,
    "demo",
    "1",
    metadata_version="2.1",
    requires_dist=(),
    modules=("demo",),
    summary="One",
    provides_extra=("x",),
    entry_points={"console_scripts": {"demo": "demo:main"}},
    notes=("odd",),
)


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> SmallCatalog:
    """Return a catalog with a file whose record an older extractor wrote and whose extract is in a pack."""
    small = small_catalog(tmp_path, database_url)
    small.add(1, "demo", "1", RECORD.filename, modules=("demo",), requires_dist=())
    small.store([RECORD])
    with small.catalog.write() as connection:
        connection.execute(insert(extract_packs).values(id=1, name="a" * 64, size=100))
        place = {"pack_id": 1, "pack_offset": 50, "pack_length": 10, "extractor_version": EXTRACTOR_VERSION - 1}
        connection.execute(update(distribution_data).values(place))
    return small


def test_reprocessed_record_replaces_the_stored_one(small: SmallCatalog) -> None:
    newer = replace(RECORD, summary="Two", notes=())
    [before] = stream_rows(small.catalog, rows_at(small.catalog, 1))
    with small.catalog.write() as connection:
        [old] = records_older_than(connection, EXTRACTOR_VERSION, None, 10)
        [content] = store_reprocessed(connection, [(old, newer)], []).values()
        assert content.is_like(RECORD)
        assert content.difference(RECORD) == ""
        assert content.difference(replace(RECORD, entry_points=None)) == "entry_points"
    [after] = stream_rows(small.catalog, rows_at(small.catalog, 1))
    changed = {name: after[name] for name in after if to_json(after[name]) != to_json(before[name])}
    assert changed == {"extractor_version": EXTRACTOR_VERSION, "summary": "Two", "notes": []}
    small.catalog.close()


def test_extract_is_found_by_filename(small: SmallCatalog) -> None:
    with small.catalog.read() as connection:
        [place] = find_extracts(connection, RECORD.filename)
        assert (place.project, place.pack_id, place.offset, place.length) == ("demo", 1, 50, 10)
        assert find_extracts(connection, RECORD.filename, "other") == find_extracts(connection, "demo-2.zip") == []
    small.catalog.close()


def test_live_files_with_url_and_older_record_are_found(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    names = [f"demo-{number}.zip" for number in range(6)]
    for name in names:
        small.add(1, "demo", "1", name)
    small.add(1, "other", "1", "other-1.zip")
    small.remove(2, names[0])

    with small.catalog.write() as connection:
        ids = dict(connection.execute(select(distributions.c.filename, distributions.c.id)).all())
        connection.execute(update(distribution_data).values(extractor_version=2))
        for name, values in {
            names[1]: {"outcome": ReadOutcome.UNSUPPORTED},
            names[2]: {"extractor_version": 3},
            names[3]: {"outcome": ReadOutcome.ERROR},
        }.items():
            of_file = distribution_data.c.distribution_id == ids[name]
            connection.execute(update(distribution_data).where(of_file).values(values))
        connection.execute(update(distributions).where(distributions.c.id == ids[names[4]]).values(url=None))

        found = unsupplied_records(connection, 3, limit=10)
        assert [record.filename for record in found] == [names[3], names[5], "other-1.zip"]
        assert [record.distribution_id for record in found] == [ids[record.filename] for record in found]
        assert unsupplied_records(connection, 3, after=found[0].distribution_id, limit=1) == found[1:2]
        assert unsupplied_records(connection, 3, found[2].project_id, limit=10) == found[2:]
        assert (count_unsupplied(connection, 3), count_unsupplied(connection, 3, found[2].project_id)) == (3, 1)
        assert count_unsupplied(connection, 2) == 0

        make_pending(connection, [record.distribution_id for record in found[:2]])
        assert unsupplied_records(connection, 3, limit=10) == found[2:]
    small.catalog.close()
