"""pylock.toml by PEP 751."""

import tomllib
from typing import Any

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import LockedFile
from pypi_assets.locks.reading import pylock_entries
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


def test_a_package_without_version_has_that_of_its_files(subtests: pytest.Subtests) -> None:
    def packages(*files: str) -> dict[str, Any]:
        hashes = {"sha256": "0" * 64}
        tables = [{"name": name, "url": f"https://example.org/{name}", "hashes": hashes} for name in files]
        sdists = [table for table in tables if table["name"].endswith(".gz")]
        package = {"name": "plain-kit", "wheels": [table for table in tables if table not in sdists]}
        content = {"lock-version": "1.0", "created-by": "a test", "packages": [package]}
        return content if not sdists else {**content, "packages": [{**package, "sdist": sdists[0]}]}

    cases = [
        (["plain_kit-1.0-py3-none-any.whl"], "1.0"),
        (["plain_kit-1.0-py3-none-any.whl", "plain-kit-1.0.tar.gz"], "1.0"),
        (["plain-kit-2.1.tar.gz"], "2.1"),
    ]
    for files, version in cases:
        with subtests.test(files=files):
            [entry] = pylock_entries(packages(*files))
            assert entry.version == version
    with pytest.raises(LockError, match=naming("plain-kit", "1.0", "2.0")):
        list(pylock_entries(packages("plain_kit-1.0-py3-none-any.whl", "plain_kit-2.0-py3-none-any.whl")))
