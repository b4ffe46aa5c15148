"""Indexes of a few projects, written down by tests."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pypi_assets.locks.environments import Environment, named_environment
from pypi_assets.lookup.depgraph_reader import distributions_of
from pypi_assets.resolve.candidates import Releases, Row
from pypi_assets.resolve.questions import ResolutionQuestion, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets_tests.dump_rows import dump_row

LINUX = named_environment("3.12", "linux")
Release = Sequence[str] | None | Mapping[str, Any]
"""The requirements of a release (None if unknown), or columns of its row. `wheel` and `sdist` name its files."""


class ReadReleases:
    """The releases of files that were read before."""

    def __init__(self, files: Iterable[Row]) -> None:
        self._files: defaultdict[str, list[Row]] = defaultdict(list)
        for file in files:
            self._files[file["version"]].append(file)
        self.names = list(self._files)

    def files(self, name: str) -> Iterable[Row]:
        return self._files[name]


class MadeIndex(ReleaseIndex):
    """Releases by project and version. Each has one wheel for all environments, unless its columns differ."""

    def __init__(
        self, projects: Mapping[str, Mapping[str, Release]], absences: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(100, self._read, (absences or {}).get)
        self.projects, self.reads = projects, list[str]()

    def _read(self, project: str) -> Releases:
        self.reads.append(project)
        rows = []
        for version, release in self.projects.get(project, {}).items():
            columns = dict(release) if isinstance(release, Mapping) else {"requires_dist": release}
            filenames = columns.pop("filenames", [f"{project.replace('-', '_')}-{version}-py3-none-any.whl"])
            rows += [dump_row(project, version, filename, **columns) for filename in filenames]
        return ReadReleases(distributions_of(rows))


def question(
    *requirements: str, environment: Environment = LINUX, constraints: Sequence[str] = (), **options: Any
) -> ResolutionQuestion:
    """Return the question for these requirements, for CPython 3.12 on Linux by default."""
    return ResolutionQuestion(
        tuple(map(parse_wanted, requirements)), environment, tuple(map(parse_wanted, constraints)), **options
    )
