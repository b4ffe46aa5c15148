"""The dump file's format: valid JSON, one row a line, the same bytes each time, and damage is reported."""

import gzip
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.publications.dump_facts import COLUMNS
from pypi_assets.dumps.dump_format import DumpDamagedError, Row, RowError, read_rows, write_rows
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming

_FIRST = {"project": "Demo", "normalized": "demo", "version": "1.0", "filename": "demo-1.0.tar.gz"}


def row(**columns: object) -> Row:
    empty: Row = dict.fromkeys(COLUMNS)
    return empty | _FIRST | {"tombstone": False} | columns


def tombstone(filename: str) -> Row:
    return _FIRST | {"filename": filename, "tombstone": True}


def write(path: Path, rows: Iterable[Row], progress: Callable[[int], None] | None = None) -> int:
    with path.open("wb") as target:
        return write_rows(target, rows, progress)


def read(content: bytes) -> list[Row]:
    return list(read_rows(io.BytesIO(content), "some/file.json.gz"))


def test_a_file_is_one_json_array_with_a_row_per_line(tmp_path: Path) -> None:
    rows = [row(modules=["demo", "démo"], filename="a"), tombstone("b")]
    counts: list[int] = []
    assert write(tmp_path / "x", rows, counts.append) == 2
    assert counts == [2]
    text = gzip.decompress((tmp_path / "x").read_bytes()).decode()
    assert json.loads(text) == rows
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert [json.loads(line.rstrip(",")) for line in lines[1:-1]] == rows
    assert list(json.loads(lines[1].rstrip(","))) == list(COLUMNS)
    assert read((tmp_path / "x").read_bytes()) == rows


def test_no_rows_are_an_empty_array(tmp_path: Path) -> None:
    assert write(tmp_path / "x", []) == 0
    assert json.loads(gzip.decompress((tmp_path / "x").read_bytes())) == []
    assert read((tmp_path / "x").read_bytes()) == []


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [row(filename=f"{number:05}", modules=["m"] * number) for number in range(200)]
    write(tmp_path / "x", iter(rows))
    write(tmp_path / "y", iter(rows))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_what_utf_8_cannot_encode_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "x", [row(modules=["fine", "half\ud800"], requires_dist=[])])
    (read_back,) = read((tmp_path / "x").read_bytes())
    assert read_back["modules"] == ["fine", "half?"]


@pytest.mark.parametrize(
    "wrong",
    [
        [row(extra=1)],
        [_FIRST | {"tombstone": False}],
        [row() | {"tombstone": True}],
        [row(filename="b"), row(filename="a")],
        [row(filename="a"), row(filename="a")],
        [row(normalized="b"), row(normalized="a")],
    ],
)
def test_wrong_columns_and_order_are_refused(tmp_path: Path, wrong: list[Row]) -> None:
    with pytest.raises(RowError):
        write(tmp_path / "x", wrong)


def test_what_is_no_dump_file_is_refused(tmp_path: Path) -> None:
    for text in ("", "{}\n", "[]", "[\n", "[\n{}\n", "[\n1\n]\n", '[\n{"a": \n]\n', "[\n]\n]\n"):
        with pytest.raises(DumpDamagedError, match=r"some/file\.json\.gz"):
            read(gzip.compress(text.encode()))
    with pytest.raises(DumpDamagedError, match=naming("some/file.json.gz", 0)):
        read(b"not gzip at all")


@settings(max_examples=examples(60), deadline=None)
@given(at=st.integers(0, 10_000), flip=st.integers(1, 255), cut=st.booleans())
def test_any_damage_is_reported(tmp_path_factory: pytest.TempPathFactory, at: int, flip: int, cut: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    rows = [row(filename=f"{number:05}", sha256=f"{number * 7919:064x}") for number in range(50)]
    write(path, rows)
    content = bytearray(path.read_bytes())
    at %= len(content)
    if cut:
        del content[at:]
    elif at in {3, 4, 5, 6, 7, 8, 9}:  # gzip's flags, time and system: some values mean nothing
        return
    else:
        content[at] ^= flip
    with pytest.raises(DumpDamagedError):
        read(bytes(content))
