"""The kind of a root file is determined by its name."""

from pathlib import Path

import pytest

from pypi_assets.scopes.root_files import (
    Roots,
    RootsError,
    joined_roots,
    named_roots,
    parsed_requirement,
    read_roots,
    read_toml,
)
from pypi_assets_tests.naming import naming


def test_project_is_one_root_with_all_its_required_extras() -> None:
    assert joined_roots([("Demo.Pkg", ["A_b"]), ("six", ()), ("demo_pkg", ["c"])]).extras == {
        "demo-pkg": frozenset({"a-b", "c"}),
        "six": frozenset(),
    }


def test_roots_of_several_files_are_merged() -> None:
    first, second = joined_roots([("a", ["x"]), ("b", ())], ["one"]), joined_roots([("a", ["y"])], ["one", "two"])
    assert first | second == Roots({"a": frozenset({"x", "y"}), "b": frozenset()}, ("one", "two"))


def test_named_roots_accept_extras() -> None:
    assert named_roots(["Requests[Socks]", "six"]).extras == {"requests": frozenset({"socks"}), "six": frozenset()}


@pytest.mark.parametrize(
    "name", ["", "six==1.0", "six>2", "-r file", "a b", "x @ https://example.org/x.whl", "six; python_version > '3'"]
)
def test_named_root_with_more_than_a_name_is_rejected(name: str) -> None:
    with pytest.raises(RootsError, match=naming(repr(name))):
        named_roots([name])


def test_invalid_requirement_is_reported_with_its_place() -> None:
    with pytest.raises(RootsError, match=naming("setup", "six >")):
        parsed_requirement("six >", "setup")
    with pytest.raises(RootsError, match=naming("setup", 7)):
        parsed_requirement(7, "setup")


def test_unreadable_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RootsError, match=naming("none.toml")):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(RootsError, match=naming(tmp_path)):
        read_toml(tmp_path)
    file = tmp_path / "x.toml"
    file.write_bytes(b"a = \xff")
    with pytest.raises(RootsError, match=naming("x.toml")):
        read_toml(file)
    file.write_text("a = ")
    with pytest.raises(RootsError, match=naming("x.toml")):
        read_toml(file)
    monkeypatch.setattr("pypi_assets.scopes.root_files.LARGEST_BYTES", 3)
    with pytest.raises(RootsError, match=naming(4, 3)):
        read_toml(file)


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
def test_each_kind_of_file_is_recognized_by_its_name(tmp_path: Path, filename: str, text: str) -> None:
    (tmp_path / filename).write_text(text)
    assert list(read_roots(tmp_path / filename).extras) == ["six"]


@pytest.mark.parametrize("filename", ["Pipfile.lock", "setup.toml"])
def test_file_of_unknown_kind_is_rejected_with_the_known_kinds(tmp_path: Path, filename: str) -> None:
    with pytest.raises(RootsError, match=naming("uv.lock", "poetry.lock", "pylock.toml")):
        read_roots(tmp_path / filename)
