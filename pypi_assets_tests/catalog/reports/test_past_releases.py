"""What a resolution reads of a release is what dumps have of it."""

from pathlib import Path

import pytest
from sqlalchemy import select

from pypi_assets.catalog.publications.dump_rows import project_rows_at
from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reports.past_releases import PastReleases
from pypi_assets.catalog.tables import distribution_data, distributions
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> SmallCatalog:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "Demo", "1.0", "demo-1.0.tar.gz", requires_dist=("base>1",), requires_python=">=3.9")
    small.add(2, "Demo", "1.0", "demo-1.0-py3-none-any.whl", requires_dist=("base>1", "other"))
    small.add(3, "Demo", "2.0", "demo-2.0.tar.gz", modules=None, requires_dist=None)
    small.add(4, "other", "2.0", "other-2.0.tar.gz", requires_dist=())
    small.yank(5, "demo-1.0.tar.gz")
    small.remove(6, "demo-2.0.tar.gz")
    small.unyank(7, "demo-1.0.tar.gz")
    small.complete(9)
    with small.catalog.write() as connection:  # the sdist was replaced at serial 8
        [id_] = connection.scalars(select(distributions.c.id).where(distributions.c.filename == "demo-1.0.tar.gz"))
        keep_past_generations(connection, {id_: 8})
        connection.execute(distributions.update().where(distributions.c.id == id_).values(sha256="99" * 32, size=7))
        connection.execute(
            distribution_data.update()
            .where(distribution_data.c.distribution_id == id_)
            .values(requires_dist_id=None, outcome="error")
        )
    return small


@pytest.mark.nightly
@pytest.mark.parametrize("serial", range(10))
def test_files_are_those_of_dumps_at_each_serial(small: SmallCatalog, serial: int):
    past = PastReleases(small.catalog, serial)
    project = past.project("demo")
    rows = [as_dumped(row) for row in project_rows_at(small.catalog, serial, "demo")]
    if project is None:
        assert not rows
    else:
        assert (project.name, set(project.releases)) == ("Demo", {str(row["version"]) for row in rows})
        found = past.files(project, list(project.releases))
        assert sorted(found, key=lambda one: one["filename"]) == sorted(
            ({name: row[name] for name in found[0]} for row in rows), key=lambda one: one["filename"]
        )
        assert past.files(project, ["1.0"]) == [one for one in found if one["version"] == "1.0"]
    small.catalog.close()


def test_an_unknown_project_has_none(small: SmallCatalog):
    assert PastReleases(small.catalog, 9).project("nothing\0") is None
    small.catalog.close()
