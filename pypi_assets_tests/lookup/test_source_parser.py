"""Imports are found by parsing, and hostile sources end in a reason."""

from pathlib import Path

import pytest

from pypi_assets.lookup import source_parser
from pypi_assets.lookup.source_parser import NotReadError, imports_in


def imports(tmp_path: Path, source: str | bytes) -> list[tuple[str, list[str]]]:
    path = tmp_path / "source.py"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return imports_in(path)


def test_imports_are_found_wherever_they_are(tmp_path: Path) -> None:
    source = """
import a.b, c as d
from e.f import g as h, i
from j import *
from . import k
from .l import m
from .. import n
def function():
    try:
        import o
    except ImportError:
        from e.f import p
    if TYPE_CHECKING: import q
"""
    assert sorted(imports(tmp_path, source)) == [
        ("a.b", []),
        ("c", []),
        ("e.f", ["g", "i", "p"]),
        ("j", []),
        ("o", []),
        ("q", []),
    ]


def test_encodings_are_those_of_python(tmp_path: Path) -> None:
    assert imports(tmp_path, "# -*- coding: latin-1 -*-\nimport größe\n".encode("latin-1")) == [("größe", [])]
    assert imports(tmp_path, b"\xef\xbb\xbfimport a\r\nimport b\r") == [("a", []), ("b", [])]
    assert imports(tmp_path, b"") == []


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (b"import (\n", "line 1"),
        (b"print 'two'\n", "Python"),
        (b"import a\0b\n", "Python"),
        (b"\xff\xfe\n", "Python"),
        (b"# coding: nonsense\n", "Python"),
        (b"x = a" + b".b" * 50_000, "Python"),
        (b"x = " + b"(" * 500, "Python"),
    ],
)
def test_what_is_no_python_has_a_reason(tmp_path: Path, source: bytes, named: str) -> None:
    with pytest.raises(NotReadError, match=named):
        imports(tmp_path, source)


def test_what_is_not_there_or_too_long_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotReadError):
        imports_in(tmp_path / "missing.py")
    monkeypatch.setattr(source_parser, "MOST_BYTES", 10)
    with pytest.raises(NotReadError, match=r"\b10\b"):
        imports(tmp_path, "import abcdefgh")


def test_imports_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert imports(tmp_path, f"import {'a' * 700}, b") == [("b", [])]
    monkeypatch.setattr(source_parser, "MOST_IMPORTS", 2)
    assert imports(tmp_path, "import a, b, c") == [("a", []), ("b", [])]
