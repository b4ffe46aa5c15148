"""LevelDB writes and merges tables when a build wants that, and its errors are reported as what they are."""

from pathlib import Path

import plyvel
import pytest

from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import flush, open_leveldb, plyvel_errors_as_damage, settle


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
