"""What a LevelDB records about itself is read back, and refused where it is not what is expected."""

from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import META_PREFIX, ContentHash, Meta, read_meta, write_meta
from pypi_assets_tests.naming import naming

META = Meta("modules", 1, 5, {"m": 2, "f": 1}, ContentHash().hex)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    meta = Meta("modules", 1, 5, {"m": 2}, ContentHash().hex)
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        with pytest.raises(LeveldbDamagedError, match=naming("x")):
            read_meta(db, "x", dataset="modules", known_format=1)
        write_meta(db, meta)
        assert read_meta(db, "x", dataset="modules", known_format=1) == meta
        write_meta(db, replace(meta, format=2))
        with pytest.raises(UnknownFormatError, match=naming("x", "modules", 2, 1)):
            read_meta(db, "x", dataset="modules", known_format=1)


def test_what_is_written_is_read_back_and_replaces_what_was_there(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        db.put(b"m\0demo", b"not about the LevelDB itself")
        for meta in (META, replace(META, serial=7, counts={}, content_hash="ab" * 32)):
            write_meta(db, meta)
            assert read_meta(db, "x", dataset="modules", known_format=1) == meta
        fields = [record_key for record_key, _ in db.iterator(prefix=META_PREFIX)]
        assert fields == [b"\0content_hash", b"\0counts", b"\0dataset", b"\0format", b"\0serial"]
        assert db.get(b"m\0demo") == b"not about the LevelDB itself"


def test_equal_facts_are_stored_as_equal_bytes(tmp_path: Path) -> None:
    stored = []
    for number, counts in enumerate(({"m": 2, "f": 1}, {"f": 1, "m": 2})):
        with open_leveldb(tmp_path / f"{number}", "x", create=True) as db:
            write_meta(db, replace(META, counts=counts))
            stored.append(dict(db.iterator()))
    assert stored[0] == stored[1]


def test_another_dataset_is_refused(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        write_meta(db, META)
        with pytest.raises(UnknownFormatError, match=naming("x", "modules", 1, "depgraph")):
            read_meta(db, "x", dataset="depgraph", known_format=1)


@pytest.mark.parametrize("field", [b"dataset", b"format", b"serial", b"counts", b"content_hash"])
@pytest.mark.parametrize("value", [None, b"", b"{"])
def test_a_field_that_is_missing_or_not_json_is_damage(tmp_path: Path, field: bytes, value: bytes | None) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        write_meta(db, META)
        db.delete(META_PREFIX + field)
        if value is not None:
            db.put(META_PREFIX + field, value)
        with pytest.raises(LeveldbDamagedError, match=naming("x")):
            read_meta(db, "x", dataset="modules", known_format=1)
