"""What a file was before it was replaced stays known."""

from pathlib import Path

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.past_generations import keep_past_generations, past_generations_of
from pypi_assets.catalog.tables import distributions
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
