"""Records below a prefix are read in key order, and corruption among them is detected."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.open_leveldb import flush, open_leveldb
from pypi_assets.leveldbs.format.records import key, prefix, records_of, scan
from pypi_assets_tests.naming import naming

pytestmark = pytest.mark.usefixtures("binding")

Reading = Callable[[Database, bytes], object]


def all_at_once(db: Database, start: bytes) -> object:
    return list(scan(db, start))


@pytest.mark.parametrize("reading", [all_at_once, records_of])
def test_records_below_a_prefix_are_ordered(tmp_path: Path, reading: Reading) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        for project in ("demo-b", "é", "demo", "dem"):
            for number in "21":
                db.put(key("f", project, number), number.encode())
        assert reading(db, prefix("f", "demo")) == [(b"f\0demo\x001", b"1"), (b"f\0demo\x002", b"2")]
        assert reading(db, prefix("f", "de")) == []
        whole = reading(db, b"f")
        assert whole == sorted(db.iterator())
        assert reading(db, b"") == whole
        assert [one for one, _ in whole] == [  # type: ignore[attr-defined]
            key("f", project, number) for project in ("dem", "demo", "demo-b", "é") for number in "12"
        ]


@pytest.mark.parametrize("reading", [all_at_once, records_of])
def test_checksums_of_records_are_verified(tmp_path: Path, reading: Reading) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        for number in range(20):
            db.put(b"%02d" % number, b"value %02d " % number + os.urandom(1_000))  # a few records fill a block
        flush(db)
    [table] = (tmp_path / "db").glob("*.ldb")
    content = bytearray(table.read_bytes())
    content[content.index(b"value 05")] ^= 1
    table.write_bytes(content)
    for start in (b"", b"0", b"05"):
        with pytest.raises(LeveldbDamagedError, match=naming("x")), open_leveldb(tmp_path / "db", "x") as db:
            reading(db, start)
    with open_leveldb(tmp_path / "db", "x") as db:
        assert len(reading(db, b"1")) == 10  # type: ignore[arg-type]
