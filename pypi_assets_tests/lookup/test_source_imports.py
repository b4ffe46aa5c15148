"""What a folder imports from elsewhere is found, and nothing that its files contain stops that."""

from pathlib import Path

import pytest

from pypi_assets.lookup import source_imports
from pypi_assets.lookup.owner_ranking import OwnerCandidate
from pypi_assets.lookup.owners import ImportOwners
from pypi_assets.lookup.source_imports import SourceImports, TooManyFilesError, imports_of, owners_of_modules
from pypi_assets_tests.lookup.test_owner_ranking import reasons
from pypi_assets_tests.named import unnamed


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def test_own_modules_and_the_standard_library_are_left_out(tmp_path: Path) -> None:
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
    found = imports_of(folder)
    assert found.modules == {
        "yaml": set(),
        "google.cloud": {"storage"},
        "pytest": set(),
        "requests.adapters": set(),
        "helper": set(),  # scripts/ does not find what is in tests/
    }
    assert found.names() == ["google.cloud", "google.cloud.storage", "helper", "pytest", "requests.adapters", "yaml"]
    assert (found.files, found.left_out) == (6, [])


def test_a_single_file_and_a_folder_within_a_package(tmp_path: Path) -> None:
    write(tmp_path, {"demo/__init__.py": "", "demo/sub/__init__.py": "", "demo/sub/a.py": "import demo.sub.a, b, six"})
    write(tmp_path, {"demo/sub/b.py": ""})
    assert imports_of(tmp_path / "demo" / "sub" / "a.py").modules == {"six": set()}
    assert imports_of(tmp_path / "demo" / "sub").modules == {"six": set()}
    assert imports_of(tmp_path / "demo" / "sub" / "b.py") == SourceImports({}, [], 1)


def test_broken_files_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.py": "import (", "b.py": "x = " + "-" * 100_000 + "1", "c.py": "import yaml", "d.py": "import six"},
    )
    found = imports_of(tmp_path)
    assert found.modules == {"yaml": set(), "six": set()}
    assert [path.name for path, _ in found.left_out] == ["a.py", "b.py"]


def test_a_parser_that_ends_or_hangs_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(source_imports, "SECONDS_FOR_A_FILE", 1.0)
    found = imports_of(tmp_path)
    assert found.modules == {"yaml": set()}
    [_, hung] = [reason for _, reason in found.left_out]
    assert unnamed(hung, "1") == []


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_names_that_are_modules_decide() -> None:
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
