"""Lock files: packages locked from an index are roots, and packages from other sources are reported."""

from pathlib import Path

import pytest

from pypi_assets.scopes.root_files import Roots, RootsError, lock_reader
from pypi_assets_tests.naming import naming

UV = """
version = 1
revision = 3
requires-python = ">=3.11"
[[package]]
name = "mine"
version = "0.1.0"
source = { editable = "." }
dependencies = [{ name = "requests" }]
[[package]]
name = "requests"
version = "2.32.0"
source = { registry = "https://example.org/simple" }
[[package]]
name = "forked"
version = "1.0"
source = { git = "https://example.org/forked.git" }
"""
POETRY = """
[[package]]
name = "Requests"
version = "2.32.0"
[[package]]
name = "private"
version = "1"
[package.source]
type = "legacy"
url = "https://example.org/simple"
[[package]]
name = "forked"
version = "1"
[package.source]
type = "git"
url = "https://example.org/forked.git"
[metadata]
lock-version = "2.1"
"""
PYLOCK = """
lock-version = "1.0"
created-by = "a test"
[[packages]]
name = "requests"
version = "2.32.0"
[[packages.wheels]]
name = "requests-2.32.0-py3-none-any.whl"
url = "https://example.org/requests-2.32.0-py3-none-any.whl"
hashes = { sha256 = "00" }
[[packages]]
name = "forked"
[packages.vcs]
type = "git"
url = "https://example.org/forked.git"
commit-id = "1234"
[[packages]]
name = "mine"
[packages.directory]
path = "."
"""


def read(folder: Path, filename: str, text: str) -> Roots:
    (folder / filename).write_text(text)
    reader = lock_reader(filename)
    assert reader is not None
    return reader(folder / filename)


@pytest.mark.parametrize(
    ("filename", "text", "names", "skipped"),
    [
        ("uv.lock", UV, ["requests"], ["mine comes from editable", "forked comes from git"]),
        ("poetry.lock", POETRY, ["private", "requests"], ["forked comes from git"]),
        ("pylock.toml", PYLOCK, ["requests"], ["forked comes from version control", "mine comes from a folder"]),
        ("pylock.dev.toml", PYLOCK, ["requests"], ["forked comes from version control", "mine comes from a folder"]),
    ],
)
def test_packages_locked_from_an_index_are_roots(
    tmp_path: Path, filename: str, text: str, names: list[str], skipped: list[str]
) -> None:
    roots = read(tmp_path, filename, text)
    assert roots.extras == dict.fromkeys(names, frozenset())
    assert [each.partition(": ")[2].partition(",")[0] for each in roots.skipped] == skipped


def test_files_with_other_names_are_not_locks() -> None:
    assert [lock_reader(name) for name in ("requirements.txt", "pylock.txt", "pylock.a.b.toml", "Pipfile.lock")] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("filename", "text", "values"),
    [
        ("uv.lock", "version = 2", ["uv.lock", "version", 1, 2]),
        ("uv.lock", "version = 1\n[package]\nname = 'x'", ["uv.lock", "package"]),
        ("uv.lock", "version = 1\n[[package]]\nversion = '1'", ["uv.lock", "package 1"]),
        ("poetry.lock", "", ["poetry.lock", "metadata.lock-version", "1.x", "2.x"]),
        ("pylock.toml", "lock-version = '1.0'", ["pylock.toml", "created-by"]),
        ("pylock.toml", "lock-version = '2.0'\ncreated-by = 'x'\npackages = []", ["pylock.toml", "2.0"]),
        ("pylock.toml", "lock-version = [", ["pylock.toml"]),
    ],
)
def test_unknown_lock_format_is_rejected_with_its_key(
    tmp_path: Path, filename: str, text: str, values: list[object]
) -> None:
    with pytest.raises(RootsError, match=naming(*values)):
        read(tmp_path, filename, text)
