"""A project's overview depends only on its live files, not on their history."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.datasets.modules.overview import (
    Overview,
    decode_overview,
    encoded_overview,
    marks_of,
    module_names,
    overview_of,
)
from pypi_assets.version_order import newest_release
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, build, content, decoded, rows_of

ROWS = [
    dump_row("demo", "1.0", "demo-1.0.zip", live_since=7, modules=["demo"], import_names=["old"]),
    dump_row("demo", "1.0.0", "demo-1.0.0.zip", live_since=5, modules=["demo"]),
    dump_row("demo", "2.0", "demo-2.0.zip", live_since=9, modules=["demo", "tests"], import_names=["demo"]),
    dump_row("demo", "2.0", "demo-2.0.tar.gz", live_since=9, modules=None, import_names=["_demo ; private"]),
]


def entries(rows: list[Row]) -> dict[str, list[object]]:
    return {row["filename"]: [row["version"], None, row["project"], row["live_since"], marks_of(row)] for row in rows}


def test_overview_describes_the_live_files() -> None:
    assert overview_of(entries(ROWS)) == Overview(
        releases=3, newest="2", first_live_serial=5, is_quarantined=False, declared=["_demo ; private", "demo"]
    )
    yanked = [{**row, "yanked": row["version"] == "2.0"} for row in ROWS]
    assert overview_of(entries(yanked)) == Overview(3, "1", 5, is_quarantined=False, declared=["old"])


def test_quarantine_is_that_of_the_newest_release() -> None:
    assert overview_of(entries([ROWS[0], {**ROWS[2], "project_status": "quarantined"}])).is_quarantined
    assert not overview_of(entries([{**ROWS[0], "project_status": "quarantined"}, ROWS[2]])).is_quarantined
    assert not overview_of(entries([{**ROWS[0], "project_status": "archived"}])).is_quarantined


def test_uninstallable_files_count_only_without_others() -> None:
    rejected = {**ROWS[2], "refusals": ["pip skips: odd", "uv fails: odd"]}
    assert overview_of(entries([*ROWS[:2], rejected])) == Overview(2, "1", 5, False, ["old"], rejected=["2.0"])
    assert overview_of(entries([ROWS[0], ROWS[3], rejected])).rejected == []  # another file of 2.0 is accepted
    assert overview_of(entries([ROWS[0], {**ROWS[2], "refusals": ["uv fails: odd"]}])).newest == "2"
    assert overview_of(entries([rejected])) == Overview(1, "2", 9, False, ["demo"], rejected=["2.0"])


def test_most_files_have_no_marks() -> None:
    assert marks_of(dump_row("demo", "1", "demo-1.zip")) == {}
    assert overview_of({"demo-1.zip": ["1", None, "demo", 3]}) == Overview(1, "1", 3, False, None)
    assert overview_of({"demo-1.zip": ["1", None, "demo", None]}).first_live_serial is None


def test_overview_round_trips() -> None:
    assert decode_overview(encoded_overview(entries(ROWS))) == overview_of(entries(ROWS))


def test_stubs_are_listed_apart_from_modules(tmp_path: Path) -> None:
    assert module_names(["a"], ["a", "b"]) == ["a", " a", " b"]
    assert module_names(["a"], []) == ["a"]
    row = dump_row("types-demo", "1", "types_demo-1.zip", modules=["own"], stubs=["demo", "demo.a"])
    records = build(tmp_path / "db", "modules", [[row]])
    assert decoded(dict.fromkeys(records, b"0"), b"m") == {("own", "types-demo"): 0}
    assert decoded(dict.fromkeys(records, b"0"), b"s") == {("demo", "types-demo"): 0, ("demo.a", "types-demo"): 0}
    assert content(build(tmp_path / "db", "modules", [[tombstone_of(row)]], create=False)) == {}


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8))
def test_overviews_match_the_live_rows(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]]
) -> None:
    dumps, live = history
    records = build(tmp_path_factory.mktemp("dbs") / "db", "modules", dumps)
    projects: dict[str, list[Row]] = {}
    for row in live:
        projects.setdefault(str(row["normalized"]), []).append(row)
    overviews = {key[2:].decode(): decode_overview(records[key]) for key in records if key.startswith(b"o\0")}
    assert overviews.keys() == projects.keys()
    for project, rows in projects.items():
        found = overviews[project]
        assert found.releases == len({row["version"] for row in rows})
        assert found.first_live_serial == min(row["live_since"] for row in rows)
        assert found.newest == newest_release((row["version"], row["yanked"]) for row in rows)


def test_rows_without_newer_columns_have_an_overview() -> None:
    row = {name: value for name, value in ROWS[0].items() if name not in {"import_names", "project_status"}}
    assert marks_of(row) == {}
    assert overview_of(entries([row])) == Overview(1, "1", 7, is_quarantined=False, declared=None)
