"""Each name maps to the projects and versions whose files provide it, in few records."""

from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.modules.overview import module_names
from pypi_assets.leveldbs.datasets.provided_names import STUB
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import ContentHash, as_part, key
from pypi_assets.version_order import version_key
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, Records, build, content, decoded, rows_of


def provided(records: Records) -> dict[tuple[str, str], object]:
    """Return the display name and the versions for each module and project."""
    modules = [record_key.decode().split("\0")[1:] for record_key in records if record_key.startswith(b"m")]
    return {
        (module, project): orjson.loads(records[key("g", project, records[key("m", module, project)].decode())])
        for module, project in modules
    }


DEMO = [
    dump_row("demo", "1.10", "demo-1.10.tar.gz", project="Demo", modules=["demo", "demo.a"]),
    dump_row("demo", "1.10", "demo-1.10-py3-none-any.whl", project="Demo", modules=["demo", "demo.a"]),
    dump_row("demo", "1.9", "demo-1.9.tar.gz", project="Demo", modules=["demo"]),
    dump_row("demo", "odd!", "demo-odd.zip", project="Demo", modules=["demo"]),
    dump_row("other", "1", "other-1.tar.gz", modules=["demo"]),
    dump_row("unread", "1", "unread-1.tar.gz", modules=None, requires_dist=None),
]


def test_modules_have_projects_and_versions(tmp_path: Path) -> None:
    records = build(tmp_path / "db", "modules", [DEMO])
    assert provided(records) == {
        ("demo", "demo"): ["Demo", ["odd!", "1.9", "1.10"]],
        ("demo", "other"): ["other", ["1"]],
        ("demo.a", "demo"): ["Demo", ["1.10"]],
    }
    files = decoded(records, b"f")
    assert len(files) == 6
    wheel, sdist = files["demo", "demo-1.10-py3-none-any.whl"], files["demo", "demo-1.10.tar.gz"]
    assert wheel == sdist == ["1.10", wheel[1], "Demo", 1]  # type: ignore[index]
    assert files["unread", "unread-1.tar.gz"] == ["1", None, "unread", 1]
    assert decoded(records, b"l")["demo", wheel[1]] == ["demo", "demo.a"]  # type: ignore[index]
    assert len(decoded(records, b"l")) == 3
    assert decoded(records, b"p")["demo", "demo.a"] == ["demo.a"]
    assert orjson.loads(records[b"\0counts"]) == {"f": 6, "g": 3, "l": 3, "m": 3, "o": 3, "p": 3}


def test_removing_a_file_keeps_names_of_its_siblings(tmp_path: Path) -> None:
    records = build(tmp_path / "db", "modules", [DEMO, [tombstone_of(DEMO[0])]])
    assert provided(records)["demo.a", "demo"] == ["Demo", ["1.10"]]
    records = build(tmp_path / "db", "modules", [[tombstone_of(DEMO[1])]], create=False)
    assert provided(records)["demo", "demo"] == ["Demo", ["odd!", "1.9"]]
    assert ("demo.a", "demo") not in provided(records)
    assert len(decoded(records, b"l")) == 2
    records = build(tmp_path / "db", "modules", [[tombstone_of(row) for row in DEMO]], create=False)
    assert content(records) == {}
    assert orjson.loads(records[b"\0counts"]) == {}
    assert orjson.loads(records[b"\0content_hash"]) == ContentHash().hex


def test_new_release_changes_few_module_records(tmp_path: Path) -> None:
    modules = ["demo", *(f"demo.m{number:02}" for number in range(50))]
    rows = [dump_row("demo", version, f"demo-{version}.zip", modules=modules) for version in ("1", "2", "3")]

    def changed(modules: list[str], version: str) -> set[str]:
        """Return the records that a release with these modules changes, except records of files and lists."""
        before = build(tmp_path / "db", "modules", [], create=False)
        row = dump_row("demo", version, f"demo-{version}.zip", modules=modules)
        after = build(tmp_path / "db", "modules", [[row]], create=False)
        found = {record[0].decode().replace("\0", " ") for record in content(before).items() ^ content(after).items()}
        return {record for record in found if record[0] in "gmp"}

    build(tmp_path / "db", "modules", [rows])
    assert changed(modules, "4") == {"g demo demo"}
    assert changed([*modules, "new"], "5") == {"g demo demo", "g demo new", "p demo new", "m new demo"}
    split = {f"{letter} demo {group}" for letter in "gp" for group in ("demo", "demo.m49")} | {"m demo.m49 demo"}
    assert changed(modules[:-1], "6") == split
    assert changed(modules[:-1], "7") == {"g demo demo"}


def test_odd_versions_and_names_give_the_same_records_one_by_one(tmp_path: Path) -> None:
    odd = ["2", "1,0", '3"', "4\\", "\u00e9", "", '",', "1.0", "1.0.0", "0.9", "10", "[", '"]]']
    lists = (["demo", "demo.a"], ["demo"], ["demo", "demo.b"])
    rows = [
        dump_row("demo", version, f"demo-{number}.zip", modules=lists[number % 3], project="De]mo"[: 4 + number % 2])
        for number, version in enumerate(odd)
    ]
    rows += [dump_row("demo", "11", f"last-{number}.zip", modules=["demo"], project="Demo") for number in range(2)]
    dumps = [*([row] for row in rows), [tombstone_of(rows[0])], [tombstone_of(rows[-1])]]
    one_by_one = build(tmp_path / "one", "modules", dumps)
    assert content(one_by_one) == content(build(tmp_path / "all", "modules", [rows[1:-1]]))


@pytest.mark.nightly
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8))
def test_modules_match_the_live_files(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]]
) -> None:
    dumps, live = history
    records = build(tmp_path_factory.mktemp("dbs") / "db", "modules", dumps)
    files = sorted(live, key=lambda row: (row["live_since"], row["filename"]))
    displays = {str(row["normalized"]): row["project"] for row in files}
    versions: dict[tuple[str, str], set[str]] = {}
    for row in files:
        for module in row["modules"] or ():
            versions.setdefault((as_part(module), str(row["normalized"])), set()).add(str(row["version"]))
    expected = {one: [displays[one[1]], sorted(known, key=version_key)] for one, known in versions.items()}
    assert provided(records) == expected
    lists: dict[tuple[str, str], set[str]] = {}
    for row in files:
        names = [] if row["modules"] is None else module_names(row["modules"], row["stubs"] or [])
        for name in names:
            lists.setdefault((as_part(name), str(row["normalized"])), set()).add(str(names))
    groups: dict[tuple[str, str], list[str]] = {}
    for name, project in sorted(lists):
        groups.setdefault((project, str(sorted(lists[name, project]))), []).append(name)
    named = {(project, names[0]): names for (project, _), names in groups.items()}
    assert decoded(records, b"p") == named
    assert decoded(records, b"g").keys() == named.keys()
    letters = {STUB: "s"}
    assert all(
        records[key(letters.get(name[:1], "m"), name.removeprefix(STUB), project)].decode() == group
        for (project, group), names in named.items()
        for name in names
    )


def test_missing_list_is_corruption(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        row = dump_row("a", "1", "a-1.zip", modules=["a"])
        Builder(db, DATASETS["modules"]).apply([row], "some dump")
        with db.iterator(prefix=b"l") as lists:
            db.delete(next(lists)[0])
        with pytest.raises(LeveldbDamagedError):
            Builder(db, DATASETS["modules"]).apply([tombstone_of(row)], "some dump")
