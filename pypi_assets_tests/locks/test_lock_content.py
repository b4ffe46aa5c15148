"""Bytes and values of TOML locks, their entries, and the pins of one version."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.locks import lock_content
from pypi_assets.locks.environments import named_environment
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
    toml_text,
)
from pypi_assets.locks.pins import LockedFile, Pin, RemarkKind, file_of_url, hashes_of, merged, required_name
from pypi_assets_tests.counted_steps import growth
from pypi_assets_tests.naming import mentions, naming


def test_too_large_file_is_rejected_before_reading(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text("abcd")
    with pytest.raises(LockError, match=naming("uv.lock", 4, 3)):
        read_bytes(tmp_path / "uv.lock", 3)


def test_invalid_toml_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_bytes(b"\xff\xfe")
    with pytest.raises(LockError, match=naming("uv.lock")):
        read_toml(tmp_path / "uv.lock")


def test_values_of_unexpected_types_are_named() -> None:
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


def test_too_many_entries_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_content, "MOST_ENTRIES", 1)
    with pytest.raises(LockError, match=naming("package", 2, 1)):
        tables_at({"package": [{}, {}]}, "package", "")


def test_long_values_are_truncated() -> None:
    assert len(shown("x" * 10_000)) < 100


@pytest.mark.parametrize("marker", ["python_version < ", "(" * 10_000 + "os_name == 'x'" + ")" * 10_000, "\0"])
def test_invalid_marker_is_rejected(marker: str) -> None:
    assert checked_marker("os_name == 'nt'", "x: ") == "os_name == 'nt'"
    assert checked_marker(None, "x: ") is None
    with pytest.raises(LockError, match=naming("x")):
        checked_marker(marker, "x: ")


def test_invalid_version_is_rejected() -> None:
    assert checked_version("1.0+cu1", "") == "1.0+cu1"
    for version in ("1.*", "", "1" * 10_000):
        with pytest.raises(LockError, match=naming("x")):
            checked_version(version, "x: ")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_a_round_trip(text: str):
    assert tomllib.loads(f"text = {toml_text(text)}") == {"text": text}


@pytest.mark.parametrize(
    ("url", "filename"),
    [
        ("https://example.org/a/demo-1.0.tar.gz#sha256=00", "demo-1.0.tar.gz"),
        ("files/demo-1.0%2Bcpu.whl", "demo-1.0+cpu.whl"),
        (r"files\demo.whl", "demo.whl"),
        ("https://[x/demo.whl", None),
        ("https://example.org/", None),
        ("", None),
    ],
)
def test_filename_of_url(url: str, filename: str | None) -> None:
    assert file_of_url(url) == filename


def test_hashes_are_lowercased_or_rejected() -> None:
    assert hashes_of("SHA256:AB", "x") == {"sha256": "ab"}
    assert hashes_of(None, "x") == {}
    for text in ("ab", ":ab", "sha256:"):
        with pytest.raises(LockError, match=naming("x")):
            hashes_of(text, "x")


def test_package_without_a_name_is_rejected() -> None:
    assert required_name({"name": "a"}, "x") == "a"
    with pytest.raises(LockError, match=naming("x")):
        required_name({"name": ""}, "x")


def pin(version: str = "1", marker: str | None = None, sha256: str = "", where: str = "line 1") -> Pin:
    files = (LockedFile(None, {"sha256": sha256}),) if sha256 else ()
    return Pin("A", "a", version, where, marker, files=files)


def test_files_and_markers_of_one_version_are_joined() -> None:
    pins, remarks = merged([pin(marker="x", sha256="aa"), pin(marker="y", sha256="bb"), pin(marker="y", sha256="aa")])
    assert [(pin.marker, [file.hashes["sha256"] for file in pin.files]) for pin in pins] == [
        ("(x) or (y)", ["aa", "bb"])
    ]
    assert [remark.kind for remark in remarks] == [RemarkKind.REPEATED]


def test_pin_without_marker_absorbs_markers() -> None:
    assert [merged_pin.marker for merged_pin in merged([pin(marker="x"), pin()])[0]] == [None]


def test_repeated_pin_has_a_remark() -> None:
    [remark] = merged([pin(), pin(where="line 2")])[1]
    assert remark.kind is RemarkKind.REPEATED
    assert mentions(remark.text, "line 2", "A==1", "line 1")


def test_pins_are_sorted_by_name_and_version() -> None:
    assert [merged_pin.version for merged_pin in merged([pin("2"), pin("1")])[0]] == ["1", "2"]


def test_markers_are_joined_flat_in_linear_time() -> None:
    def pins_of(count: int) -> list[Pin]:
        return [pin(marker=f"python_full_version < '3.{number}'", sha256=f"{number:x}") for number in range(count)]

    [joined] = merged(pins_of(3_000))[0]
    assert joined.marker is not None
    assert joined.marker.count("(") == 3_000
    assert len(joined.files) == 3_000
    assert named_environment("3.12").holds(joined.marker) is True
    assert growth(lambda count: merged(pins_of(count)), 50) < 5
