"""Reading ahead changes no answer, and takes as many reads as there are rounds, whatever the number of projects."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.utils import canonicalize_name
from sqlalchemy import event

from pypi_assets.catalog.database import Catalog
from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import named_environment
from pypi_assets.lookup.depgraph_reader import distributions_of
from pypi_assets.resolve.candidates import Releases
from pypi_assets.resolve.questions import Control, ResolutionQuestion, Semantics, Unknown, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets.resolve.solver_data import UnknownRequirementsError
from pypi_assets_tests.dump_rows import dump_row
from pypi_assets_tests.examples import examples
from pypi_assets_tests.resolve.made_index import ReadReleases, question
from pypi_assets_tests.resolve.requirement_graphs import BEGAN, RequirementGraph, Upload
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

ENVIRONMENTS = [named_environment("3.12", "linux"), named_environment("3.10", "windows")]


@dataclass
class CountedReads:
    """The files of uploads, and the numbers of projects and of releases that each read asked for."""

    files: Mapping[str, Sequence[Mapping[str, Any]]]
    reads: list[tuple[str, int]] = field(default_factory=list)

    def releases(self, projects: Sequence[str]) -> dict[str, "CountedReleases"]:
        self.reads.append(("projects", len(projects)))
        return {project: CountedReleases(self, self.files.get(project, ())) for project in projects}

    def read_files(self, wanted: "Iterable[tuple[CountedReleases, str]]") -> None:
        unread = [(releases, name) for releases, name in wanted if name not in releases.known]
        if unread:
            self.reads.append(("files", len(unread)))
            for releases, name in unread:
                releases.known.add(name)


class CountedReleases(ReadReleases):
    """The releases of a project. A read of one release alone is counted too."""

    def __init__(self, source: CountedReads, files: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(files)
        self._source, self.known = source, set[str]()

    def files(self, name: str) -> Iterable[Mapping[str, Any]]:
        self._source.read_files([(self, name)])
        return super().files(name)


def counted(files: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[ReleaseIndex, CountedReads]:
    """Return an index that reads ahead, with its reads."""
    source = CountedReads(files)

    def releases(project: str) -> Releases:
        return source.releases([project])[project]

    return ReleaseIndex(1, releases, together=source), source


def alone(files: Mapping[str, Sequence[Mapping[str, Any]]]) -> ReleaseIndex:
    """Return an index of the same files that does not read ahead."""
    return ReleaseIndex(1, lambda project: ReadReleases(files.get(project, ())))


def drawn_files(uploads: Iterable[Upload], draw: random.Random) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    for upload in uploads:
        name, stem = canonicalize_name(upload.name), upload.name.replace("-", "_")
        is_wheel = upload.kind == "wheel"
        build = f"{upload.build}-" if upload.build else ""
        row = dump_row(
            name,
            upload.version,
            f"{stem}-{upload.version}-{build}{upload.tag}.whl" if is_wheel else f"{stem}-{upload.version}.tar.gz",
            requires_dist=list(upload.requires_dist) if is_wheel else None,
            requires_python=upload.requires_python,
            yanked=draw.random() < 0.05,
        )
        rows.setdefault(name, []).append(row)
    return {name: distributions_of(of_project) for name, of_project in rows.items()}


def outcome(index: ReleaseIndex, asked: ResolutionQuestion) -> object:
    """Return everything that a resolution answers."""
    try:
        found = resolve(index, asked, most_steps=20_000)
    except UnsolvableError as error:
        return error.proof, error.touched
    except UnknownRequirementsError as error:
        return str(error), error.touched
    except ExpectedError as error:
        return type(error), str(error)
    return (
        found.pins,
        found.roots,
        found.steps,
        found.touched,
        [str(one.required_by) for one in found.releases.values()],
    )


@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 100_000))
def test_drawn_graphs_have_the_same_answers_and_proofs(seed: int) -> None:
    draw = random.Random(seed)
    graph = RequirementGraph.drawn(14, draw)
    files = drawn_files((one for release in graph.uploads() for one in release), draw)
    ahead, _ = counted(files)
    wanted = [graph.requirement_set({1: 1.0}, BEGAN) for _ in range(2)]
    for one in wanted:
        for semantics in Semantics:
            asked = ResolutionQuestion(
                tuple(map(parse_wanted, one.requirements)),
                draw.choice(ENVIRONMENTS),
                tuple(parse_wanted(text) for text in one.constraints if "[" not in text),
                semantics,
                Control.for_all(one.prereleases),
                only_binary=draw.random() < 0.3,
                unknown=draw.choice(list(Unknown)),
                preferred={name: draw.choice(rows)["version"] for name, rows in files.items() if draw.random() < 0.1},
            )
            expected = outcome(alone(files), asked)
            assert outcome(counted(files)[0], asked) == expected
            assert outcome(ahead, asked) == expected  # what an earlier question has read makes no difference


def layers(width: int, depth: int) -> dict[str, list[Any]]:
    """Return projects in layers: each has three releases, and the newest requires two projects of the next layer."""
    rows: dict[str, list[Any]] = {}
    for layer in range(depth):
        for place in range(width):
            below = [f"p{layer + 1}-{(place + step) % width}>=1" for step in (0, 1)] if layer + 1 < depth else []
            name = f"p{layer}-{place}"
            rows[name] = [
                dump_row(name, version, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", requires_dist=below)
                for version in ("1", "2", "3")
            ]
    return {name: distributions_of(of_project) for name, of_project in rows.items()}


def roots(width: int) -> list[str]:
    return [f"p0-{place}" for place in range(width)]


def test_a_round_is_one_read_of_projects_and_one_of_files() -> None:
    for semantics in Semantics:
        index, source = counted(layers(width=20, depth=4))
        found = resolve(index, question(*roots(20), semantics=semantics))
        assert len(found.pins) == 80
        assert source.reads == [("projects", 20), ("files", 20)] * 4


def test_constraints_are_read_together_and_their_pins_with_them() -> None:
    files = layers(width=20, depth=2)
    index, source = counted(files)
    constraints = [f"{name}==2" if name.endswith(("1", "3")) else f"{name}<3" for name in files]
    found = resolve(index, question("p0-0", constraints=constraints))
    assert set(found.pins.values()) == {"2"}
    pinned = sum(one.endswith("==2") for one in constraints)
    assert source.reads == [("projects", 40), ("files", pinned), ("files", 2), ("files", 1)]


def test_project_without_a_fitting_file_is_read_on_with_its_round() -> None:
    files = layers(width=6, depth=2)
    for name in files:
        for file in files[name]:
            if file["version"] != "1":
                file["requires_python"] = "<3"
    index, source = counted(files)
    found = resolve(index, question(*roots(6)))
    assert set(found.pins.values()) == {"1"}
    assert [kind for kind, _ in source.reads] == ["projects", "files", "files", "files"] * 2


def test_nothing_is_followed_if_a_requirement_allows_no_version() -> None:
    index, source = counted(layers(width=4, depth=4))
    with pytest.raises(UnsolvableError):
        resolve(index, question("p0-0", "p1-0<1"))
    assert source.reads == [("projects", 2), ("files", 1), ("files", 1)]  # for the check of p0-0, and for the proof


@pytest.fixture
def layered(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    serial = 0
    for width, depth in ((2, 3), (8, 3), (2, 6)):
        prefix = f"w{width}d{depth}"
        for layer in range(depth):
            for place in range(width):
                below = [f"{prefix}-{layer + 1}-{one}>=1" for one in (place, (place + 1) % width)]
                for version in ("1", "2"):
                    serial += 1
                    name = f"{prefix}-{layer}-{place}"
                    small.add(
                        serial,
                        name,
                        version,
                        f"{name.replace('-', '_')}-{version}-py3-none-any.whl",
                        requires_dist=tuple(below) if layer + 1 < depth else (),
                    )
    small.complete(serial + 1)
    yield small
    small.catalog.close()


def executed(catalog: Catalog, index: ReleaseIndex, asked: ResolutionQuestion, count: int) -> int:
    """Return the number of statements of a resolution, whose answer must have `count` projects."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        found = resolve(index, asked)
    finally:
        event.remove(catalog.engine, "before_cursor_execute", note)
    assert len(found.pins) == count
    return len(statements)


