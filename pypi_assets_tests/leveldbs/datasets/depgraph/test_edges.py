"""The files of edges: they match the records after any updates, and a damaged file is found."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.datasets.depgraph import edge_building
from pypi_assets.leveldbs.datasets.depgraph.edge_building import contents, edge_problem, write_edges
from pypi_assets.leveldbs.datasets.depgraph.edge_file import AS_IN_BASE, EdgeFile, crc_of, decode_lists
from pypi_assets.leveldbs.datasets.depgraph.edges import (
    Edges,
    check_edges,
    condition_of,
    encode_lists,
    named_lists,
    open_edges,
    requirement_lists,
)
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import read_meta, scan
from pypi_assets.lookup.requirement_filters import requirements_of
from pypi_assets_tests.dump_rows import dump_row, histories, in_order, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, rows_of

DEPGRAPH = DATASETS["depgraph"]
REFUSED = ["pip skips: odd", "uv fails: odd"]
ALWAYS_CHANGES, NEVER_CHANGES = 0, 1_000_000


def build(folder: Path, rows: list[Row], number: int) -> None:
    """Apply a dump to the LevelDB in the folder, which the first dump creates, and write its edges."""
    with open_leveldb(folder, "a test", create=number == 0) as db:
        meta = read_meta(db, "a test", dataset="depgraph", known_format=DEPGRAPH.format) if number else None
        builder = Builder(db, DEPGRAPH, meta)
        builder.apply(in_order(rows), "a dump", fresh=number == 0)
        builder.finish(number)
        write_edges(db, folder, f"{number:05}", builder.changed)


def opened(folder: Path) -> Edges:
    edges = open_edges(folder)
    assert edges is not None
    return edges


def expected(db: Database) -> Iterator[tuple[str, object, list[object]]]:
    """Return the contents of edges by the records alone, with one read for each edge."""
    dependents: dict[str, list[str]] = {}
    for record_key, _ in scan(db, b"r\0"):
        _, required, project = record_key.decode().split("\0")
        dependents.setdefault(required, []).append(project)
    projects = {record_key.decode().split("\0")[1] for record_key, _ in scan(db, b"d\0")}
    for name in sorted({*projects, *dependents}):
        newest = depgraph.newest_requirements(db, name)
        if newest is None:
            release = None
        else:
            of_record = depgraph.decode_project(name, depgraph.project_records(db, name))
            installable = [one for one in of_record if one["refusals"] != REFUSED] or of_record
            spellings = {
                one["version"]
                for one in installable
                if depgraph.canonical_version(one["version"]) == depgraph.canonical_version(newest[0])
            }
            release = newest[0], len(spellings) > 1
        edges: list[object] = []
        for project in dependents.get(name, ()):
            found = depgraph.newest_requirements(db, project)
            lists = requirements_of(name, found[1] if found else ())
            edges.append((project, lists, condition_of(lists)))
        yield name, release, edges


@st.composite
def refused_rows_of(draw: st.DrawFn, file: tuple[str, str, str], serial: int) -> Row:
    return {**draw(rows_of(file, serial)), "refusals": draw(st.sampled_from([None, None, REFUSED, REFUSED[:1]]))}


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    history=histories(FILES, refused_rows_of, 8),
    few=st.sampled_from([1, 20]),
    rule=st.sampled_from([ALWAYS_CHANGES, NEVER_CHANGES, 1]),
)
def test_edges_after_updates_match_the_records(history: tuple[list[list[Row]], list[Row]], few: int, rule: int) -> None:
    with tempfile.TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
        patch.setattr(depgraph, "FEW_FILES", few)
        patch.setattr(edge_building, "EDGES_OF_ONE_CHANGED", rule)
        folder = Path(temporary, "db")
        for number, rows in enumerate(history[0]):
            build(folder, rows, number)
            working = Path(temporary, f"working{number}")
            working.mkdir()
            with open_leveldb(folder, "a test") as db:
                edges = opened(folder)
                if rule == ALWAYS_CHANGES:
                    assert (edges.changes is not None) == any(history[0][1 : number + 1])
                assert list(contents(edges)) == list(expected(db))
                assert edge_problem(db, folder, working) is None
            for name in ("a", "ab", "b", "c", "unknown", "", "half \udc80"):
                found = edges.number(name)
                assert found is None or edges.name(found) == name
                if found is not None:
                    assert edges.count(found) == len(edges.requiring(found)[0])
            names = [edges.name(one) for one in edges.beginning_with("a")]
            assert names == sorted(one for one in {*names} if one.startswith("a"))


def test_one_change_of_many_edges_is_written_alone(tmp_path: Path) -> None:
    rows = [
        dump_row(f"p{number:03}", "1", f"p{number:03}-1.zip", requires_dist=["base", "c>1"]) for number in range(60)
    ]
    folder = tmp_path / "db"
    build(folder, rows, 0)
    build(folder, [dump_row("p007", "2", "p007-2.zip", requires_dist=["c>1", "new-name"])], 1)
    assert sorted(path.name for path in folder.glob("*.edges")) == ["00000.edges", "00001.edges"]
    build(folder, [tombstone_of(rows[9]), dump_row("p0070", "1", "p0070-1.zip", requires_dist=["base"])], 2)
    assert sorted(path.name for path in folder.glob("*.edges")) == ["00000.edges", "00002.edges"]
    edges = opened(folder)
    assert edges.changes is not None
    assert edges.conditions is edges.conditions  # they are joined once, and not for each project
    assert edges.changes.edges == 2 + 1 + 2 + 1  # of p007, its edge that only the older release has, p009, p0070
    base = edges.number("base")
    assert base is not None
    found = [edges.name(one) for one in edges.requiring(base)[0]]
    assert found == sorted({*(f"p{number:03}" for number in range(60)), "p0070"} - {"p009"})
    assert [edges.name(one) for one, lists in zip(*edges.requiring(base), strict=True) if not lists] == ["p007"]
    assert edges.number("p009") is not None
    assert edges.release(edges.number("p009") or 0) is None
    build(folder, [dump_row(f"q{number}", "1", f"q{number}-1.zip", requires_dist=["base"]) for number in range(9)], 3)
    assert [path.name for path in folder.glob("*.edges")] == ["00003.edges"]


def test_lists_are_encoded_with_a_short_name() -> None:
    files = [["a-b>1", " a.b", "A_b; os_name == 'nt'", "c"], ["a-b>1"], [], ["a-b>1"]]
    found = requirement_lists(files)
    assert found == {required: requirements_of(required, files) for required in ("a-b", "c")}
    assert orjson.loads(encode_lists("a-b", found["a-b"])) == [["*>1"], ["*>1", " a.b", "A_b; os_name == 'nt'"]]
    for required, lists in found.items():
        assert named_lists(required, decode_lists(encode_lists(required, lists))) == lists


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    build(folder, [dump_row("p", "1", "p-1.zip", requires_dist=["base"])], 0)
    path = folder / "00000.edges"
    content = path.read_bytes()
    opened(folder).check()
    header = int.from_bytes(content[:8], "little")
    for place in range(8 + header, len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(LeveldbDamagedError):
            EdgeFile(path).check()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(LeveldbDamagedError):
            EdgeFile(path).check()
    path.write_bytes(content.replace(b'"format":"1"', b'"format":"2"'))
    with pytest.raises(UnknownFormatError):
        EdgeFile(path)
    path.write_bytes(content.replace(b'"base":"",', b'"base":"x"'))
    with pytest.raises(LeveldbDamagedError):
        open_edges(folder)


def test_flipped_bit_of_the_header_is_found_or_changes_no_edge(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    names = [f"p{number:02}" for number in range(20)]
    build(folder, [dump_row(name, "1", f"{name}-1.zip", requires_dist=["base", "p00>1"]) for name in names], 0)
    path = folder / "00000.edges"
    content, known = path.read_bytes(), list(contents(opened(folder)))
    found = 0
    for place in range(8 + int.from_bytes(content[:8], "little")):
        for bit in range(8):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
            try:
                edges = opened(folder)
                edges.check()
            except (LeveldbDamagedError, UnknownFormatError):
                found += 1
            else:
                assert list(contents(edges)) == known, (place, bit)
    assert found > 0


def changed(content: bytes, name: str, place: int, value: bytes) -> bytes:
    """Return a file of edges with another value at a place of an array, and with its checksum."""
    size = int.from_bytes(content[:8], "little")
    header, data = orjson.loads(content[8 : 8 + size]), bytearray(content[8 + size :])
    begin = header[name]["data_offsets"][0] + place
    data[begin : begin + len(value)] = value
    header["__metadata__"]["crc32"] = crc_of([memoryview(bytes(data))])
    encoded = orjson.dumps(header)
    return len(encoded).to_bytes(8, "little") + encoded + data


def test_file_whose_values_refer_to_nothing_is_not_valid(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    build(folder, [dump_row("a", "1é", "a-1.zip"), dump_row("p", "2", "p-1.zip", requires_dist=["a>1"])], 0)
    path = folder / "00000.edges"
    content = path.read_bytes()
    check_edges(folder)
    number = partial(int.to_bytes, length=4, byteorder="little")
    for name, place, value in (
        ("names", 1, b"b"),  # the end of a name
        ("names", 2, b"\0"),
        ("version_starts", 4, number(2)),  # within a character
        ("versions", 0, b"\xff"),
        ("release", 0, number(AS_IN_BASE)),
        ("release", 0, number(2)),
        ("newest_project", 0, number(2)),
        ("requirements", 0, number(2)),
        ("newest_starts", 4, number(2)),
        ("lists", 0, b"{"),
    ):
        path.write_bytes(changed(content, name, place, value))
        EdgeFile(path).check()
        with pytest.raises(LeveldbDamagedError):
            check_edges(folder)


def test_file_with_another_header_is_not_a_file_of_edges(tmp_path: Path) -> None:
    path = tmp_path / "00000.edges"
    for header in (
        b"",
        b"{",
        b"null",
        b"5",
        b"[]",
        b"{}",
        b'"text"',
        b'{"__metadata__": null}',
        b'{"__metadata__": []}',
    ):
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(LeveldbDamagedError):
            EdgeFile(path)


def test_a_whole_file_of_other_records_is_a_problem(tmp_path: Path) -> None:
    folder, other = tmp_path / "db", tmp_path / "other"
    other.mkdir()
    build(folder, [dump_row("p", "1", "p-1.zip", requires_dist=["base"])], 0)
    for number, row in enumerate(
        (
            dump_row("p", "2", "p-2.zip", requires_dist=["base"]),
            dump_row("p", "1", "p-1.zip", requires_dist=["base>1"]),
            dump_row("p", "1", "p-1.zip", requires_dist=["base", "c"]),
            dump_row("q", "1", "q-1.zip", requires_dist=["base"]),
            dump_row("p", "1", "p-1.zip", requires_dist=[]),
        )
    ):
        build(other / str(number), [row], 0)
        working = tmp_path / f"working{number}"
        working.mkdir()
        (folder / "00000.edges").write_bytes((other / str(number) / "00000.edges").read_bytes())
        with open_leveldb(folder, "a test") as db:
            assert edge_problem(db, folder, working) is not None


def test_edges_of_records_that_contradict_each_other_are_not_written(tmp_path: Path) -> None:
    required = {"p": ["base", "q"], "q": ["c"], "r": ["base"]}
    rows = [dump_row(name, "1", f"{name}-1.zip", requires_dist=some) for name, some in required.items()]
    for number, (deleted, added) in enumerate(
        (
            (b"r\0base\0p", b""),
            (b"r\0base\0p", b"r\0base\0q"),
            (b"r\0c\0q", b""),  # the only dependent of a project
            (b"r\0q\0p", b""),
            (b"d\0p", b""),  # the files of a dependent
            (b"d\0q", b""),  # of one that others require
            (b"d\0r", b""),
        )
    ):
        folder, working = tmp_path / str(number), tmp_path / f"working{number}"
        working.mkdir()
        build(folder, rows, 0)
        with open_leveldb(folder, "a test") as db:
            value = db.get(deleted)
            db.delete(deleted)
            if added:
                db.put(added, value)
            with pytest.raises(LeveldbDamagedError):
                edge_problem(db, folder, working)
            with pytest.raises(LeveldbDamagedError):
                write_edges(db, folder, "00001")
