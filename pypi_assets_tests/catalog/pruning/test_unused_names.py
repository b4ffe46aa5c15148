"""Names of what was deleted long ago are forgotten, and never allocated again."""

import pytest
from sqlalchemy import func, select

from pypi_assets.catalog import pruning
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.pruning import forget_dumps, forget_versions
from pypi_assets.catalog.publications.allocated_names import (
    UnknownVersionError,
    allocate_version,
    allocated_versions,
    attempts,
    begin_build,
)
from pypi_assets.catalog.publications.dump_registry import (
    DumpDroppedError,
    begin_commit,
    mark_committed,
    open_range_dump,
    require_not_dropped,
)
from pypi_assets.catalog.tables import dump_files, dumps
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets_tests.upkeep.simulated_upkeep import Upkeep

DAY_HOURS = 24


def count_rows(upkeep: Upkeep) -> tuple[int, int]:
    with upkeep.catalog.read() as connection:
        counts = (connection.scalar(select(func.count()).select_from(table)) for table in (dumps, dump_files))
        return next(counts) or 0, next(counts) or 0


def test_dropped_dumps_are_forgotten_and_their_names_stay_taken(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "NAMES_AT_A_TIME", 2)
    catalog, storage = upkeep.catalog, upkeep.storage
    for _ in range(5):
        upkeep.dump_range()
    asleep = open_range_dump(catalog, SerialRange(3, 6))
    list(compact(catalog, storage, growth=1))
    upkeep.wait(25)
    upkeep.clean()
    upkeep.dump_range()
    assert count_rows(upkeep) == (9, 8)
    assert forget_dumps(catalog, catalog.clock() - 24 * 3600, ["6-9"]) == 5  # that one's files are still there
    assert count_rows(upkeep) == (4, 4)
    assert forget_dumps(catalog, catalog.clock() - 24 * 3600, []) == 1
    assert forget_dumps(catalog, catalog.clock(), []) == 0  # nothing else is dropped
    assert cover(catalog).directories == ("0-3", "3-18", "18-21")
    for step in (require_not_dropped, mark_committed, begin_commit):
        with pytest.raises(DumpDroppedError):
            step(catalog, asleep)
    again = [write_range(catalog, storage, serials, again=True) for serials in (SerialRange(3, 6), SerialRange(6, 9))]
    assert not {one.directory for one in again} & {"3-6", "3-6.2", "6-9"}
    assert write_range(catalog, storage, SerialRange(18, 21), again=True).directory == "18-21.2"
    assert upkeep.dump_range() == "21-24"
    upkeep.assert_whole()


def test_old_versions_are_forgotten_but_for_the_newest_and_those_with_files(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "NAMES_AT_A_TIME", 2)
    catalog = upkeep.catalog
    for number in range(1, 7):
        assert allocate_version(catalog, 3) == number
        for dataset in ("modules", "depgraph"):
            begin_build(catalog, dataset, number)
    assert forget_versions(catalog, catalog.clock() - 3600, []) == 0
    upkeep.wait(2)
    assert forget_versions(catalog, catalog.clock() - 3600, [("depgraph", "00002")]) == 4
    assert [one.version for one in allocated_versions(catalog)] == [2, 6]
    assert set(attempts(catalog, "modules")) == {"00002", "00006"}
    with pytest.raises(UnknownVersionError):
        begin_build(catalog, "modules", 1)
    assert forget_versions(catalog, catalog.clock(), []) == 1
    assert allocate_version(catalog, 3) == 7
