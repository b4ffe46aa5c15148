"""The distributions of a project: few are in one record, many are in one record for each release."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import InvalidVersion, Version

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import key
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, PROJECTS, Records, build, content, decoded, rows_of
from pypi_assets_tests.naming import naming

ODD_FILES = [
    dump_row("demo", "1.0", "demo-1.0.tar.gz", requires_python=">=3.8", requires_dist=["a>=1"]),
    dump_row("demo", "1.0", "demo-1.0-3x-py3-none-win32.whl", project="Demo"),
    dump_row("demo", "1.0", "demo-1.0-cp311-cp311-manylinux1_x86_64.manylinux2014_x86_64.whl"),
    dump_row("demo", "1.0", "demo-not a wheel.whl", yanked=True, yanked_reason="bad"),
    dump_row("demo", "0.9", "demo-1.0.zip", requires_dist=None),
    dump_row("demo", "0.10", "demo-0.10.zip"),
    dump_row("demo", "1.0.0", "demo-1.0.0.zip"),
    dump_row("demo", "", "demo-.zip"),
]


@pytest.mark.parametrize("few", [0, 7, 8])
def test_distributions_are_ordered_by_version_and_filename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(depgraph, "FEW_FILES", few)
    build(tmp_path / "db", "depgraph", [ODD_FILES])
    with open_leveldb(tmp_path / "db", "x") as db:
        records = depgraph.project_records(db, "demo")
        distributions = depgraph.decode_project("demo", records)
        assert depgraph.find_version(db, "demo", "v1") == distributions[3:]
        assert depgraph.find_version(db, "demo", "0.9.0") == distributions[1:2]
        assert depgraph.find_version(db, "demo", "") == distributions[:1]
        assert depgraph.find_version(db, "demo", "2") == depgraph.find_version(db, "demo", "\0\udc80") == []
        assert depgraph.find_version(db, "dem", "1") == depgraph.project_records(db, "dem") == []
        yanks = {(distribution["version"], distribution["yanked"]) for distribution in distributions}
        assert set(depgraph.version_yanks(db, "demo")) == yanks == {*yanks, ("1.0", True), ("1.0", False), ("", False)}
        assert list(depgraph.version_yanks(db, "dem")) == []
    assert (len(records) == 1) == (few == len(ODD_FILES))
    assert depgraph.encoded("demo", ODD_FILES) == records
    assert [(distribution["version"], distribution["filename"]) for distribution in distributions] == [
        ("", "demo-.zip"),
        ("0.9", "demo-1.0.zip"),
        ("0.10", "demo-0.10.zip"),
        ("1.0", "demo-1.0-3x-py3-none-win32.whl"),
        ("1.0", "demo-1.0-cp311-cp311-manylinux1_x86_64.manylinux2014_x86_64.whl"),
        ("1.0", "demo-1.0.tar.gz"),
        ("1.0", "demo-not a wheel.whl"),
        ("1.0.0", "demo-1.0.0.zip"),
    ]
    assert [distribution["requires_dist"] for distribution in distributions] == [[], None, [], [], [], ["a>=1"], [], []]
    assert [
        (distribution["platform"], distribution["abi"], distribution["build"]) for distribution in distributions[3:6]
    ] == [
        ("win32", "none", "3x"),
        ("manylinux1_x86_64.manylinux2014_x86_64", "cp311", ""),
        ("", "", ""),
    ]
    assert list(distributions[5].items()) == [
        ("filename", "demo-1.0.tar.gz"),
        ("version", "1.0"),
        ("normalized", "demo"),
        ("kind", "sdist"),
        ("project", "demo"),
        ("sha256", "ab" * 32),
        ("size", 10),
        ("uploaded_at", "2026-01-02T03:04:05Z"),
        ("requires_python", ">=3.8"),
        ("requires_dist", ["a>=1"]),
        ("provides_extra", []),
        ("yanked", False),
        ("yanked_reason", None),
        ("outcome", "data"),
        ("refusals", None),
        ("platform", ""),
        ("abi", ""),
        ("build", ""),
        ("first_seen_at", None),
        ("installed_metadata", None),
    ]


def test_few_files_share_a_record_and_many_have_one_per_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depgraph, "FEW_FILES", 2)
    rows = [dump_row("demo", version, f"demo-{version}.zip", requires_dist=["a"]) for version in ("1.0", "2", "3")]
    rows[1]["requires_dist"] = ["b"]
    few = build(tmp_path / "few", "depgraph", [rows[:2]])
    assert [len(value) for value in decoded(few, b"d").values()] == [2]  # type: ignore[arg-type]
    assert decoded(few, b"f") == {}
    many = build(tmp_path / "many", "depgraph", [rows])
    shared = {name[2]: value for name, value in decoded(many, b"d").items() if len(name) == 3}
    a, b = sorted(shared, key=lambda name: shared[name][1]["requires_dist"])  # type: ignore[index]
    assert [shared[name][0] for name in (a, b)] == [2, 1]  # type: ignore[index]
    own = ["sdist", "ab" * 32, 10, "2026-01-02T03:04:05Z", "", "", "", None]
    assert {name: value for name, value in decoded(many, b"d").items() if len(name) < 3} == {
        ("demo",): 3,
        ("demo", "1"): [["1.0", a, [["demo-1.0.zip", *own]]]],
        ("demo", "2"): [["2", b, [["demo-2.zip", *own]]]],
        ("demo", "3"): [["3", a, [["demo-3.zip", *own]]]],
    }
    assert {name: value for name, value in many.items() if name.startswith(b"f")} == {
        key("f", "demo", f"demo-{version}.zip"): release
        for version, release in (("1.0", b"1"), ("2", b"2"), ("3", b"3"))
    }
    assert content(build(tmp_path / "few", "depgraph", [rows[2:]], create=False)) == content(many)
    gone = [[tombstone_of(rows[2])]]
    assert content(build(tmp_path / "many", "depgraph", gone, create=False)) == content(
        build(tmp_path / "again", "depgraph", [rows[:2]])
    )


def test_common_requirements_are_stored_once_until_unused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(records: Records) -> dict[str, int]:
        """Return the number of files for each shared list of requirements."""
        values = [value for record_key, value in decoded(records, b"d").items() if len(record_key) == 3]
        return {value[1]["requires_dist"][0]: value[0] for value in values}  # type: ignore[index]

    monkeypatch.setattr(depgraph, "FEW_FILES", 0)
    rows = [dump_row("demo", version, f"demo-{version}.zip", requires_dist=["a"]) for version in ("", "1", "2", "3")]
    rows[3]["requires_dist"] = ["b"]
    assert shared(build(tmp_path / "db", "depgraph", [rows])) == {"a": 3, "b": 1}
    changed = [rows[0] | {"requires_dist": ["b"]}, rows[1] | {"sha256": "cd" * 32}, tombstone_of(rows[3])]
    assert shared(build(tmp_path / "db", "depgraph", [changed], create=False)) == {"a": 2, "b": 1}
    gone = [tombstone_of(rows[1]), tombstone_of(rows[2])]
    assert shared(build(tmp_path / "db", "depgraph", [gone], create=False)) == {"b": 1}
    assert content(build(tmp_path / "db", "depgraph", [[tombstone_of(rows[0])]], create=False)) == {}


@pytest.mark.parametrize("few", [0, 100])
def test_file_that_moves_to_another_release_leaves_no_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(depgraph, "FEW_FILES", few)
    row = dump_row("demo", "1.0", "demo-1.0.tar.gz")
    build(tmp_path / "db", "depgraph", [[row]])
    moved = row | {"version": "2", "requires_python": ">=3.9"}
    records = build(tmp_path / "db", "depgraph", [[moved]], create=False)
    assert content(records) == content(build(tmp_path / "other", "depgraph", [[moved]]))
    assert content(build(tmp_path / "db", "depgraph", [[tombstone_of(row)]], create=False)) == {}


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8), few=st.sampled_from([0, 2, 4, 100]))
def test_answers_match_the_live_rows(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]], few: int
) -> None:
    dumps, live = history
    path = tmp_path_factory.mktemp("dbs") / "db"
    with pytest.MonkeyPatch.context() as context:
        context.setattr(depgraph, "FEW_FILES", few)
        build(path, "depgraph", dumps)
    with open_leveldb(path, "x") as db:
        for project in PROJECTS:
            rows = sorted((row for row in live if row["normalized"] == project), key=in_answers)
            records = depgraph.project_records(db, project)
            assert depgraph.decode_project(project, records) == [answered(row) for row in rows]
            for wanted in ("1", "1.0", "1.0.0", "v2.0", "2!1\0", "", "3"):
                same = [answered(row) for row in rows if is_version(str(row["version"]), wanted)]
                assert depgraph.find_version(db, project, wanted) == same


def in_answers(row: Row) -> tuple[object, ...]:
    version, filename = str(row["version"]), row["filename"]
    try:
        return True, Version(version), version, filename
    except InvalidVersion:
        return False, version, filename


def is_version(version: str, wanted: str) -> bool:
    try:
        return Version(version) == Version(wanted)
    except InvalidVersion:
        return version == wanted


def answered(row: Row) -> dict[str, object]:
    tags = {"platform": "any", "abi": "none"} if row["kind"] == "wheel" else {"platform": "", "abi": ""}
    fields = {name: row[name] for name in depgraph.COLUMNS if name != "tombstone"} | {"normalized": row["normalized"]}
    version = str(row["version"]).replace("\0", "\ufffd")
    rare = {"installed_metadata": row["installed_metadata"] if row["kind"] == "sdist" else None}
    return fields | tags | {"refusals": None, "build": "", "first_seen_at": None, "version": version} | rare


def test_corruption_with_valid_checksums_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(db: Database, row: Row) -> None:
        Builder(db, DATASETS["depgraph"]).apply([row], "some dump")

    monkeypatch.setattr(depgraph, "FEW_FILES", 0)
    one, other = dump_row("b", "1", "b-1.zip"), dump_row("b", "1", "b-1.tar.gz", requires_dist=["x"])
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        apply(db, one)
        apply(db, other)
        release, place = key("d", "b", "1"), key("f", "b", "b-1.zip")
        kept = db.get(release)
        db.put(release, b"[]")
        with pytest.raises(LeveldbDamagedError, match=r"b-1\.zip"):
            apply(db, one)
        with pytest.raises(LeveldbDamagedError, match=naming(2, 0)):
            depgraph.decode_project("b", depgraph.project_records(db, "b"))
        db.put(release, kept)
        db.put(place, b"nowhere")
        with pytest.raises(LeveldbDamagedError, match=r"b-1\.zip"):
            apply(db, tombstone_of(one))
        db.put(place, b"1")
        db.put(key("r", "x", "b"), b'{"always":["2"]}')
        with pytest.raises(LeveldbDamagedError, match=naming(1)):
            apply(db, tombstone_of(other))
        shared, value = next(db.iterator(prefix=b"d\0b\0\0"))
        db.put(shared, b"[0," + value[3:])
        with pytest.raises(LeveldbDamagedError):
            apply(db, tombstone_of(one if b'"requires_dist":[]' in value else other))
        db.delete(shared)
        with pytest.raises(LeveldbDamagedError):
            apply(db, tombstone_of(one))
        with pytest.raises(LeveldbDamagedError):
            depgraph.find_version(db, "b", "1")
        with pytest.raises(LeveldbDamagedError):
            depgraph.decode_project("b", depgraph.project_records(db, "b"))
