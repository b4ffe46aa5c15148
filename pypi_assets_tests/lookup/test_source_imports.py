"""Imports of sources are found by parsing. Hostile sources produce a reason."""

from pathlib import Path

import pytest

from pypi_assets.lookup import source_imports, source_parser
from pypi_assets.lookup.import_owners import ImportOwners
from pypi_assets.lookup.owner_ranking import OwnerCandidate
from pypi_assets.lookup.source_imports import SourceImports, TooManyFilesError, imports_of, owners_of_modules
from pypi_assets.lookup.source_parser import NotReadError, imports_in
from pypi_assets_tests.lookup.test_owner_ranking import reasons
from pypi_assets_tests.named import unnamed


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def test_own_modules_and_the_standard_library_are_skipped(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "work",
        {
            "src/demo/__init__.py": "import os, json.decoder, demo.a\nfrom demo import a\nfrom . import b\nimport yaml",
            "src/demo/a.py": "import distutils.util\nfrom google.cloud import storage, mine",
            "src/google/cloud/mine.py": "",
            "tests/helper.py": "",
            "tests/test_a.py": "import helper, tests.helper, demo, pytest\nfrom google.cloud.mine import x",
            "scripts/tool.py": "import demo, requests.adapters, helper",
            ".venv/lib/hidden.py": "import hidden_import",
            "env/pyvenv.cfg": "",
            "env/lib/foreign.py": "import foreign_import",
            "node_modules/x.py": "import node_import",
            "notes.txt": "import text",
        },
    )
    scan = imports_of(folder)
    assert scan.modules == {
        "yaml": set(),
        "google.cloud": {"storage"},
        "pytest": set(),
        "requests.adapters": set(),
        "helper": set(),  # scripts/ cannot import modules of tests/
    }
    assert scan.names() == ["google.cloud", "google.cloud.storage", "helper", "pytest", "requests.adapters", "yaml"]
    assert (scan.files, scan.left_out) == (6, [])


def test_single_file_or_folder_within_a_package_is_scanned(tmp_path: Path) -> None:
    write(tmp_path, {"demo/__init__.py": "", "demo/sub/__init__.py": "", "demo/sub/a.py": "import demo.sub.a, b, six"})
    write(tmp_path, {"demo/sub/b.py": ""})
    assert imports_of(tmp_path / "demo" / "sub" / "a.py").modules == {"six": set()}
    assert imports_of(tmp_path / "demo" / "sub").modules == {"six": set()}
    assert imports_of(tmp_path / "demo" / "sub" / "b.py") == SourceImports({}, [], 1)


def test_broken_files_are_named_and_the_others_are_scanned(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.py": "import (", "b.py": "x = " + "-" * 100_000 + "1", "c.py": "import yaml", "d.py": "import six"},
    )
    scan = imports_of(tmp_path)
    assert scan.modules == {"yaml": set(), "six": set()}
    assert [path.name for path, _ in scan.left_out] == ["a.py", "b.py"]


def test_crashed_or_hanging_parser_skips_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.py": "end", "b.py": "hang", "c.py": "import yaml"})
    program = """
import sys, json, time
for line in sys.stdin:
    text = open(json.loads(line)).read()
    if text == "end": sys.exit(1)
    if text == "hang": time.sleep(60)
    print('{"imports": [["yaml", []]]}', flush=True)
"""
    monkeypatch.setattr(source_imports, "_PROGRAM", program)
    monkeypatch.setattr(source_imports, "SECONDS_FOR_A_FILE", 3.0)
    scan = imports_of(tmp_path)
    assert scan.modules == {"yaml": set()}
    [_, hung] = [reason for _, reason in scan.left_out]
    assert unnamed(hung, "3") == []


def test_too_many_files_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.py": "", "b.py": ""})
    monkeypatch.setattr(source_imports, "MOST_FILES", 1)
    with pytest.raises(TooManyFilesError, match=r"\b1\b"):
        imports_of(tmp_path)


def answer(name: str, module: str | None, *best: tuple[str, float]) -> ImportOwners:
    candidates = [
        OwnerCandidate(project=one, normalized=one, rank=rank, score=score, reasons=reasons(), versions=["1"])
        for rank, (one, score) in enumerate(best, 1)
    ]
    return {"import": name, "module": module, "serial": 1, "candidates": candidates}


def kept(module: str, name: str, *answers: ImportOwners) -> list[str]:
    return [one["import"] for one in owners_of_modules(SourceImports({module: {name}}), answers)]


def test_known_submodules_decide() -> None:
    cloud = answer("google.cloud", "google.cloud", ("google-cloud-core", 9))
    storage = answer("google.cloud.storage", "google.cloud.storage", ("google-cloud-storage", 8))
    assert kept("google.cloud", "storage", cloud, storage) == ["google.cloud.storage"]
    numpy, array = answer("numpy", "numpy", ("numpy", 9)), answer("numpy.array", "numpy", ("numpy", 9))
    assert kept("numpy", "array", numpy, array) == ["numpy"]
    linalg = answer("numpy.linalg", "numpy.linalg", ("numpy", 9))
    assert kept("numpy", "linalg", numpy, linalg) == ["numpy"]
    squat = answer("numpy.array", "numpy.array", ("evil", 2))
    assert kept("numpy", "array", numpy, squat) == ["numpy", "numpy.array"]
    unknown = answer("x", None), answer("x.y", None)
    assert kept("x", "y", *unknown) == ["x"]


def imports(tmp_path: Path, source: str | bytes) -> list[tuple[str, list[str]]]:
    path = tmp_path / "source.py"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return imports_in(path)


def test_imports_are_found_at_any_position(tmp_path: Path) -> None:
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


def test_encodings_are_detected_as_python_does(tmp_path: Path) -> None:
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
def test_invalid_python_has_a_reason(tmp_path: Path, source: bytes, named: str) -> None:
    with pytest.raises(NotReadError, match=named):
        imports(tmp_path, source)


def test_missing_or_too_long_file_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotReadError):
        imports_in(tmp_path / "missing.py")
    monkeypatch.setattr(source_parser, "MOST_BYTES", 10)
    with pytest.raises(NotReadError, match=r"\b10\b"):
        imports(tmp_path, "import abcdefgh")


def test_number_of_imports_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert imports(tmp_path, f"import {'a' * 700}, b") == [("b", [])]
    monkeypatch.setattr(source_parser, "MOST_IMPORTS", 2)
    assert imports(tmp_path, "import a, b, c") == [("a", []), ("b", [])]
