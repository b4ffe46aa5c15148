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
    return [upload for files in RequirementGraph.drawn(300, random.Random(0)).uploads() for upload in files]


@cache
def drawn_requirements() -> list[Requirement]:
    return [Requirement(text) for upload in drawn_uploads() for text in upload.requires_dist]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!=", "~=", "==="])
def test_each_operator_is_drawn(operator: str) -> None:
    assert any(each.operator == operator for requirement in drawn_requirements() for each in requirement.specifier)


def test_odd_requirements_are_drawn() -> None:
    markers = {str(requirement.marker) for requirement in drawn_requirements() if requirement.marker}
    specifiers = [each for requirement in drawn_requirements() for each in requirement.specifier]
    assert any(each.version.endswith(".*") for each in specifiers)
    assert any(each.prereleases for each in specifiers)
    assert any("!" in each.version for each in specifiers)
    assert any("+" in each.version for each in specifiers)
    assert any(" or " in marker and "extra ==" in marker for marker in markers)
    assert any(requirement.extras for requirement in drawn_requirements())
    names = {upload.name.lower() for upload in drawn_uploads()}
    assert any(
        requirement.name.startswith("never-uploaded")
        for requirement in drawn_requirements()
        if requirement.name.lower() not in names
    )


def test_odd_versions_and_files_are_drawn() -> None:
    versions = [Version(upload.version) for upload in drawn_uploads()]
    assert any(version.epoch for version in versions)
    assert any(version.local for version in versions)
    assert any(version.is_postrelease for version in versions)
    assert any(version.is_devrelease for version in versions)
    assert any(version.pre for version in versions)
    assert {upload.kind for upload in drawn_uploads()} == {"wheel", "sdist"}
    assert any(upload.build for upload in drawn_uploads())
    assert any(upload.requires_python for upload in drawn_uploads())
    assert any("win_amd64" in upload.tag for upload in drawn_uploads())


def test_extras_require_their_own_project() -> None:
    own = [
        text
        for upload in drawn_uploads()
        for text in upload.requires_dist
        if Requirement(text).name.lower() == upload.name.lower()
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
    assert all(Requirement(text) for wanted in sets for text in (*wanted.requirements, *wanted.constraints))
    assert any(wanted.prereleases for wanted in sets)
    assert any(wanted.constraints for wanted in sets)
    assert all(BEGAN < wanted.uploaded_before < filled.now + timedelta(1) for wanted in sets if wanted.uploaded_before)


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
