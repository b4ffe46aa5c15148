"""The pages of a release, and of what changed between two."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.lookup.release_comparison import compare_releases, is_same
from pypi_assets.lookup.requirement_tree import Tree, requirement_tree
from pypi_assets.service.pages.install import shell_requirement
from pypi_assets.service.pages.page import Content, Page, View, page_operations
from pypi_assets.service.parameters import Parameters, ProjectName, VersionText
from pypi_assets.service.problems import not_found
from pypi_assets.service.questions import operation

_MOST_VERSIONS = 200


class ReleaseParameters(Parameters, frozen=True):
    """Which release."""

    project: ProjectName
    version: VersionText


class ChangesParameters(Parameters, frozen=True):
    """Which two versions of a project; without them, the newest and the one before."""

    project: ProjectName
    before: Annotated[str, Meta(max_length=300, description="the earlier version; empty: the one before")] = ""
    after: Annotated[str, Meta(max_length=300, description="the later version; empty: the newest")] = ""


def tree_of(view: View, project: str, version: str) -> Tree:
    """What a version requires, as a tree, as of the serial of the page."""
    return requirement_tree(view.snapshot, project, version)


def _release(view: View, parameters: ReleaseParameters) -> Content:
    release = view.part(operation("release"), project=parameters.project, version=parameters.version)
    found = release["result"]
    tree = tree_of(view, found["normalized"], found["version"])
    title = f"{found['project']} {found['version']}"
    shown = {
        "text": title.replace(" ", "=="),
        "found": found,
        "requirement": shell_requirement(found["normalized"], found["version"]),
    }
    return Content(title, {"release": release, "requirements": tree}, shown)


def _changes(view: View, parameters: ChangesParameters) -> Content:
    name = parameters.project
    project = view.part(operation("releases"), project=name)["result"]
    versions = named_versions(project["releases"])
    if not versions:
        raise not_found(f"no version of {name} has a name", parameter="project")
    after = parameters.after or project["newest"] or versions[-1]
    before = parameters.before or version_before(versions, after)
    old, new = (view.part(operation("release"), project=name, version=one)["result"] for one in (before, after))
    found = compare_releases(old, new)
    shown = {
        "text": project["project"],
        "found": found,
        "versions": versions[::-1][:_MOST_VERSIONS],
        "is_same": is_same(found),
    }
    return Content(f"{project['project']}: {found['before']} to {found['after']}", {"changes": found}, shown)


def named_versions(releases: Iterable[Mapping[str, Any]]) -> list[str]:
    """The versions of releases, in their order, without that of files whose names have none."""
    return [one["version"] for one in releases if one["version"]]


def version_before(versions: list[str], version: str) -> str:
    """The version before this one, in order; itself where it is the first, or not known."""
    canonical = [canonical_version(one) for one in versions]
    wanted = canonical_version(version)
    place = canonical.index(wanted) if wanted in canonical else 0
    return versions[place - 1] if place else version


RELEASE = Page(
    path="/release/{project}/{version}",
    template="release.html",
    summary="A release: its files, what it requires and what it provides",
    parameters=ReleaseParameters,
    content=_release,
)
CHANGES = Page(
    path="/changes/{project}",
    template="changes.html",
    summary="What changed between two versions of a project",
    parameters=ChangesParameters,
    content=_changes,
)
OPERATIONS = page_operations(RELEASE, CHANGES)
