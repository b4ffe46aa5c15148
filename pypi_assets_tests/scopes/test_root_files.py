"""The kind of a file is that of its name."""

from pathlib import Path

import pytest

from pypi_assets.scopes.root_files import read_roots
from pypi_assets.scopes.roots import RootsError
from pypi_assets_tests.naming import naming

PYLOCK = """
lock-version = "1.0"
created-by = "a test"
[[packages]]
name = "six"
[[packages.wheels]]
name = "six-1-py3-none-any.whl"
path = "six-1-py3-none-any.whl"
hashes = { sha256 = "00" }
"""


@pytest.mark.parametrize(
    ("filename", "text"),
    [
        ("requirements.txt", "six\n"),
        ("names", "six"),
        ("requirements-dev.in", "six>1"),
        ("pyproject.toml", "[project]\ndependencies = ['six']"),
        ("uv.lock", "version = 1\n[[package]]\nname = 'six'\nsource = {registry = 'x'}"),
        ("poetry.lock", "[[package]]\nname = 'six'\n[metadata]\nlock-version = '2.0'"),
        (
            "pylock.ci.toml",
            PYLOCK,
        ),
    ],
)
def test_each_kind_is_read_by_its_name(tmp_path: Path, filename: str, text: str) -> None:
    (tmp_path / filename).write_text(text)
    assert list(read_roots(tmp_path / filename).extras) == ["six"]


@pytest.mark.parametrize("filename", ["Pipfile.lock", "setup.toml"])
def test_a_file_of_another_kind_is_refused_with_the_known_ones(tmp_path: Path, filename: str) -> None:
    with pytest.raises(RootsError, match=naming("uv.lock", "poetry.lock", "pylock.toml")):
        read_roots(tmp_path / filename)
