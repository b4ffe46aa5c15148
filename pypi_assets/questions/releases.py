"""The questions `releases` and `release`: list the releases of a project, and show one release."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from packaging.utils import canonicalize_name

from pypi_assets.lookup.depgraph_reader import parse_requirement
from pypi_assets.lookup.hints import newest_version_hint
from pypi_assets.lookup.project_answers import ProjectResult, VersionResult
from pypi_assets.questions.names import ExactProjectName
from pypi_assets.questions.question import Accepts, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot


@dataclass(frozen=True)
class ReleasesParameters(Parameters):
    """Parameters of `releases`."""

    project: ExactProjectName


@dataclass(frozen=True)
class ReleaseParameters(Parameters):
    """Parameters of `release`. Versions are compared canonically."""

    project: ExactProjectName
    version: Annotated[str, Accepts(text="a version, such as 2.32.3", min_length=1, max_length=300)]


def _release_rows(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for release in result["releases"]:
        yield {**release, "files": [file["filename"] for file in release["files"]]}


def _project_and_version(text: str) -> Mapping[str, Any]:
    name, version = parse_requirement(text)
    return {"project": name, "version": version}


def _hints(snapshot: Snapshot, given: ReleaseParameters) -> Iterator[str]:
    versions = snapshot.versions(given.project)
    if versions:
        newest = list(snapshot.distributions(given.project, None).results)[-1]
        yield newest_version_hint(newest["project"], newest["version"])
    else:
        yield from snapshot.project_hints(given.project)


@question(
    "releases",
    path="/v1/projects/{project}",
    example="requests",
    argument="PROJECT",
    result=ProjectResult,
    is_single=True,
    columns=lambda _given: ("version", "yanked", "files"),
    rows=_release_rows,
    nothing_found=lambda given: f"there is no project {canonicalize_name(given.project)}",
    hints=lambda snapshot, given: snapshot.project_hints(given.project),
    unknown=lambda _snapshot, _given: "project",
    project_of=lambda given: given.project,
)
def releases(snapshot: Snapshot, given: ReleasesParameters, _after: After = None) -> Found[ProjectResult]:
    """List the releases of a project with their files, and show the project's metadata.

    Without a catalog, the summary, licence, links, status and the serials of the first and last change are null.
    """
    found = snapshot.project(given.project)
    return snapshot.collected("depgraph", ProjectResult, () if found is None else (found,))


@question(
    "release",
    path="/v1/projects/{project}/{version}",
    example="requests==2.32.3",
    argument="NAME==VERSION",
    split=_project_and_version,
    in_argument=frozenset(("project", "version")),
    result=VersionResult,
    is_single=True,
    columns=lambda _given: ("filename", "kind", "size", "yanked", "requires_python", "requires_dist"),
    rows=lambda result: iter(result["files"]),
    beneath="requires_dist",
    nothing_found=lambda given: f"{canonicalize_name(given.project)} has no version {given.version}",
    hints=_hints,
    unknown=lambda snapshot, given: "version" if snapshot.versions(given.project) else "project",
    project_of=lambda given: given.project,
)
def release(snapshot: Snapshot, given: ReleaseParameters, _after: After = None) -> Found[VersionResult]:
    """Show a version of a project: its files, requirements, extras, modules and commands."""
    found = snapshot.version(given.project, given.version)
    return snapshot.collected("depgraph", VersionResult, () if found is None else (found,))
