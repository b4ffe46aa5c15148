from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.reports.moments import NotExactError
from pypi_assets.resolve.blame import CatalogHistory, Outcomes, all_changes, blame
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.made_index import question
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallCatalog]:
    monkeypatch.setattr("pypi_assets.catalog.reports.moments.has_baseline", lambda _: True)
    small = small_catalog(tmp_path, database_url)
    small.add(2, "app", "1", "app-1-py3-none-any.whl", requires_dist=("Lib>=1",))
    small.add(4, "Lib", "1", "lib-1-py3-none-any.whl")
    small.add(6, "other", "1", "other-1-py3-none-any.whl")
    small.add(8, "Lib", "2", "lib-2-py3-none-any.whl", requires_dist=("six>=2",))
    small.yank(10, "lib-2-py3-none-any.whl")
    small.complete(12)
    yield small
    small.catalog.close()


def test_it_finds_what_happened_in_the_catalog(small: SmallCatalog):
    history = CatalogHistory(small.catalog)
    found = blame(Outcomes(history, question("app")), 4, 9)
    assert found.change is None  # lib 2 cannot be installed, so lib 1 still is
    found = blame(Outcomes(history, question("app", "lib>1")), 4, 12)
    assert found.change is None
    found = blame(Outcomes(history, question("app")), 0, 4)
    assert found.change is not None
    assert (found.change.serial, found.change.projects) == (4, ("lib",))
    [(project, entry)] = history.entries(found.change)
    assert (project, entry.serial, entry.live) == ("Lib", 4, ("lib-1-py3-none-any.whl",))
    assert list(all_changes(Outcomes(history, question("six")), 0, 12)) == []
    assert [one.serial for one in all_changes(Outcomes(history, question("other")), 0, 12)] == [6]


def test_a_serial_without_an_answer_is_refused(small: SmallCatalog):
    with pytest.raises(NotExactError, match=naming(99, 0, 12)):
        blame(Outcomes(CatalogHistory(small.catalog), question("app")), 4, 99)
