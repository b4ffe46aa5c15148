"""The pages of a release, and of what changed between two."""

from typing import Annotated

from msgspec import Meta
from starlette.routing import Route

from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.release_comparison import compare_releases, is_same
from pypi_assets.lookup.requirement_tree import PastReleases, PublishedReleases, Releases, Tree, requirement_tree
from pypi_assets.service.names import ProjectName, VersionText
from pypi_assets.service.operations import Parameters
from pypi_assets.service.pages.page import Content, Page, View, page_routes
from pypi_assets.service.projects import PROJECT, VERSION
from pypi_assets.service.service import Service

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


def routes(service: Service) -> list[Route]:
    """The routes of these pages."""
    return list(page_routes(service, [RELEASE, CHANGES]))


def tree_of(view: View, project: str, version: str) -> Tree:
    """What a version requires, as a tree, as of the serial of the page."""
    releases: Releases
    if view.pinned is not None:
        releases = PastReleases(view.pinned.catalog, view.pinned.serial)
    else:
        releases = PublishedReleases(view.datasets.reader(DepgraphReader))
    return requirement_tree(releases, project, version)


def _release(view: View, parameters: ReleaseParameters) -> Content:
    release = view.part(VERSION, project=parameters.project, version=parameters.version)
    found = release["result"]
    tree = tree_of(view, found["normalized"], found["version"])
    title = f"{found['project']} {found['version']}"
    return Content(
        title, {"release": release, "requirements": tree}, {"text": title.replace(" ", "=="), "found": found}
    )


def _changes(view: View, parameters: ChangesParameters) -> Content:
    name = parameters.project
    project = view.part(PROJECT, project=name)["result"]
    versions = [one["version"] for one in project["releases"]]
    after = parameters.after or project["newest"]
    before = parameters.before or _version_before(versions, after)
    old, new = (view.part(VERSION, project=name, version=one)["result"] for one in (before, after))
    found = compare_releases(old, new)
    shown = {
        "text": project["project"],
        "found": found,
        "versions": versions[::-1][:_MOST_VERSIONS],
        "is_same": is_same(found),
    }
    return Content(f"{project['project']}: {found['before']} to {found['after']}", {"changes": found}, shown)


def _version_before(versions: list[str], version: str) -> str:
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
