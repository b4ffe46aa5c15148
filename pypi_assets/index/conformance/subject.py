"""The description of an index that an author gives to the checks, and what all checks use."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pypi_assets.index.conformance.lab import IndexReading, Lab, LabClock, expect, folded
from pypi_assets.index.conformance.site import Request, SiteAnswer, serving
from pypi_assets.index.conformance.world import World
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.index.kinds import IndexKind

_STEPS = 12


class Subject:
    """A kind of index, and the answers of a server of that kind."""

    kind: IndexKind
    index_path = "/simple/"
    changelog_path = "/pypi"
    has_hashes = True
    """Whether pages have the SHA-256 of each file."""
    has_yanks = True
    """Whether pages show yanked files with their reasons."""
    can_overwrite = True
    """Whether the index may replace the bytes of a file."""

    def answer(self, world: World, request: Request) -> SiteAnswer | None:
        """Return the answer of the server if `world` is its content, or None for a 404."""
        raise NotImplementedError

    @contextmanager
    def new_world(self) -> Iterator[World]:
        """Yield an empty world. Override it if another program must learn of each step of the script."""
        yield World()

    @contextmanager
    def lab(self) -> Iterator[Lab]:
        """Yield an empty world with a server."""
        clock = LabClock()
        with self.new_world() as world, serving(lambda request: self.answer(world, request), clock.now) as site:
            yield Lab(self.kind, world, site, clock, self.index_path, self.changelog_path)


def expect_exact(lab: Lab, reading: object) -> None:
    """Raise ConformanceError unless pages and events lead to the files of the world."""
    if not isinstance(reading, IndexReading):
        raise TypeError(reading)
    live, shown, told = lab.world.live(), reading.shown(), folded(reading.events)
    expect(shown == live, f"pages show {shown}, and the index has {live}")
    expect(told == live, f"events lead to {told}, and the index has {live}")


def script(world: World, steps: int = _STEPS) -> Iterator[int]:
    """Change the world step by step: uploads, deletions, and names that return."""
    draw = random.Random(1)
    for step in range(steps):
        names = sorted(world.projects)
        name = draw.choice(["one", "Two.x", "three"])
        files = sorted(world.projects.get(name, {}))
        kind = draw.choice(["add", "add", "remove file", "remove project"])
        if kind == "remove file" and len(files) > 1:
            world.remove_file(name, files[0])
        elif kind == "remove project" and len(names) > 1 and name in names:
            world.remove_project(name)
        else:
            world.add(name, f"{step}.0")
        yield step


def either(query: Callable[[], object]) -> object:
    """Return the result of `query`, or its error of an index. Other errors are raised."""
    try:
        return query()
    except PackageIndexError as error:
        return error
