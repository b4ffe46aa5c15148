"""Requires-Python of an sdist is what pip builds it from, with a note where PKG-INFO has another."""

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets_tests.builders import make_sdist

PROJECT = '[project]\nname = "demo"\nversion = "1.0"\n'
POETRY = '[build-system]\nbuild-backend = "poetry.core.masonry.api"\n'
SETUP = "from setuptools import setup\n"
OLD, STATIC = "2.1", "2.2"


def setup_py(arguments: str) -> dict[str, str]:
    return {"setup.py": f"{SETUP}setup({arguments})"}


def test_what_pip_builds_from_counts(tmp_path, subtests: pytest.Subtests):
    options = "[options]\npython_requires = >=3.8\n"
    cases = [
        (STATIC, ">=3.7", {"pyproject.toml": f'{PROJECT}requires-python = ">=3.8"'}, ">=3.8", True),
        (STATIC, ">=3.7", {"pyproject.toml": PROJECT}, None, True),
        (STATIC, None, {"pyproject.toml": f'{PROJECT}requires-python = ">=3.8"'}, ">=3.8", True),
        (
            STATIC,
            ">=3.7",
            {"pyproject.toml": f'{PROJECT}dynamic = ["requires-python"]'} | setup_py("x()"),
            ">=3.7",
            False,
        ),
        (OLD, ">=3.7", setup_py("python_requires='>=3.8'"), ">=3.8", True),
        (OLD, None, setup_py("python_requires='>=3.8'"), ">=3.8", False),
        (OLD, ">=3.7", setup_py(""), None, True),
        (OLD, ">=3.7", setup_py("python_requires=unknown()"), ">=3.7", False),
        (OLD, ">=3.7", setup_py("**unknown()"), ">=3.7", False),
        (OLD, ">=3.7", setup_py("pbr=True, python_requires='>=3.8'"), ">=3.7", False),
        (OLD, ">=3.7", setup_py("") | {"setup.cfg": options}, ">=3.8", True),
        (OLD, ">=3.7", {"setup.cfg": options}, ">=3.8", True),
        (OLD, ">=3.7", setup_py("python_requires='>=3.9'") | {"setup.cfg": options}, ">=3.7", False),
        (OLD, ">=3.7", {"setup.cfg": "[flake8]\nx = 1\n"}, ">=3.7", False),
        (
            STATIC,
            ">=3.9,<4.0",
            {"pyproject.toml": f"{POETRY}{PROJECT}[tool.poetry.dependencies]\npython = '^3.10'"},
            ">=3.10,<4.0",
            True,
        ),
        (
            STATIC,
            ">=3.9",
            {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '*'"},
            None,
            True,
        ),
        (
            STATIC,
            ">=3.9",
            {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '3.9.*'"},
            ">=3.9",
            False,
        ),
        (
            STATIC,
            ">=3.9",
            {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '^2.7 || ^3.5'"},
            ">=3.9",
            False,
        ),
    ]
    for version, stated, files, expected, has_note in cases:
        with subtests.test(version=version, stated=stated, files=files):
            headers = [("Requires-Python", stated)] if stated else []
            path = make_sdist(
                tmp_path, "demo", "1.0", files={"demo.py": "", **files}, metadata_version=version, extra_headers=headers
            )
            record = read_path(path)
            assert record.requires_python == expected
            assert any(note.startswith(AMBIGUOUS) for note in record.notes) is has_note


def test_the_same_in_other_words_has_no_note(tmp_path, subtests: pytest.Subtests):
    cases = [
        (">=3.8,<4", setup_py("python_requires='>= 3.8, < 4'")),
        ("<4,>=3.8", {"pyproject.toml": f'{PROJECT}requires-python = ">=3.8.0, <4.0"'}),
        (">=3.9,<4.0", {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '^3.9'"}),
        ("!=3.0.*,>=2.7", setup_py("python_requires='>=2.7,!=3.0.*'")),
    ]
    for stated, files in cases:
        with subtests.test(stated=stated, files=files):
            path = make_sdist(
                tmp_path, "demo", "1.0", files={"demo.py": "", **files}, extra_headers=[("Requires-Python", stated)]
            )
            record = read_path(path)
            assert record.requires_python == stated
            assert not any(note.startswith(AMBIGUOUS) for note in record.notes)
