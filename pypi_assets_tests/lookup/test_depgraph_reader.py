"""What distributions require, and who requires a project: by name, by version and by prefix."""

import pytest

from pypi_assets.lookup import Distribution, LookupNameError, open_latest
from pypi_assets.lookup.depgraph_reader import parse_requirement, project_answer
from pypi_assets_tests.dump_rows import dump_row
from pypi_assets_tests.lookup.publisher import Publisher


def test_prefixes_stream_in_order(publisher: Publisher) -> None:
    with open_latest("depgraph", publisher.storage) as depgraph:
        assert [one["filename"] for one in depgraph.projects("DEMO_")] == ["demo_b-1.0.tar.gz"]
        assert len(list(depgraph.projects())) == 2
        found = [(one["required"], one["normalized"], one["extra"]) for one in depgraph.all_dependents("b")]
        assert found == [("b-c", "demo", ["1.0"]), ("base", "demo", []), ("base", "demo-b", [])]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("demo", ("demo", None)),
        (" Demo.Pkg_x-1 ", ("Demo.Pkg_x-1", None)),
        ("a", ("a", None)),
        ("demo==1.0", ("demo", "1.0")),
        ("demo == v1!2+local ", ("demo", "v1!2+local")),
        ("demo==no-version", ("demo", "no-version")),
    ],
)
def test_a_name_and_a_version_are_read(requirement: str, expected: tuple[str, str | None]) -> None:
    assert parse_requirement(requirement) == expected


@pytest.mark.parametrize(
    "requirement",
    ["", " ", "demo-", "-demo", "größe", "demo>=1", "demo==", "demo=1", "demo===1", "demo==1,<2", "demo==1;x", "a b"],
)
def test_other_requirements_are_refused(requirement: str) -> None:
    with pytest.raises(LookupNameError, match="is neither a project's NAME nor NAME==VERSION"):
        parse_requirement(requirement)


def test_rows_of_the_catalog_answer_as_a_version_does() -> None:
    rows = [dump_row("demo", version, f"demo-{version}.zip", project="Demo") for version in ("1.10", "1.9", "1.9.0")]
    answer = project_answer(7, rows)
    assert (answer.version, answer.serial) == (None, 7)
    assert [one["version"] for one in answer.results] == ["1.9", "1.9.0", "1.10"]
    assert {(one["project"], one["normalized"]) for one in answer.results} == {("Demo", "demo")}
    assert set(answer.results[0]) == set(Distribution.__annotations__)
    assert [one["version"] for one in project_answer(7, rows, "v1.9").results] == ["1.9", "1.9.0"]
    assert project_answer(7, rows, "2").results == project_answer(7, []).results == ()
