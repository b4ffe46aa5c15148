"""A catalog of the size and shape of PyPI matches its events and pages, and each stage can be measured."""

import json
import time
from pathlib import Path

import pytest
from sqlalchemy import func, select

from benchmarks import pypi_size, size_measures
from benchmarks.pypi_size import enter_state, fill_rows, prepare_tables, print_table, run_stage
from benchmarks.size_filling import BulkFill, UnfilledColumnError, make_constraints
from benchmarks.size_measures import STAGES, measure
from benchmarks.size_projects import IndexPlan, plan_index, shape_of
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.tables import distributions, events, projects, releases, snapshots

LARGEST = 600


def filled(url: str, folder: Path) -> IndexPlan:
    plan = plan_index(0.0002, largest=LARGEST)
    (folder / "storage").mkdir()
    prepare_tables(url, folder)
    ended_at = time.time() // 3600 * 3600
    fill_rows(url, folder, plan, ended_at)
    make_constraints(url, folder)
    enter_state(url, plan, ended_at)
    return plan


@pytest.mark.nightly
def test_stages_run_on_a_filled_catalog(
    empty_postgres_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_measures, "RECOMPUTED", 1_000)  # all; the stage fails if any row changes
    for name, few in (
        ("RECOMPUTED_FILES", 1),
        ("REPEATS", 2),
        ("RANGE_EVENTS", 60),
        ("CHANGED_ROWS", 40),
        ("DRIFTING", 3),
    ):
        monkeypatch.setattr(size_measures, name, few)
    plan = filled(empty_postgres_database_url, tmp_path)
    catalog = open_catalog(empty_postgres_database_url)
    with catalog.read() as connection:
        counts = [
            connection.scalar(select(func.count()).select_from(table))
            for table in (projects, releases, distributions, events)
        ]
        differences = connection.scalar(select(func.count()).where(snapshots.c.base_id.is_not(None)))
    catalog.close()
    assert counts == [plan.projects, plan.releases, plan.files, plan.end - plan.start]
    assert differences
    figures = {stage: measure(stage, empty_postgres_database_url, tmp_path, None) for stage in STAGES}
    assert figures["recompute"]["projects"] == plan.projects
    assert figures["sizes"]["tables"]["events"]["rows"] == counts[-1]
    assert figures["full_dump"]["rows"] >= LARGEST
    assert figures["ranges"]["unexplained"] == 0
    assert figures["largest"]["files"] == LARGEST + 2 * size_measures.REPEATS
    assert figures["audit"]["findings"] == {"serial ahead": size_measures.DRIFTING}
    assert set(figures["status"]["status"]) == {"seconds", "processor_s", "server_s"}


def test_stage_with_figures_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = []

    def figures_of(command: list[str]) -> dict[str, object]:
        run.append(command[command.index("--one-stage") + 1])
        return {"full dump": {"seconds": 12.34, "processor_s": 10.0, "server_s": 2.0}, "rows": 7_000, "memory_mb": 80}

    monkeypatch.setattr(pypi_size, "run", figures_of)
    for _ in range(2):
        run_stage("full_dump", 0.1, tmp_path, LARGEST, "postgresql:///", None)
    assert run == ["full_dump"]
    assert json.loads((tmp_path / "full_dump.json").read_text())["rows"] == 7_000
    capsys.readouterr()
    print_table([tmp_path, tmp_path])
    timed = "12.3 (10.0 + 2.000) s, 80 MB"
    assert f"| full dump | {timed} | {timed} | 1.00 |" in capsys.readouterr().out


def test_new_column_without_values_is_an_error(postgres_database_url: str, tmp_path: Path) -> None:
    fill = BulkFill(postgres_database_url, tmp_path, worker=0)
    with pytest.raises(UnfilledColumnError, match=r"projects needs values of .*shard"):
        fill.table("projects", "id", "normalized", "name")
    fill.table("a table that there is not", "id").add(0, 7)
    fill.close()


def test_projects_have_the_skew_of_pypi() -> None:
    plan = plan_index(0.004)
    shapes = [plan.shape(number) for number in range(plan.projects)]
    assert shapes[0].files == 15_000
    assert sum(shape.files > 500 for shape in shapes) == 40
    assert sum(shape.releases for shape in shapes) == plan.releases
    serials = [serial for shape in shapes for unit in plan.units(shape) for serial in range(unit.serial, unit.last + 1)]
    assert sorted(serials) == list(range(plan.start + 1, plan.end + 1))
    for shape in shapes:
        own = [unit.serial for unit in plan.units(shape)]
        assert own == sorted(own)
        assert sum(map(shape.files_of, range(shape.releases))) == shape.files
    assert shape_of(5, 0) == shape_of(5, 0)
    ends = [plan.range_end(number) for number in range(-1, plan.ranges)]
    assert (ends[0], ends[-1]) == (plan.start, plan.end)
    assert ends == sorted(set(ends))
    assert all(plan.range_of(ends[number + 1]) == number for number in range(plan.ranges))
