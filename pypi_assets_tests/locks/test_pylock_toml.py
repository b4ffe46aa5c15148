"""pylock.toml by PEP 751."""

import tomllib
from typing import Any

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import LockedFile
from pypi_assets.locks.pylock_toml import pylock_entries
from pypi_assets_tests.locks import samples
from pypi_assets_tests.naming import naming

BASE = {"lock-version": "1.0", "created-by": "x"}


def test_entries_have_markers_and_files() -> None:
    pyyaml, forked = pylock_entries(tomllib.loads(samples.PYLOCK))
    assert pyyaml.files == (
        LockedFile("pyyaml-6.0.2.tar.gz", {"sha256": "cc"}),
        LockedFile("PyYAML-6.0.2-py3-none-any.whl", {"sha256": "dd"}),
    )
    assert (pyyaml.marker, pyyaml.index) == ('python_version >= "3.9"', "https://example.org/simple")
    assert forked.elsewhere == "version control"


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ({}, ["lock-version"]),
        (BASE | {"packages": [{"name": "a", "version": "1"}]}, ["packages[0]"]),
        (BASE | {"packages": [{"name": "A", "version": "1"}]}, ["packages[0].name", "A"]),
        (BASE | {"packages": [{"name": "a", "marker": "(" * 5000 + "x"}]}, ["packages[0].marker"]),
    ],
)
def test_another_format_is_refused_by_its_key(content: dict[str, Any], values: list[str]) -> None:
    with pytest.raises(LockError, match=naming(*values)):
        list(pylock_entries(content))
