"""Accounts of sizes, comparisons with sdists and lists of releases behind published figures."""

import json
from pathlib import Path

import pytest

from benchmarks.sdist_oracle import Pair, canonical, is_good
from benchmarks.size_account import FILES_AND_EVENTS, print_account, year_of
from benchmarks.size_projects import PROJECTS, RANGES
from pypi_assets.catalog.tables import metadata
from pypi_assets.distributions.record import DistributionKind, DistributionRecord, ModulesGrade

SCALE = 0.01


def account(**added: int) -> dict[str, object]:
    """Return the figures of a year that added this many rows to tables, with two bytes each, also after a REINDEX."""

    def sizes(rows: int, indexes: int) -> dict[str, dict[str, int]]:
        return {
            name: {"table": 8192 + rows * count, "indexes": 8192 + indexes * count, "rows": 7 + rows * count}
            for name, count in added.items()
        }

    whole = {"scale": SCALE, "projects": PROJECTS * SCALE, "ranges": RANGES}
    return whole | {"before": sizes(0, 0), "after": sizes(1, 1), "reindexed": sizes(1, 0)}


def test_year_scales_rows_of_projects_but_not_of_ranges() -> None:
    figures = account(serial_ranges=2_000, visits=1_000)
    visits, ranges = year_of(figures)
    assert (visits.table, visits.rows, visits.size, visits.size_of_indexes) == ("visits", 100_000, 200_000, 100_000)
    assert (ranges.table, ranges.rows, ranges.size) == ("serial_ranges", 2_000, 4_000)
    assert [one.size for one in year_of(figures, "reindexed")] == [100_000, 2_000]


def test_files_and_events_have_separate_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = account(visits=30_000, visit_statuses=20_000, read_attempts=10_000, changes=50_000, events=40_000)
    (tmp_path / "account.json").write_text(json.dumps(figures))
    print_account([tmp_path])
    *lines, reindexed = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0].strip("| `") for line in lines[2:]] == [
        *("changes", "visits", "visit_statuses", "read_attempts", "all that is counted", "events", "files and events")
    ]
    assert lines[6].endswith("| 22 |  |")
    assert lines[8].endswith("| 8 |  |")
    assert reindexed == "From 0.01, after a REINDEX: visits: 3 MB, visit_statuses: 2 MB, read_attempts: 1 MB"


def test_tables_of_files_and_events_exist_in_the_catalog() -> None:
    assert set(FILES_AND_EVENTS) <= set(metadata.tables)
    assert not {"changes", "snapshots", "sightings", "yanked_intervals", "projects"} & set(FILES_AND_EVENTS)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Demo.X[A]>=1", "demo-x[a] >= 1", True),
        (
            "a; (os_name == 'x' and python_version < '3') and extra == 'e'",
            "a; os_name == 'x' and python_version < '3' and extra == 'e'",
            True,
        ),
        ("a; (os_name == 'x' or os_name == 'y') and extra == 'e'", "a; os_name == 'x' or os_name == 'y'", False),
        ("a>=1", "a>=2", False),
        ("not a requirement !", "not a requirement !", True),
    ],
)
def test_requirements_are_compared_by_meaning(one, other, is_same):
    assert (canonical(one) == canonical(other)) is is_same


def pair(modules: tuple[str, ...] | None, built: tuple[str, ...], grade: ModulesGrade = ModulesGrade.DERIVED) -> Pair:
    sdist, wheel = (
        DistributionRecord("demo", kind, "demo", "1", modules=names, modules_grade=grade, requires_dist=())
        for kind, names in ((DistributionKind.SDIST, modules), (DistributionKind.WHEEL, built))
    )
    return Pair("demo 1", "flat", "chosen", sdist, wheel)


SAME = pair(("a",), ("a",))
HALF = pair(("a", "b"), ("a",))
UNKNOWN = pair(None, ("a",))
EXACT = pair(("a", "b"), ("a",), ModulesGrade.EXACT)


@pytest.mark.parametrize(
    ("pairs", "differing", "expected"),
    [
        ([SAME] * 100, 0, True),
        ([SAME] * 100, 1, True),
        ([SAME] * 100, 2, False),
        ([*[SAME] * 98, HALF, HALF], 0, True),
        ([*[SAME] * 96, *[HALF] * 4], 0, False),
        ([*[SAME] * 99, UNKNOWN], 0, True),
        ([*[SAME] * 98, UNKNOWN, UNKNOWN], 0, False),
        ([*[SAME] * 99, EXACT], 0, False),
    ],
)
def test_goals_for_pairs(pairs, differing, expected):
    assert is_good(pairs, differing) is expected