def test_statements_of_a_past_resolution_grow_with_rounds_and_not_with_projects(layered: SmallCatalog) -> None:
    catalog = layered.catalog
    serial = 2 * (2 * 3 + 8 * 3 + 2 * 6)
    for semantics in Semantics:

        def statements(width: int, depth: int, semantics: Semantics = semantics) -> int:
            asked = question(*(f"w{width}d{depth}-0-{place}" for place in range(width)), semantics=semantics)
            return executed(catalog, past_index(catalog, serial), asked, width * depth)

        narrow, wide, deep = statements(2, 3), statements(8, 3), statements(2, 6)
        assert wide == narrow
        of_a_round, others = divmod(deep - narrow, 3)
        assert others == 0
        assert of_a_round <= 4  # two statements, and on PostgreSQL one more before each
        assert narrow <= 3 * of_a_round + 4  # and some once for an index


def test_past_resolutions_are_equal_with_and_without_reading_ahead(layered: SmallCatalog) -> None:
    for serial in (5, 13, 40, 80):
        for asked in (question("w8d3-0-3", "w2d6-0-0"), question("w2d3-0-0", "w8d3-1-1<2", semantics=Semantics.UV)):
            ahead = past_index(layered.catalog, serial)
            single = ReleaseIndex(serial, past_index(layered.catalog, serial).releases, ahead.absence)
            assert outcome(ahead, asked) == outcome(single, asked)
            assert outcome(ahead, asked) == outcome(single, asked)
