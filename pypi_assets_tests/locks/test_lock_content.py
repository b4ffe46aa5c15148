"""Bytes and values of a lock are read within limits; errors name the place."""

from pathlib import Path

import pytest

from pypi_assets.locks import lock_content
from pypi_assets.locks.lock_content import (
    LockError,
    checked_marker,
    checked_version,
    read_bytes,
    read_toml,
    shown,
    table_at,
    tables_at,
    text_at,
    texts_at,
)
from pypi_assets_tests.naming import naming


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text("abcd")
    with pytest.raises(LockError, match=naming("uv.lock", 4, 3)):
        read_bytes(tmp_path / "uv.lock", 3)


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_bytes(b"\xff\xfe")
    with pytest.raises(LockError, match=naming("uv.lock")):
        read_toml(tmp_path / "uv.lock")


def test_values_have_the_type_that_is_expected_or_are_named() -> None:
    content = {"text": "a", "texts": ["a", "b"], "table": {"b": 1}, "tables": [{"c": 1}], "number": 3}
    assert text_at(content, "text", "") == "a"
    assert text_at(content, "none", "") is None
    assert texts_at(content, "text", "") == ["a"]
    assert texts_at(content, "texts", "") == ["a", "b"]
    assert table_at(content, "table", "") == {"b": 1}
    assert tables_at(content, "tables", "") == [{"c": 1}]
    for read in (text_at, texts_at, table_at, tables_at):
        with pytest.raises(LockError, match=naming("package 3", "number", 3)):
            read(content, "number", "package 3: ")


def test_more_entries_than_any_lock_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_content, "MOST_ENTRIES", 1)
    with pytest.raises(LockError, match=naming("package", 2, 1)):
        tables_at({"package": [{}, {}]}, "package", "")


def test_long_values_are_cut() -> None:
    assert len(shown("x" * 10_000)) < 100


@pytest.mark.parametrize("marker", ["python_version < ", "(" * 10_000 + "os_name == 'x'" + ")" * 10_000, "\0"])
def test_a_broken_marker_is_refused(marker: str) -> None:
    assert checked_marker("os_name == 'nt'", "x: ") == "os_name == 'nt'"
    assert checked_marker(None, "x: ") is None
    with pytest.raises(LockError, match=naming("x")):
        checked_marker(marker, "x: ")


def test_a_broken_version_is_refused() -> None:
    assert checked_version("1.0+cu1", "") == "1.0+cu1"
    for version in ("1.*", "", "1" * 10_000):
        with pytest.raises(LockError, match=naming("x")):
            checked_version(version, "x: ")
