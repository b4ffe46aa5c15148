"""What the records of both datasets are, and that building on is the same as building anew."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import plyvel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import InvalidVersion, Version

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.depgraph import records as depgraph
from pypi_assets.leveldbs.datasets.registry import DATASETS, require_dataset
from pypi_assets.leveldbs.format.content_hash import ContentHash
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError, UnknownFormatError
from pypi_assets.leveldbs.format.keys import as_part, key
from pypi_assets.leveldbs.format.meta import META_PREFIX, Meta, read_meta, write_meta
from pypi_assets.leveldbs.format.open_leveldb import flush, open_leveldb, plyvel_errors_as_damage, settle
from pypi_assets.leveldbs.format.version_order import version_key
from pypi_assets_tests.dump_rows import dump_row, histories, in_order, tombstone_of

Records = dict[bytes, bytes]


def build(path: Path, dataset: str, dumps: Sequence[list[Row]], *, create: bool = True, serial: int = 9) -> Records:
    """Applies `dumps`, the first of them a full one if `create`, and returns all that the LevelDB holds then."""
    known = require_dataset(dataset)
    with open_leveldb(path, "a test", create=create) as db:
        meta = None if create else read_meta(db, "a test", dataset=dataset, known_format=known.format)
        builder = Builder(db, known, meta)
        for number, rows in enumerate(dumps):
            builder.apply(in_order(rows), "a dump", fresh=create and number == 0)
        builder.finish(serial)
    with open_leveldb(path, "a test") as db:
        return dict(db.iterator())


def content(records: Records) -> Records:
    return {record_key: value for record_key, value in records.items() if not record_key.startswith(META_PREFIX)}


def decoded(records: Records, letter: bytes) -> dict[tuple[str, ...], object]:
    return {
        tuple(record_key.decode().split("\0")[1:]): orjson.loads(value)
        for record_key, value in records.items()
        if record_key.startswith(letter)
    }


def provided(records: Records) -> dict[tuple[str, str], object]:
    """What is answered of each module and project: the display name and the versions."""
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


def test_modules_lead_to_projects_and_versions(tmp_path: Path) -> None:
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
    assert orjson.loads(records[b"\0counts"]) == {"f": 6, "g": 3, "l": 3, "m": 3, "p": 3}


def test_removing_one_file_keeps_what_its_siblings_provide(tmp_path: Path) -> None:
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


def test_a_new_release_changes_few_records_of_modules(tmp_path: Path) -> None:
    modules = ["demo", *(f"demo.m{number:02}" for number in range(50))]
    rows = [dump_row("demo", version, f"demo-{version}.zip", modules=modules) for version in ("1", "2", "3")]

    def changed(modules: list[str], version: str) -> set[str]:
        """The records, beside those of files and lists, that a release with these modules changes."""
        before = build(tmp_path / "db", "modules", [], create=False)
        row = dump_row("demo", version, f"demo-{version}.zip", modules=modules)
        after = build(tmp_path / "db", "modules", [[row]], create=False)
        found = {one[0].decode().replace("\0", " ") for one in content(before).items() ^ content(after).items()}
        return {one for one in found if one[0] in "gmp"}

    build(tmp_path / "db", "modules", [rows])
    assert changed(modules, "4") == {"g demo demo"}
    assert changed([*modules, "new"], "5") == {"g demo demo", "g demo new", "p demo new", "m new demo"}
    split = {f"{letter} demo {group}" for letter in "gp" for group in ("demo", "demo.m49")} | {"m demo.m49 demo"}
    assert changed(modules[:-1], "6") == split
    assert changed(modules[:-1], "7") == {"g demo demo"}


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
        found = depgraph.decode_project("demo", records)
        assert depgraph.find_version(db, "demo", "v1") == found[3:]
        assert depgraph.find_version(db, "demo", "0.9.0") == found[1:2]
        assert depgraph.find_version(db, "demo", "") == found[:1]
        assert depgraph.find_version(db, "demo", "2") == depgraph.find_version(db, "demo", "\0\udc80") == []
        assert depgraph.find_version(db, "dem", "1") == depgraph.project_records(db, "dem") == []
    assert (len(records) == 1) == (few == len(ODD_FILES))
    assert depgraph.encoded("demo", ODD_FILES) == records
    assert [(one["version"], one["filename"]) for one in found] == [
        ("", "demo-.zip"),
        ("0.9", "demo-1.0.zip"),
        ("0.10", "demo-0.10.zip"),
        ("1.0", "demo-1.0-3x-py3-none-win32.whl"),
        ("1.0", "demo-1.0-cp311-cp311-manylinux1_x86_64.manylinux2014_x86_64.whl"),
        ("1.0", "demo-1.0.tar.gz"),
        ("1.0", "demo-not a wheel.whl"),
        ("1.0.0", "demo-1.0.0.zip"),
    ]
    assert [one["requires_dist"] for one in found] == [[], None, [], [], [], ["a>=1"], [], []]
    assert [(one["platform"], one["abi"], one["build"]) for one in found[3:6]] == [
        ("win32", "none", "3x"),
        ("manylinux1_x86_64.manylinux2014_x86_64", "cp311", ""),
        ("", "", ""),
    ]
    assert list(found[5].items()) == [
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
        ("platform", ""),
        ("abi", ""),
        ("build", ""),
    ]


def test_few_files_are_one_record_and_many_one_for_each_release(
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
    own = ["sdist", "ab" * 32, 10, "2026-01-02T03:04:05Z", "", "", ""]
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


def test_what_files_have_in_common_is_kept_once_as_long_as_any_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared(records: Records) -> dict[str, int]:
        """How many files require what."""
        values = [value for one, value in decoded(records, b"d").items() if len(one) == 3]
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
def test_a_file_that_moves_to_another_release_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(depgraph, "FEW_FILES", few)
    row = dump_row("demo", "1.0", "demo-1.0.tar.gz")
    build(tmp_path / "db", "depgraph", [[row]])
    moved = row | {"version": "2", "requires_python": ">=3.9"}
    records = build(tmp_path / "db", "depgraph", [[moved]], create=False)
    assert content(records) == content(build(tmp_path / "other", "depgraph", [[moved]]))
    assert content(build(tmp_path / "db", "depgraph", [[tombstone_of(row)]], create=False)) == {}


def test_a_project_leads_to_those_that_require_it(tmp_path: Path) -> None:
    rows = [
        dump_row("demo", "1.9", "demo-1.9.tar.gz", requires_dist=["a", "B_c>1"]),
        dump_row("demo", "1.10", "demo-1.10.tar.gz", requires_dist=["a; python_version<'3'", "b.c"]),
        dump_row("demo", "1.10", "demo-1.10-py3-none-any.whl", requires_dist=["a[x]>=1", "b-c", "t; extra == 't'"]),
        dump_row("demo", "1.10", "demo-1.10.zip", requires_dist=None),
        dump_row("demo", "2", "demo-2.zip", requires_dist=["a; extra=='t'", "no requirement", "demo[all]"]),
        dump_row("other", "1", "other-1.zip", requires_dist=["a"]),
    ]
    records = decoded(build(tmp_path / "db", "depgraph", [rows]), b"r")
    assert records == {
        ("a", "demo"): {"always": ["1.9", "1.10"], "extra": ["2"]},
        ("a", "other"): {"always": ["1"]},
        ("b-c", "demo"): {"always": ["1.9", "1.10"]},
        ("demo", "demo"): {"always": ["2"]},
        ("t", "demo"): {"extra": ["1.10"]},
    }
    records = decoded(build(tmp_path / "db", "depgraph", [[tombstone_of(rows[2])]], create=False), b"r")
    assert records["a", "demo"] == {"always": ["1.9"], "marker": ["1.10"], "extra": ["2"]}
    assert records["b-c", "demo"] == {"always": ["1.9", "1.10"]}  # as its sibling requires
    assert ("t", "demo") not in records
    moved = [rows[0] | {"version": "1.8"}, rows[5] | {"requires_dist": ["b-c"]}]
    records = decoded(build(tmp_path / "db", "depgraph", [moved], create=False), b"r")
    assert records["b-c", "demo"] == {"always": ["1.8", "1.10"]}
    assert ("a", "other") not in records
    assert content(build(tmp_path / "db", "depgraph", [[tombstone_of(row) for row in rows]], create=False)) == {}


_PROJECTS, _VERSIONS = ["a", "ab", "b"], ["1.0", "1.0.0", "2"]
FILES = [
    (project, version, f"{project}-{version}{suffix}")
    for project in _PROJECTS
    for version in _VERSIONS
    for suffix in (".tar.gz", "-py3-none-any.whl")
]


_REQUIREMENTS = ["a>1", "A; python_version<'3'", "a; extra=='x'", "b", "b ;extra == 'y'", "c; os_name=='nt'", "no name"]


@st.composite
def rows_of(draw: st.DrawFn, file: tuple[str, str, str], serial: int) -> Row:
    modules = st.lists(st.sampled_from(["", "m", "m.n", "mm", "x\0y", "x\ufffdy", "é"]), max_size=3)
    scripts = st.lists(st.sampled_from(["m = a:b", "m.n=a:b", "mm = a", "x\0y = a:b", "é = a:b", " = a"]), max_size=3)
    hashes = ["ab" * 32, "cd" * 32, "EF" * 32, "0\0"]
    project, version, filename = file
    return dump_row(
        project,
        draw(st.sampled_from([version, version, "2!1\0", ""])),  # a file may turn out to be of another release
        filename,
        project=draw(st.sampled_from([project, project.upper()])),
        modules=draw(st.none() | modules),
        console_scripts=draw(st.none() | scripts),
        sha256=draw(st.none() | st.sampled_from(hashes)),
        requires_dist=draw(st.none() | st.lists(st.sampled_from(_REQUIREMENTS), max_size=3)),
        requires_python=draw(st.sampled_from([None, "", ">=3", "<4\0"])),
        yanked=draw(st.booleans()),
        live_since=draw(st.integers(0, serial)),
    )


@pytest.mark.parametrize("dataset", DATASETS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8), cut=st.integers(0, 5), few=st.sampled_from([0, 1, 2, 3, 100]))
def test_incremental_equals_rebuilt(
    tmp_path_factory: pytest.TempPathFactory,
    dataset: str,
    history: tuple[list[list[Row]], list[Row]],
    cut: int,
    few: int,
) -> None:
    with pytest.MonkeyPatch.context() as context:
        context.setattr(depgraph, "FEW_FILES", few)
        assert_incremental_equals_rebuilt(tmp_path_factory.mktemp("dbs"), dataset, *history, cut)


def assert_incremental_equals_rebuilt(
    folder: Path, dataset: str, dumps: list[list[Row]], live: list[Row], cut: int
) -> None:
    cut = 1 + cut % len(dumps)
    build(folder / "incremental", dataset, dumps[:cut], serial=5)
    for dump in dumps[cut:]:
        build(folder / "incremental", dataset, [dump], create=False, serial=6)
    incremental = build(folder / "incremental", dataset, [], create=False)
    rebuilt = build(folder / "rebuilt", dataset, dumps)
    assert incremental == rebuilt
    assert rebuilt == build(folder / "at once", dataset, [live])
    content_hash = ContentHash()
    for record_key, value in content(rebuilt).items():
        content_hash.add(record_key, value)
    assert orjson.loads(rebuilt[b"\0content_hash"]) == content_hash.hex


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8), few=st.sampled_from([0, 2, 4, 100]))
def test_answers_follow_from_the_live_rows(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]], few: int
) -> None:
    dumps, live = history
    path = tmp_path_factory.mktemp("dbs") / "db"
    with pytest.MonkeyPatch.context() as context:
        context.setattr(depgraph, "FEW_FILES", few)
        build(path, "depgraph", dumps)
    with open_leveldb(path, "x") as db:
        for project in _PROJECTS:
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
    return fields | tags | {"build": "", "version": str(row["version"]).replace("\0", "\ufffd")}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8))
def test_every_module_has_the_providers_of_its_files(
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
        for module in row["modules"] or ():
            lists.setdefault((as_part(module), str(row["normalized"])), set()).add(str(row["modules"]))
    groups: dict[tuple[str, str], list[str]] = {}
    for module, project in sorted(expected):
        groups.setdefault((project, str(sorted(lists[module, project]))), []).append(module)
    named = {(project, modules[0]): modules for (project, _), modules in groups.items()}
    assert decoded(records, b"p") == named
    assert decoded(records, b"g").keys() == named.keys()
    assert all(
        records[key("m", module, project)].decode() == name
        for (project, name), modules in named.items()
        for module in modules
    )


def test_rows_out_of_order_are_refused(tmp_path: Path) -> None:
    rows = [dump_row("b", "1", "b-1.zip"), dump_row("a", "1", "a-1.zip")]
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        builder = Builder(db, DATASETS["modules"])
        with pytest.raises(LeveldbError, match=r"some dump is not sorted by project: a comes after b"):
            builder.apply(rows, "some dump")


def test_progress_is_reported_and_batches_are_bounded(tmp_path: Path) -> None:
    rows = [dump_row(f"p{number:05}", "1", "x.zip", modules=["m" * 5_000]) for number in range(1_000)]
    reported: list[int] = []
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        builder = Builder(db, DATASETS["modules"], flushed=reported.append)
        builder.apply(rows, "some dump", fresh=True)
        assert builder.rows == reported[-1] == 1_000
    assert len(reported) > 2


def test_damage_that_no_checksum_shows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(db: plyvel.DB, row: Row) -> None:
        Builder(db, DATASETS["depgraph"]).apply([row], "some dump")

    monkeypatch.setattr(depgraph, "FEW_FILES", 0)
    one, other = dump_row("b", "1", "b-1.zip"), dump_row("b", "1", "b-1.tar.gz", requires_dist=["x"])
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        apply(db, one)
        apply(db, other)
        release, place = key("d", "b", "1"), key("f", "b", "b-1.zip")
        kept = db.get(release)
        db.put(release, b"[]")
        with pytest.raises(LeveldbDamagedError, match="has no such file"):
            apply(db, one)
        with pytest.raises(LeveldbDamagedError, match="counts 2 files, and there are 0"):
            depgraph.decode_project("b", depgraph.project_records(db, "b"))
        db.put(release, kept)
        db.put(place, b"nowhere")
        with pytest.raises(LeveldbDamagedError, match="has no such file"):
            apply(db, tombstone_of(one))
        db.put(place, b"1")
        db.put(key("r", "x", "b"), b'{"always":["2"]}')
        with pytest.raises(LeveldbDamagedError, match="does not hold what version 1 requires"):
            apply(db, tombstone_of(other))
        shared, value = next(db.iterator(prefix=b"d\0b\0\0"))
        db.put(shared, b"[0," + value[3:])
        with pytest.raises(LeveldbDamagedError, match="does not count the files that share it"):
            apply(db, tombstone_of(one if b'"requires_dist":[]' in value else other))
        db.delete(shared)
        with pytest.raises(LeveldbDamagedError, match="is not there, and a file points to it"):
            apply(db, tombstone_of(one))
        with pytest.raises(LeveldbDamagedError, match="is not there, and a file points to it"):
            depgraph.find_version(db, "b", "1")
        with pytest.raises(LeveldbDamagedError, match="which is not there"):
            depgraph.decode_project("b", depgraph.project_records(db, "b"))
    with open_leveldb(tmp_path / "modules", "x", create=True) as db:
        row = dump_row("a", "1", "a-1.zip", modules=["a"])
        Builder(db, DATASETS["modules"]).apply([row], "some dump")
        with db.iterator(prefix=b"l") as lists:
            db.delete(next(lists)[0])
        with pytest.raises(LeveldbDamagedError, match="is not there, and a file points to it"):
            Builder(db, DATASETS["modules"]).apply([tombstone_of(row)], "some dump")


def test_the_content_hash_is_of_a_set() -> None:
    one, other = ContentHash(), ContentHash()
    for record in ((b"a", b"1"), (b"b", b"2"), (b"ab", b"")):
        one.add(*record)
    for record in ((b"ab", b""), (b"gone", b"x"), (b"b", b"2"), (b"a", b"1")):
        other.add(*record)
    assert one.hex != other.hex
    other.remove(b"gone", b"x")
    assert one.hex == other.hex == ContentHash(one.hex).hex
    shifted = ContentHash()
    shifted.add(b"a", b"b2")
    moved = ContentHash()
    moved.add(b"ab", b"2")
    assert shifted.hex != moved.hex


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    meta = Meta("modules", 1, 5, {"m": 2}, ContentHash().hex)
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        with pytest.raises(LeveldbDamagedError, match="no readable record"):
            read_meta(db, "x", dataset="modules", known_format=1)
        write_meta(db, meta)
        assert read_meta(db, "x", dataset="modules", known_format=1) == meta
        write_meta(db, replace(meta, format=2))
        with pytest.raises(UnknownFormatError, match="x is modules in format 2"):
            read_meta(db, "x", dataset="modules", known_format=1)


def test_an_unknown_dataset_is_refused() -> None:
    with pytest.raises(LeveldbError, match="there are modules, depgraph"):
        require_dataset("other")


def test_what_is_flushed_apart_lies_deep(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        for names in ("cz", "ab"):
            for name in names:
                db.put(name.encode(), b"x")
            flush(db)
        settle(db, lambda: None)
        assert [int(db.get_property(b"leveldb.num-files-at-level%d" % level) or 0) for level in range(3)] == [0, 0, 2]


def test_merging_tables_hides_no_damage(tmp_path: Path) -> None:
    def add(number: int) -> None:
        with open_leveldb(tmp_path / "db", "x", create=not number, paranoid=True) as db:
            for name in ("a", "z"):
                db.put(name.encode() * 50, f"{name} number {number}".encode())
            settle(db, lambda: None)

    for number in range(5):
        add(number)
    table = max((tmp_path / "db").glob("*.ldb"))
    content = bytearray(table.read_bytes())
    content[content.index(b"number 4")] ^= 1
    table.write_bytes(content)
    with pytest.raises(LeveldbDamagedError, match="x cannot be read"):
        add(5)  # the fourth table of a level, so they are merged


def test_a_full_disk_is_no_damage() -> None:
    with pytest.raises(LeveldbError, match="make room on the disk") as raised, plyvel_errors_as_damage("x"):
        raise plyvel.IOError(b"IO error: /x/000003.log: No space left on device")
    assert not isinstance(raised.value, LeveldbDamagedError)
