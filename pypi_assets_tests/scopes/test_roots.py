"""What roots are: normalized names with their extras."""

from pathlib import Path

import pytest

from pypi_assets.scopes.roots import Roots, RootsError, joined_roots, named_roots, parsed_requirement, read_toml
from pypi_assets_tests.naming import naming


def test_each_project_is_one_root_with_all_extras_that_are_required_with_it() -> None:
    assert joined_roots([("Demo.Pkg", ["A_b"]), ("six", ()), ("demo_pkg", ["c"])]).extras == {
        "demo-pkg": frozenset({"a-b", "c"}),
        "six": frozenset(),
    }


def test_roots_of_several_files_are_joined() -> None:
    first, second = joined_roots([("a", ["x"]), ("b", ())], ["one"]), joined_roots([("a", ["y"])], ["one", "two"])
    assert first | second == Roots({"a": frozenset({"x", "y"}), "b": frozenset()}, ("one", "two"))


def test_a_person_names_projects_with_or_without_extras() -> None:
    assert named_roots(["Requests[Socks]", "six"]).extras == {"requests": frozenset({"socks"}), "six": frozenset()}


@pytest.mark.parametrize(
    "name", ["", "six==1.0", "six>2", "-r file", "a b", "x @ https://example.org/x.whl", "six; python_version > '3'"]
)
def test_what_is_more_than_a_name_is_refused(name: str) -> None:
    with pytest.raises(RootsError, match=naming(repr(name))):
        named_roots([name])


def test_a_broken_requirement_is_named_with_its_place() -> None:
    with pytest.raises(RootsError, match=naming("setup", "six >")):
        parsed_requirement("six >", "setup")
    with pytest.raises(RootsError, match=naming("setup", 7)):
        parsed_requirement(7, "setup")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("pypi_assets.scopes.roots.LARGEST_BYTES", 3)
    with pytest.raises(RootsError, match=naming(4, 3)):
        read_toml(file)
