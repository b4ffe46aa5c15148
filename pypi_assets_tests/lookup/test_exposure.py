"""Projects exposed to an affected version, by their allowed versions and by solutions."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pypi_assets.lookup.advisories import Advisories, read_advisories
from pypi_assets.lookup.exposure import ExposedSolution, Exposure, exposed, exposed_solutions
from pypi_assets.lookup.newest_requirements import NewestRequirements
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.test_advisories import record, stored
from pypi_assets_tests.lookup.test_release_impact import REJECTED, Files, Model, files_drawn, published
from pypi_assets_tests.lookup.test_requirement_filters import environments

FILES: Files = {
    ("base", "1.0", ".zip"): (False, []),
    ("base", "1.5", ".zip"): (True, []),
    ("base", "2.0", ".zip"): (False, []),
    ("base", "3.0rc1", ".zip"): (False, []),
    ("new", "1.0", ".zip"): (False, ["base"]),
    ("old", "1.0", ".zip"): (False, ["Base<2"]),
    ("pinned", "1.0", ".zip"): (False, ["base==1.5"]),
    ("pre", "1.0", ".zip"): (False, ["base>=3.0rc1"]),
    ("divided", "1.0", ".zip"): (False, ["base<2; os_name == 'nt'", "base>=2; extra == 'x'"]),
    ("away", "1.0", ".zip"): (False, ["base @ https://example.org/base.zip", "base>9"]),
}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[NewestRequirements]:
    with published(tmp_path, FILES) as (_, past):
        yield past


def affecting(folder: Path, **versions: list[str]) -> Advisories:
    return read_advisories(
        stored(folder, **{name: record("base", versions=affected) for name, affected in versions.items()})
    )


def test_newest_allowed_version_decides(graph: NewestRequirements, tmp_path: Path) -> None:
    advisories = affecting(tmp_path / "osv", A=["1.0"], B=["1.5"], C=["3.0rc1"])
    rows = list(exposed(graph, advisories))
    assert rows[0] == Exposure(
        required="base",
        allowed="1.0",
        advisories=["A"],
        normalized="divided",
        version="1.0",
        condition="marker",
        requirements=["base<2; os_name == 'nt'"],
    )
    assert [(row["normalized"], row["allowed"], row["advisories"]) for row in rows[1:]] == [
        ("old", "1.0", ["A"]),
        ("pinned", "1.5", ["B"]),
        ("pre", "3.0rc1", ["C"]),
    ]
    newest = list(exposed(graph, affecting(tmp_path / "newest", D=["2.0"])))
    assert [(row["normalized"], row["condition"]) for row in newest] == [("divided", "extra"), ("new", "always")]
    assert list(exposed(graph, affecting(tmp_path / "none", E=["7"]))) == []


def test_affected_pins_of_solutions_are_found(tmp_path: Path) -> None:
    advisories = affecting(tmp_path / "osv", A=["1.0", "2.0"], B=["2.0"])
    pins = {"app": {"app": "7", "base": "2.0", "other": "1.0"}, "fine": {"base": "3.0"}}
    assert list(exposed_solutions(["app", "fine", "unsolvable"], advisories, pins.get)) == [
        ExposedSolution(
            normalized="app", chosen="7", required="base", version="2.0", advisories=["A", "B"], undecided=None
        )
    ]


def newest_allowed(requirements: list[Requirement], files: Files) -> str | None:
    """Return the newest allowed version by `packaging`, from the installable files of `base` if there are any."""
    specifier = SpecifierSet(
        ",".join(str(requirement.specifier) for requirement in requirements if requirement.specifier)
    )
    yanked: dict[str, bool] = {}
    of_base = {one: is_yanked for one, (is_yanked, _) in files.items() if one[0] == "base"}
    taken = {one: is_yanked for one, is_yanked in of_base.items() if one[2] != REJECTED} or of_base
    for (_, version, _), is_yanked in taken.items():
        yanked[version] = yanked.get(version, True) and is_yanked
    parsed = {}
    for version in yanked:
        try:
            parsed[version] = Version(version)
        except InvalidVersion:
            continue
    live = [version for version in parsed if not yanked[version]]
    found = list(specifier.filter(live))
    if not found and any(one.operator == "==" for one in specifier):
        found = list(specifier.filter(version for version in parsed if yanked[version]))
    return max(found, key=lambda version: parsed[version], default=None)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(files=files_drawn, affected=st.sets(st.sampled_from(["1.0", "2.0", "2.0.post1", "3.0rc1"]), min_size=1))
def test_exposure_matches_a_search_over_all_rows(files: Files, affected: set[str]) -> None:
    model = Model(files)
    expected = set()
    for project, (_, lists) in model.newest.items():
        for requires in lists:
            of_base = [
                requirement
                for requirement in requires
                if requirement != "-" and canonicalize_name(Requirement(requirement).name) == "base"
            ]
            for environment in environments([one for one in of_base if Requirement(one).url is None]):
                allowed = newest_allowed(environment, files) if environment else None
                if allowed and project != "base" and any(Version(allowed) == Version(one) for one in affected):
                    expected.add((project, Version(allowed)))
    with tempfile.TemporaryDirectory() as folder:
        advisories = affecting(Path(folder) / "osv", A=sorted(affected))
        with published(Path(folder), files) as (depgraph, past):
            rows = list(exposed(depgraph, advisories))
            assert {(row["normalized"], Version(row["allowed"])) for row in rows} == expected
            assert rows == list(exposed(past, advisories))
