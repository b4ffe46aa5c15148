"""An index of drawn and real projects, followed from its first file, from which real uv and pip resolve."""

import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import platform_tags

from pypi_assets.catalog.database import Catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.locks.environments import Environment, named_environment
from pypi_assets.resolve.questions import Semantics
from pypi_assets.service.server import running
from pypi_assets.service.service import open_service
from pypi_assets_tests.installers import Answer, resolve_by_pip, resolve_by_uv
from pypi_assets_tests.resolve.real_files import RealFiles
from pypi_assets_tests.resolve.requirement_graphs import BEGAN, GraphHistory, RequirementGraph, RequirementSet
from pypi_assets_tests.resolve.validity import ShownIndex, Target, faults
from pypi_assets_tests.service.forked_pip import ForkedPip, forked_pip
from pypi_assets_tests.service.published import published_index

ENVIRONMENTS: Mapping[Semantics, Sequence[str]] = {
    Semantics.UV: ("3.12 linux", "3.11 macos", "3.13 windows", "3.10 linux"),
    Semantics.PIP: ("running",),  # pip evaluates markers for the running Python
}
"""The environments that each installer resolves for."""
_PLATFORMS = {
    "linux": {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "macos": {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
    "windows": {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64"},
}
_SHARE_OF_REAL_SETS = 0.2


@dataclass(frozen=True)
class Place:
    """An environment, in the form that each resolver and checker needs."""

    name: str
    environment: Environment
    target: Target
    uv_options: tuple[str, ...] = ()

    @classmethod
    def named(cls, name: str) -> "Place":
        """Return the place of one of ENVIRONMENTS."""
        if name == "running":
            target = Target.running()
            return cls(name, Environment(sys.version_info[:3], tuple(platform_tags()), target.variables), target)
        python, platform = name.split()
        environment = named_environment(python, platform)
        target = Target.cpython(int(python.partition(".")[2]), _PLATFORMS[platform], environment.platforms or ())
        return cls(name, environment, target, (f"--python-version={python}", f"--python-platform={platform}"))


@dataclass(frozen=True)
class GraphIndex:
    """An index with a history that `catalog` has followed, and the service at `url` that serves each serial."""

    graph: RequirementGraph
    history: GraphHistory
    real_files: RealFiles | None
    catalog: Catalog
    url: str
    pip: ForkedPip
    folder: Path

    def draw(self, sets: int, seed: int) -> list[RequirementSet]:
        """Draw `sets` requirement sets, including real files if there are any."""
        drawn = random.Random(seed)
        self.graph.random.seed(seed)
        return [
            self.real_files.requirement_set(drawn)
            if self.real_files and drawn.random() < _SHARE_OF_REAL_SETS
            else self.graph.requirement_set(self.history.serials, self.history.now)
            for _ in range(sets)
        ]

    def pins_of(self, installer: Semantics, wanted: RequirementSet, place: Place) -> Mapping[str, str] | None:
        """Return the pins of uv or pip, or None if unsolvable. Raise AssertionError for other failures."""
        answer = self._answer_of(installer, wanted, place)
        if answer.pins is None and not answer.has_no_solution:
            raise AssertionError(f"{installer} fails on {wanted}:\n{answer.printed}")
        return answer.pins

    def faults_of(
        self, semantics: Semantics, wanted: RequirementSet, place: Place, pins: Mapping[str, str] | None
    ) -> list[str]:
        """Return the faults of a solution, if there is one."""
        if pins is None:
            return []
        return faults(ShownIndex(self.history.history, wanted.serial), wanted, place.target, semantics, pins)

    def _answer_of(self, installer: Semantics, wanted: RequirementSet, place: Place) -> Answer:
        url, before = f"{self.url}at/{wanted.serial}/simple/", wanted.uploaded_before
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            (folder / "constraints.txt").write_text("".join(f"{constraint}\n" for constraint in wanted.constraints))
            options = [f"--constraint={folder / 'constraints.txt'}"]
            if installer is Semantics.UV:
                options += [*place.uv_options, f"--cache-dir={self.folder / 'uv'}"]
                options += ["--prerelease=allow"] * wanted.prereleases
                options += [f"--exclude-newer={before.isoformat()}"] if before else []
                return resolve_by_uv(url, wanted.requirements, folder, options)
            options += ["--only-binary=:all:", *["--pre"] * wanted.prereleases]
            options += [f"--uploaded-prior-to={before.isoformat()}"] if before else []
            return resolve_by_pip(self.pip, url, wanted.requirements, folder, options)


@contextmanager
def graph_index(folder: Path, projects: int, seed: int, corpus: Sequence[Path] = ()) -> Iterator[GraphIndex]:
    """Yield an index of `projects` projects and the wheels of `corpus`."""
    drawn = random.Random(seed)
    graph = RequirementGraph.drawn(projects, drawn)
    with ExitStack() as stack:
        published = stack.enter_context(published_index(folder))
        published.index.wheel("first", "1.0", at=BEGAN)
        crawl_full(published.index.crawler(published.catalog))

        def crawl() -> None:
            crawl_incremental(published.index.crawler(published.catalog))

        history = GraphHistory(folder / "built", published.index.history, crawl, drawn)
        history.fill(graph.uploads(), rounds=6)
        real_files = RealFiles() if corpus else None
        if real_files:
            real_files.upload(corpus, history)
        service = open_service(published.settings())
        stack.callback(service.close)
        url = stack.enter_context(running(service))
        pip = stack.enter_context(forked_pip())
        yield GraphIndex(graph, history, real_files, published.catalog, url, pip, folder)
