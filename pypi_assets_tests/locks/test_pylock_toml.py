"""The entries of pylock.toml, poetry.lock and uv.lock."""

import tomllib
from typing import Any

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.lock_formats import poetry_entries, pylock_entries, uv_entries, uv_graph
from pypi_assets.locks.pins import LockedFile, Requires
from pypi_assets_tests.counted_steps import growth
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
def test_other_format_is_rejected_by_its_key(content: dict[str, Any], values: list[str]) -> None:
    with pytest.raises(LockError, match=naming(*values)):
        list(pylock_entries(content))


def test_package_without_version_gets_its_files_version(subtests: pytest.Subtests) -> None:
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


def test_entries_of_poetry_have_markers_and_files() -> None:
    entries = {entry.name: entry for entry in poetry_entries(tomllib.loads(samples.POETRY))}
    assert entries["PyYAML"].files == (LockedFile("PyYAML-6.0.2-py3-none-any.whl", {"sha256": "dd"}),)
    assert entries["PyYAML"].marker == "python_version >= '3.9'"
    assert entries["grouped"].marker == "(sys_platform == 'win32') or (python_version < '3')"
    assert entries["forked"].elsewhere == "git"


def test_entries_have_files_markers_and_index() -> None:
    entries = {(entry.name, entry.version): entry for entry in uv_entries(tomllib.loads(samples.UV))}
    assert entries["extra-dep", "1.0"].files == (LockedFile("extra_dep-1.0.tar.gz", {"sha256": "aa"}),)
    assert entries["yamlish", "1.0+cu12"].files == (
        LockedFile("yamlish-1.0+cu12-py3-none-any.whl", {"sha256": "bb"}),
        LockedFile("yamlish-1.0+cu12-py2-none-any.whl"),
    )
    assert entries["six", "2.0"].marker == "(python_full_version >= '3.12')"
    assert entries["six", "2.0"].index == "https://example.org/simple"
    assert entries["tool", "1.0"].elsewhere == "git"


def test_graph_starts_at_workspace_members() -> None:
    graph = uv_graph(tomllib.loads(samples.UV))
    assert graph is not None
    [root] = graph.roots
    assert root[:2] == ("app", "0.1")
    registry = "[('registry', 'https://example.org/simple')]"
    required = graph.requires[root]
    assert Requires(("six", "2.0", registry), frozenset(), "python_full_version >= '3.12'") in required
    assert Requires(("old", None, ""), frozenset(), "python_full_version < '3.10'", "legacy") in required
    assert Requires(("tool", None, "")) in required
    assert [node[:2] for node in graph.versions["tool"]] == [("tool", "1.0")]
    assert graph.versions["six"] == (("six", "1.0", registry), ("six", "2.0", registry))


def test_lock_without_a_root_has_no_graph() -> None:
    assert uv_graph({"version": 1, "package": [{"name": "a", "version": "1", "source": {"registry": "x"}}]}) is None


@pytest.mark.parametrize(
    ("package", "values"),
    [
        ({"name": "a", "source": []}, ["package 1", "source"]),
        ({"name": "a", "wheels": {}}, ["package 1", "a", "wheels"]),
        ({"name": "a", "wheels": [{"hash": "x"}]}, ["package 1", "a", "hash", "x"]),
        ({"name": "a", "resolution-markers": ["x"]}, ["package 1", "a", "resolution-markers", "x"]),
        ({"name": "a", "dependencies": [{"name": "b", "marker": "x"}]}, ["package 1", "dependencies 1", "x"]),
        ({"name": "a", "dependencies": ["b"]}, ["package 1", "dependencies", "b"]),
        ({"name": "a", "optional-dependencies": {"x": 3}}, ["package 1", "optional-dependencies.x", 3]),
    ],
)
def test_values_of_other_types_are_named_with_their_position(package: dict[str, Any], values: list[object]) -> None:
    content = {"version": 1, "package": [package]}
    with pytest.raises(LockError, match=naming(*values)):
        (list(uv_entries(content)), uv_graph(content))


def lock_of_versions(count: int) -> dict[str, Any]:
    """Return a lock with `count` versions of a project, each of which requires the project without naming a version."""
    required = [{"name": "x"}]
    app = {"name": "app", "version": "1", "source": {"virtual": "."}, "dependencies": required}
    source = {"registry": "https://example.org/simple"}
    versions = [{"name": "x", "version": f"{n}", "source": source, "dependencies": required} for n in range(count)]
    return {"version": 1, "package": [app, *versions]}


def test_unversioned_dependencies_take_linear_time() -> None:
    locks = {count: lock_of_versions(count) for count in (100, 400)}
    assert growth(lambda count: uv_graph(locks[count]), 100) < 5
