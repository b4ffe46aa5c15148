"""uv.lock: entries with files, and the graph that has its markers."""

import tomllib
from typing import Any

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import LockedFile, Requires
from pypi_assets.locks.reading import uv_entries, uv_graph
from pypi_assets_tests.counted_steps import growth
from pypi_assets_tests.locks import samples
from pypi_assets_tests.naming import naming


def test_entries_have_files_markers_and_the_index() -> None:
    entries = {(entry.name, entry.version): entry for entry in uv_entries(tomllib.loads(samples.UV))}
    assert entries["extra-dep", "1.0"].files == (LockedFile("extra_dep-1.0.tar.gz", {"sha256": "aa"}),)
    assert entries["yamlish", "1.0+cu12"].files == (
        LockedFile("yamlish-1.0+cu12-py3-none-any.whl", {"sha256": "bb"}),
        LockedFile("yamlish-1.0+cu12-py2-none-any.whl"),
    )
    assert entries["six", "2.0"].marker == "(python_full_version >= '3.12')"
    assert entries["six", "2.0"].index == "https://example.org/simple"
    assert entries["tool", "1.0"].elsewhere == "git"


def test_the_graph_begins_at_the_members_of_the_workspace() -> None:
    graph = uv_graph(tomllib.loads(samples.UV))
    assert graph is not None
    assert graph.roots == (("app", "0.1"),)
    assert Requires(("six", "2.0"), frozenset(), "python_full_version >= '3.12'") in graph.requires["app", "0.1"]
    assert (
        Requires(("old", None), frozenset(), "python_full_version < '3.10'", "legacy") in graph.requires["app", "0.1"]
    )
    assert Requires(("tool", None)) in graph.requires["app", "0.1"]
    assert graph.versions["tool"] == (("tool", "1.0"),)
    assert graph.versions["six"] == (("six", "1.0"), ("six", "2.0"))


def test_the_lock_of_a_script_has_no_graph() -> None:
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
def test_values_of_other_types_are_named_with_their_place(package: dict[str, Any], values: list[object]) -> None:
    content = {"version": 1, "package": [package]}
    with pytest.raises(LockError, match=naming(*values)):
        (list(uv_entries(content)), uv_graph(content))


def lock_of_versions(count: int) -> dict[str, Any]:
    """A lock with that many versions of a project, each of which requires the project without naming a version."""
    required = [{"name": "x"}]
    app = {"name": "app", "version": "1", "source": {"virtual": "."}, "dependencies": required}
    source = {"registry": "https://example.org/simple"}
    versions = [{"name": "x", "version": f"{n}", "source": source, "dependencies": required} for n in range(count)]
    return {"version": 1, "package": [app, *versions]}


def test_the_work_grows_with_the_entries_alone_also_where_versions_are_not_named() -> None:
    locks = {count: lock_of_versions(count) for count in (100, 400)}
    assert growth(lambda count: uv_graph(locks[count]), 100) < 5
