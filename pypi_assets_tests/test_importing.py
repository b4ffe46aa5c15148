"""Workers import the tests in the same order, each from another one on."""

import importlib
from pathlib import Path

import pytest

from pypi_assets_tests import importing


def test_all_modules_are_imported_from_the_share_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = ["a", "b", "c", "d"]
    (tmp_path / "tests").mkdir()
    for name in names:
        (tmp_path / "tests" / f"test_{name}.py").touch()
    (tmp_path / "tests" / "helpers.py").touch()
    imported: list[str] = []

    def note(module: str) -> None:
        imported.append(module.removeprefix("tests.test_"))
        if imported[-1] == "b":
            raise SyntaxError(module)

    monkeypatch.setattr(importing, "ROOT", tmp_path)
    monkeypatch.setattr(importlib, "import_module", note)
    for share, expected in [(0, "abcd"), (0.25, "bcda"), (0.5, "cdab"), (0.9, "dabc")]:
        imported.clear()
        importing.import_tests([tmp_path / "tests", tmp_path / "tests" / "test_a.py"], share)
        assert "".join(imported) == expected
