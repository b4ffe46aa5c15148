"""Drawn graphs contain all cases in which resolvers differ, and follow from their seeds."""

import random
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.resolve.real_files import RealFiles
from pypi_assets_tests.resolve.requirement_graphs import BEGAN, GraphHistory, RequirementGraph, Upload


@cache
def drawn_uploads() -> list[Upload]:
    return [one for files in RequirementGraph.drawn(300, random.Random(0)).uploads() for one in files]


@cache
def drawn_requirements() -> list[Requirement]:
    return [Requirement(text) for one in drawn_uploads() for text in one.requires_dist]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!=", "~=", "==="])
def test_each_operator_is_drawn(operator: str) -> None:
    assert any(each.operator == operator for one in drawn_requirements() for each in one.specifier)


def test_odd_requirements_are_drawn() -> None:
    markers = {str(one.marker) for one in drawn_requirements() if one.marker}
    specifiers = [each for one in drawn_requirements() for each in one.specifier]
    assert any(each.version.endswith(".*") for each in specifiers)
    assert any(each.prereleases for each in specifiers)
    assert any("!" in each.version for each in specifiers)
    assert any("+" in each.version for each in specifiers)
    assert any(" or " in marker and "extra ==" in marker for marker in markers)
    assert any(one.extras for one in drawn_requirements())
    names = {one.name.lower() for one in drawn_uploads()}
    assert any(one.name.startswith("never-uploaded") for one in drawn_requirements() if one.name.lower() not in names)


def test_odd_versions_and_files_are_drawn() -> None:
    versions = [Version(one.version) for one in drawn_uploads()]
    assert any(one.epoch for one in versions)
    assert any(one.local for one in versions)
    assert any(one.is_postrelease for one in versions)
    assert any(one.is_devrelease for one in versions)
    assert any(one.pre for one in versions)
    assert {one.kind for one in drawn_uploads()} == {"wheel", "sdist"}
    assert any(one.build for one in drawn_uploads())
    assert any(one.requires_python for one in drawn_uploads())
    assert any("win_amd64" in one.tag for one in drawn_uploads())


def test_extras_require_their_own_project() -> None:
    own = [
        text
        for one in drawn_uploads()
        for text in one.requires_dist
        if Requirement(text).name.lower() == one.name.lower()
    ]
    assert any("extra == 'all'" in text for text in own)


def test_graph_is_determined_by_its_seed() -> None:
    def drawn(seed: int) -> list[list[Upload]]:
        return RequirementGraph.drawn(20, random.Random(seed)).uploads()

    assert drawn(1) == drawn(1) != drawn(2)


def test_history_has_yanks_removals_and_quarantines(tmp_path: Path) -> None:
    drawn = random.Random(0)
    graph = RequirementGraph.drawn(45, drawn)
    history, crawls = History(tmp_path / "index"), []
    filled = GraphHistory(tmp_path / "built", history, lambda: crawls.append(0), drawn)
    filled.fill(graph.uploads(), rounds=4)
    assert len(crawls) == 8
    assert set(filled.serials.values()) == {0.75, 1.0}
    last = history.state()
    assert max(filled.serials) <= (last.last_serial or 0)
    actions = {event.action.partition(" ")[0] for event in last.changelog}
    assert {"yank", "remove"} <= actions
    sets = [graph.requirement_set(filled.serials, filled.now) for _ in range(200)]
    assert all(Requirement(text) for one in sets for text in (*one.requirements, *one.constraints))
    assert any(one.prereleases for one in sets)
    assert any(one.constraints for one in sets)
    assert all(BEGAN < one.uploaded_before < filled.now + timedelta(1) for one in sets if one.uploaded_before)


def test_real_files_are_uploaded_without_code(tmp_path: Path) -> None:
    requires = ["other>=1; extra == 'more'"]
    wheel = make_wheel(tmp_path, "real", "1.2", requires_dist=requires, provides_extra=["more"])
    history = History(tmp_path / "index")
    files = RealFiles()
    (tmp_path / "built").mkdir()
    files.upload([wheel], GraphHistory(tmp_path / "built", history, lambda: None, random.Random(0)))
    [release] = history.state().projects["real"].visible_releases()
    [file] = release.files.values()
    assert (file.filename, parse_wheel_filename(wheel.name)[1]) == (wheel.name, Version("1.2"))
    assert file.size < wheel.stat().st_size
    assert requires[0] in history.file_path(file).with_name(file.filename + ".metadata").read_text()
    drawn = random.Random(0)
    assert {len(files.requirement_set(drawn).requirements) for _ in range(20)} == {1}
    assert any("[more]" in files.requirement_set(drawn).requirements[0] for _ in range(20))
