"""What a file was before it was replaced stays known."""

from pathlib import Path

import pytest
from sqlalchemy import select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_rows import requiring_releases, version_yanks_at
from pypi_assets.catalog.reads.past_generations import keep_past_generations, past_generations_of
from pypi_assets.catalog.reports.past_releases import count_dependents, live_files_of
from pypi_assets.catalog.tables import distribution_data, distributions
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> SmallCatalog:
    return small_catalog(tmp_path, database_url)


def test_a_content_is_kept_with_its_facts_and_its_record(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz", modules=("demo",), requires_dist=("base",))
    catalog: Catalog = small.catalog
    with catalog.write() as connection:
        row = connection.execute(select(distributions.c.id, distributions.c.project_id, distributions.c.sha256)).one()
        for _ in range(2):  # it can run again
            keep_past_generations(connection, {row.id: 9})
        keep_past_generations(connection, {})
        [past] = past_generations_of(connection, row.project_id)
    assert (past.filename, past.generation, past.until, past.sha256) == ("demo-1.0.tar.gz", 1, 9, row.sha256)
    assert past.facts["modules"] == ["demo"]
    assert past.facts["requires_dist"] == ["base"]
    assert past.facts["outcome"] == "data"
    assert past.facts["url"] == "https://files.example.org/demo-1.0.tar.gz"
    catalog.close()


def test_whether_installers_took_a_content_is_known_of_the_one_that_counted(small: SmallCatalog) -> None:
    refusals = ("pip skips: odd", "uv skips: odd")
    small.add(3, "demo", "1.0", "demo-1.0.zip", requires_dist=("base",))
    small.add(4, "demo", "2.0", "demo-2.0.zip", requires_dist=("base",), refusals=refusals)
    catalog = small.catalog
    with catalog.write() as connection:
        keep_past_generations(connection, dict.fromkeys(connection.scalars(select(distributions.c.id)), 9))
        data = distribution_data.c
        swapped = update(distribution_data).values(is_rejected=~data.is_rejected)
        connection.execute(swapped)
    small.complete(10)
    for serial, version in ((8, "1.0"), (9, "2.0")):
        assert list(version_yanks_at(catalog, serial, ["demo"])) == [("demo", version, False)], serial
        assert list(requiring_releases(catalog, serial, "base")) == [("demo", version, 0)], serial
        rejected = {one.version for one in live_files_of(catalog, serial, ["demo"]) if one.is_rejected}
        assert rejected == {"1.0", "2.0"} - {version}, serial
        assert count_dependents(catalog, serial, ["base"]) == {"base": 1}
    catalog.close()
