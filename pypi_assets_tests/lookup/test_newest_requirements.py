"""What newest releases require is the same of a published version and of the catalog at its serial."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.leveldbs.datasets.depgraph import records
from pypi_assets.lookup.newest_requirements import NewestRelease, NewestRequirements
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.test_impact import PROJECTS, REJECTED, Files, files_drawn, published

FILES: Files = {
    ("demo", "1.0", ".zip"): (False, ["a"]),
    ("demo", "2.0", ".zip"): (False, ["b", "c"]),
    ("demo", "2.0.0", ".whl"): (True, ["b", "c"]),
    ("demo", "2.0.0", ".tar.gz"): (False, ["d"]),
    ("demo", "3.0", ".zip"): (True, ["e"]),
    ("demo", "4.0", ".zip"): (True, None),
    ("demo", "5.0", REJECTED): (False, ["m"]),
    ("demo", "2.0.0", REJECTED): (False, ["m"]),
    ("other", "1", ".zip"): (False, None),
    ("rejected", "1", REJECTED): (True, ["m"]),
    ("third", "1", ".zip"): (False, ["Demo>=2"]),
}


def found_in(graph: NewestRequirements, projects: tuple[str, ...]) -> list[object]:
    newest = [one and (one.version, [tuple(some) for some in one.requirements]) for one in graph.newest(projects)]
    return [
        *newest,
        *(sorted(graph.versions(one)) for one in projects),
        *(list(graph.requiring(one)) for one in "abmt"),
    ]


@pytest.mark.parametrize("few", [2, 20])
def test_the_newest_release_has_the_lists_of_its_files_and_no_others(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "FEW_FILES", few)
    with published(tmp_path, FILES) as (depgraph, past):

        def check(graph: NewestRequirements) -> bool:
            demo, other, none = graph.newest(["demo", "other", "nope"])
            assert demo == NewestRelease("2.0", demo.requirements) if demo else False
            assert sorted(map(list, demo.requirements)) == [["b", "c"], ["d"]]
            assert (other and (other.version, list(other.requirements)), none) == (("1", []), None)
            assert sorted(graph.versions("demo")) == [
                ("1.0", False),
                ("2.0", False),
                ("2.0.0", False),
                ("3.0", True),
                ("4.0", True),
            ]
            assert list(graph.versions("nope")) == list(graph.requiring("m")) == []
            assert list(graph.versions("rejected")) == [("1", True)]
            assert (list(graph.requiring("demo")), list(graph.requiring("e"))) == (["third"], ["demo"])
            return True

        assert check(past)
        assert check(depgraph)


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(files=files_drawn)
def test_both_find_the_same(files: Files) -> None:
    with tempfile.TemporaryDirectory() as folder, published(Path(folder), files) as (depgraph, past):
        assert found_in(depgraph, PROJECTS) == found_in(past, PROJECTS)
