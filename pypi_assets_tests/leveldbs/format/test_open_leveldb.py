"""LevelDB writes and merges tables when a build requests it, and its errors are reported with the right type."""

import os
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import flush, flush_and_merge, leveldb_errors_as_damage, open_leveldb
from pypi_assets.leveldbs.format.records import records_of
from pypi_assets_tests.naming import naming

pytestmark = pytest.mark.usefixtures("binding")


def test_disjoint_flushed_tables_go_to_a_deep_level(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        for names in ("cz", "ab"):
            for name in names:
                db.put(name.encode(), b"x")
            flush(db)
        flush_and_merge(db, lambda: None)
        assert [int(db.get_property(b"leveldb.num-files-at-level%d" % level) or 0) for level in range(3)] == [0, 0, 2]


def test_merging_tables_does_not_hide_corruption(tmp_path: Path) -> None:
    def add(number: int) -> None:
        with open_leveldb(tmp_path / "db", "x", create=not number) as db:
            for name in ("a", "z"):
                db.put(name.encode() * 50, f"{name} number {number}".encode())
            flush_and_merge(db, lambda: None)

    for number in range(5):
        add(number)
    table = max((tmp_path / "db").glob("*.ldb"))
    content = bytearray(table.read_bytes())
    content[content.index(b"number 4")] ^= 1
    table.write_bytes(content)
    with pytest.raises(LeveldbDamagedError, match=naming("x")):
        add(5)  # the fourth table of a level, so they are merged


@pytest.mark.parametrize("number", [0, 1_000, 1_999])
def test_corruption_is_reported_at_any_position(tmp_path: Path, number: int) -> None:
    """Without a check, an iterator that reaches a corrupt last block would end early without an error."""
    values = [os.urandom(40) for _ in range(2_000)]
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        for place, value in enumerate(values):
            db.put(f"{place:04d}".encode(), value)
        flush_and_merge(db, lambda: None)
    [table] = (tmp_path / "db").glob("*.ldb")
    content = bytearray(table.read_bytes())
    content[content.index(values[number])] ^= 1
    table.write_bytes(content)
    with pytest.raises(LeveldbDamagedError, match=naming("x")), open_leveldb(tmp_path / "db", "x") as db:
        list(db.iterator(verify_checksums=True))


def test_changed_byte_in_a_table_never_gives_a_wrong_answer(tmp_path: Path) -> None:
    """This includes the data, the index, the filter and the footer."""
    expected = {f"{place:04d}".encode(): os.urandom(40) for place in range(500)}
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        for key, value in expected.items():
            db.put(key, value)
        flush_and_merge(db, lambda: None)
    [table] = (tmp_path / "db").glob("*.ldb")
    content = table.read_bytes()
    reported = 0
    for place in range(len(content) - 1, 0, -97):
        table.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            with open_leveldb(tmp_path / "db", "x") as db:
                assert dict(records_of(db, b"")) == expected
                assert [records_of(db, key) for key in expected] == [[record] for record in expected.items()]
        except LeveldbDamagedError:
            reported += 1
    assert reported > 250  # all positions except the filter, since LevelDB ignores a corrupt filter


def test_full_disk_is_not_corruption(binding: Any) -> None:
    with pytest.raises(LeveldbError, match=naming("x")) as raised, leveldb_errors_as_damage("x"):
        raise binding.IOError(b"IO error: /x/000003.log: No space left on device")
    assert not isinstance(raised.value, LeveldbDamagedError)
