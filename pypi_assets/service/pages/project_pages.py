"""The pages of a project: overview, releases, dependents, history, one release, and a comparison of two releases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from pypi_assets.catalog.observed.projects import CORRECTED
from pypi_assets.catalog.reports.project_history import VISIT
from pypi_assets.index.actions import Action
from pypi_assets.lookup.release_comparison import compare_releases, is_same
from pypi_assets.lookup.requirement_tree import Tree, requirement_tree
from pypi_assets.service.pages.page import Content, View, page, page_operations, shell_requirement
from pypi_assets.service.pages.timeline import moments, timelines
from pypi_assets.service.parameters import CursorText, OperationParameters, ProjectName, VersionText
from pypi_assets.service.problems import ProblemError, not_found
from pypi_assets.service.questions import operation
from pypi_assets.version_order import canonical_version

_FEW = 10
_A_PAGE = 100
_MOST_VERSIONS = 200
_ENDS = frozenset({Action.QUARANTINE_PROJECT, Action.UNQUARANTINE_PROJECT, Action.REMOVE_PROJECT})
"""Kinds of events that can leave a project without files. The last such event is the reason."""


class ProjectPageParameters(OperationParameters, frozen=True):
    """The project of a page."""

    project: ProjectName


class PageNumberParameters(ProjectPageParameters, frozen=True):
    """The project, and the page of its list."""

    page: Annotated[int, Meta(ge=1, le=1_000_000, description="the number of a page, counted from 1")] = 1


class CursorParameters(ProjectPageParameters, frozen=True):
    """The project, and the position in its list of dependents."""

    cursor: CursorText | None = None


@page(
    "/project/{project}",
    "project.html",
    "Show a project: its releases over time, its requirements and contents, and its dependents",
)
def _project(view: View, parameters: ProjectPageParameters) -> Content:
    name = parameters.project
    history = view.optional_part(operation("history"), project=name)
    try:
        project = view.part(operation("releases"), project=name)
    except ProblemError as error:
        if error.problem.status != 404 or not (history and history["results"]):
            raise
        return _removed(name, history)
    newest = project["result"]["newest"]
    tree: Tree | None = tree_of(view, name, newest) if newest else None
    release = view.part(operation("release"), project=name, version=newest) if newest else None
    parts = {
        "project": project,
        "release": release,
        "requirements": tree,
        "dependents": view.part(operation("dependents"), project=name, limit=_FEW),
        "history": history,
    }
    releases = project["result"]["releases"]
    entries = _entries(history)
    versions = named_versions(releases)
    return Content(
        project["result"]["project"],
        parts,
        {
            "text": project["result"]["project"],
            "found": project["result"],
            "newest": release and release["result"],
            "requirement": shell_requirement(project["result"]["normalized"]),
            "releases": releases[::-1][:_FEW],
            "entries": entries[::-1][:_FEW],
            "entry_count": len(entries),
            "drawn": timelines(moments(releases, entries)),
            "versions": versions[::-1][:_MOST_VERSIONS],
            "before": version_before(versions, newest),
        },
    )


def _removed(name: str, history: dict[str, Any]) -> Content:
    """Return the page of a project that has no live files any more."""
    entries = _entries(history)
    ends = [one["kind"] for one in entries if one["kind"] in _ENDS]
    shown = {
        "text": name,
        "found": None,
        "is_quarantined": ends[-1:] == [Action.QUARANTINE_PROJECT],
        "entries": entries[::-1][:_FEW],
        "entry_count": len(entries),
        "drawn": timelines(moments((), entries)),
    }
    return Content(name, {"project": None, "history": history}, {**shown, "name": name})


@page("/releases/{project}", "releases.html", "List all releases of a project")
def _releases(view: View, parameters: PageNumberParameters) -> Content:
    project = view.part(operation("releases"), project=parameters.project)
    found = project["result"]
    some, pages = _page_of(found["releases"][::-1], parameters.page)
    shown = {"text": found["project"], "found": found, "releases": some, "number": parameters.page, "pages": pages}
    return Content(f"Releases of {found['project']}", {"project": project}, shown)


@page("/dependents/{project}", "dependents.html", "List all projects that require a project")
def _dependents(view: View, parameters: CursorParameters) -> Content:
    name = parameters.project
    found = view.part(operation("dependents"), project=name, limit=_A_PAGE, cursor=parameters.cursor)
    return Content(f"What requires {name}", {"dependents": found}, {"text": name, "name": name})


@page("/history/{project}", "history.html", "Show what happened to a project")
def _history(view: View, parameters: PageNumberParameters) -> Content:
    name = parameters.project
    history = view.part(operation("history"), project=name)
    entries = _entries(history)
    some, pages = _page_of(entries[::-1], parameters.page)
    shown = {
        "text": name,
        "name": name,
        "entries": some,
        "number": parameters.page,
        "pages": pages,
        "entry_count": len(entries),
        "drawn": timelines(moments((), entries)),
    }
    return Content(f"History of {name}", {"history": history}, shown)


def _entries(history: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the history of a project without visits of its page, and without corrections that change no state."""
    return [one for one in history["results"] if _is_shown(one)] if history else []


def _is_shown(entry: dict[str, Any]) -> bool:
    changes_state = any(entry[name] for name in ("live", "away", "yanked", "unyanked"))
    return entry["kind"] != VISIT and (entry["kind"] != CORRECTED or changes_state)


def _page_of(all_of_it: Sequence[dict[str, Any]], number: int) -> tuple[Sequence[dict[str, Any]], int]:
    """Return the entries of a page, and the number of pages."""
    return all_of_it[(number - 1) * _A_PAGE : number * _A_PAGE], max(1, -(-len(all_of_it) // _A_PAGE))


class ReleasePageParameters(OperationParameters, frozen=True):
    """The release of a page."""

    project: ProjectName
    version: VersionText


class ComparisonParameters(OperationParameters, frozen=True):
    """Two versions of a project to compare; by default, the newest version and the version before it."""

    project: ProjectName
    before: Annotated[str, Meta(max_length=300, description="the earlier version; default: the one before")] = ""
    after: Annotated[str, Meta(max_length=300, description="the later version; default: the newest")] = ""


def tree_of(view: View, project: str, version: str) -> Tree:
    """Return the requirements of a version as a tree, as of the page's serial."""
    return requirement_tree(view.snapshot, project, version)


@page("/release/{project}/{version}", "release.html", "Show a release: its files, requirements and contents")
def _release(view: View, parameters: ReleasePageParameters) -> Content:
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


@page("/changes/{project}", "changes.html", "Show what changed between two versions of a project")
def _changes(view: View, parameters: ComparisonParameters) -> Content:
    name = parameters.project
    project = view.part(operation("releases"), project=name)["result"]
    versions = named_versions(project["releases"])
    if not versions:
        raise not_found(f"no file of {name} has a version in its name", parameter="project")
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
    """Return the versions of releases in order, without the empty version of files whose names contain none."""
    return [one["version"] for one in releases if one["version"]]


def version_before(versions: list[str], version: str) -> str:
    """Return the version before this one, or this one if it is the first or unknown."""
    canonical = [canonical_version(one) for one in versions]
    wanted = canonical_version(version)
    place = canonical.index(wanted) if wanted in canonical else 0
    return versions[place - 1] if place else version


OPERATIONS = page_operations(_project, _releases, _dependents, _history, _release, _changes)
