"""Kinds of index: the built-in ones, and one from a separate package that is built and installed here."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.components import index_from
from pypi_assets.errors import SettingsError
from pypi_assets.index.client import IndexClient
from pypi_assets.index.kind_names import BUILT_IN, added_kinds
from pypi_assets.index.kinds import REGISTRY, kind_named
from pypi_assets.settings import load_settings
from pypi_assets_tests.naming import naming

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "made-up-index"
version = "1.0"
[project.entry-points."pypi_assets.indexes"]
made-up = "made_up_index:KIND"
auto = "made_up_index:KIND"
broken = "made_up_index:MISSING"
wrong = "made_up_index:COUNT"
"""
MODULE = """
from pypi_assets.index.kinds import IndexKind

COUNT = 7

class Counting:
    def __init__(self, parts):
        self.parts = parts

    def last_serial(self):
        return COUNT

KIND = IndexKind("made-up", Counting)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the package was built and installed into."""
    source = tmp_path_factory.mktemp("made-up-index")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "made_up_index.py").write_text(MODULE)
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, source], check=True)
    return target


@pytest.fixture
def _with_package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(installed))
    added_kinds.cache_clear()
    yield
    added_kinds.cache_clear()


def test_registry_has_every_builtin_kind() -> None:
    assert set(REGISTRY) == set(BUILT_IN)
    assert all(kind.name == name for name, kind in REGISTRY.items())


@pytest.mark.nightly
@pytest.mark.usefixtures("_with_package")
def test_package_adds_a_kind_without_changes_here() -> None:
    settings = load_settings(lister="made-up", index_url="http://127.0.0.1:9/any/path", projects="demo")
    index = index_from(settings)
    assert index.last_serial() == 7
    parts = index.parts  # type: ignore[attr-defined]
    assert isinstance(parts.client, IndexClient)
    assert parts.client.index_url == parts.client.changelog_url == "http://127.0.0.1:9/any/path/"
    assert parts.projects == {"demo"}


@pytest.mark.usefixtures("_with_package")
def test_builtin_kind_cannot_be_replaced() -> None:
    assert "auto" not in added_kinds()
    assert kind_named("auto") is REGISTRY["auto"]


@pytest.mark.usefixtures("_with_package")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("broken", ["broken", "made_up_index", "MISSING"]),
        ("wrong", ["wrong", "IndexKind"]),
        ("rss", ["PYPI_ASSETS_LISTER", "rss", "made-up"]),
    ],
)
def test_broken_package_is_named(name: str, values: list[str]) -> None:
    with pytest.raises(SettingsError, match=naming(*values)):
        kind_named(name)
