"""The page of a resolution: the versions that an installer would choose, as a tree, compared with another moment."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.reports.moments import time_of
from pypi_assets.locks.environments import PLATFORMS
from pypi_assets.questions.names import DEFAULT_PLATFORM, DEFAULT_PYTHON, PLATFORM, PYTHON
from pypi_assets.questions.resolutions import ResolveParameters, resolved_by
from pypi_assets.resolve.blame import changed_pins
from pypi_assets.resolve.formats.json_answer import ChosenReleaseResult, ResolutionResult
from pypi_assets.resolve.targets import PYTHONS
from pypi_assets.service.answering import JobResolver
from pypi_assets.service.pages.page import Content, View, page, page_operations
from pypi_assets.service.parameters import OperationParameters, limited
from pypi_assets.service.pins import PIN_ACCEPTS, Pinned, exact_serial, parse_pin
from pypi_assets.service.problems import ProblemError, bad_parameter
from pypi_assets.service.questions import snapshot_of
from pypi_assets.service.service import Service

_MOST = 200
"""The limit of requirements. They are part of the page's address."""


class ResolvePageParameters(OperationParameters, frozen=True):
    """The requirements to resolve, and another moment to compare with."""

    requirements: Annotated[str, Meta(max_length=4_000, description=f"up to {_MOST} requirements, one a line")] = ""
    python: limited(str, PYTHON) = DEFAULT_PYTHON  # type: ignore[valid-type]
    platform: limited(str, PLATFORM) = DEFAULT_PLATFORM  # type: ignore[valid-type]
    semantics: Literal["pip", "uv"] = "pip"
    than: Annotated[str, Meta(max_length=40, description=f"another moment: {PIN_ACCEPTS}; empty: none")] = ""


class TreeLine(msgspec.Struct):
    """One line of the tree: a release at a depth, with the requirement that leads to it.

    `is_above` means that its requirements are shown further up. `is_open` means that its requirements follow, one level
    deeper. `ends` is the number of lists that end after this line.
    """

    depth: int
    release: ChosenReleaseResult
    requirement: str
    is_above: bool
    is_open: bool
    ends: int = 0


class PinDifference(msgspec.Struct, frozen=True):
    """A project whose version differs. `before` is its version at the other moment.

    A version is None if the project is not chosen then.
    """

    project: str
    normalized: str
    before: str | None
    after: str | None


@page("/resolve", "resolve.html", "Show the versions that an installer would choose, now or at a serial")
def _resolve(view: View, parameters: ResolvePageParameters) -> Content:
    lines = [line.strip() for line in parameters.requirements.splitlines() if line.strip()]
    form = {
        "requirements": lines,
        "parameters": parameters,
        "pythons": PYTHONS,
        "platforms": [name for name in PLATFORMS if "-" in name],
    }
    if not lines:
        return Content("Resolve", {"resolution": None}, {**form, "found": None})
    if len(lines) > _MOST:
        raise bad_parameter("requirements", f"there are {len(lines)} requirements", f"up to {_MOST}, one a line")
    asked = ResolveParameters(
        requirements=tuple(lines),
        python=parameters.python,
        platform=parameters.platform,
        semantics=parameters.semantics,
    )
    found = _resolved(view, view.pinned, asked)
    parts: dict[str, Any] = {"resolution": found}
    shown: dict[str, Any] = {**form, "found": found, "tree": tree(found), "other": None}
    if parameters.than:
        view.is_lasting = False  # knowledge about the other serial can change while this one stays the same
        other = _pinned(view.service, parameters.than)
        parts["other"] = _resolved(view, other, asked)
        shown |= {"other": other, "before": parts["other"], "differences": differences(parts["other"], found)}
    return Content("Resolve", parts, shown)


def _resolved(view: View, pinned: Pinned | None, asked: ResolveParameters) -> ResolutionResult:
    snapshot = snapshot_of(view.service, pinned or view.service.datasets())
    [found] = resolved_by(JobResolver(view.service, pinned, view.call.client), snapshot, asked).results
    return found


def tree(found: ResolutionResult) -> list[TreeLine]:
    """Return the tree of releases below the requested ones, from top to bottom. A release is opened at its first place.

    An index can contain requirement chains of any length, so the lines are a flat list with depths and are not nested.
    """
    releases = {one["normalized"]: one for one in found["releases"] or ()}
    texts: dict[tuple[str, str | None], dict[str, None]] = {}
    for name, release in releases.items():
        for one in release["required_by"]:
            texts.setdefault((name, one["normalized"]), {})[one["requirement"]] = None
    waiting: list[tuple[int, str, str | None]] = [
        (0, name, None) for name in reversed(found["roots"]) if name in releases
    ]
    lines: list[TreeLine] = []
    opened: set[str] = set()
    while waiting:
        depth, name, by = waiting.pop()
        is_above = name in opened
        opened.add(name)
        below = [] if is_above else releases[name]["requires"]
        waiting += [(depth + 1, one["normalized"], name) for one in reversed(below)]
        requirement = " and ".join(texts.get((name, by), ()))
        lines.append(TreeLine(depth, releases[name], requirement, is_above, bool(below)))
    for line, following in zip_longest(lines, lines[1:]):
        line.ends = max(line.depth - (following.depth if following else 0), 0)
    return lines


def differences(before: ResolutionResult, after: ResolutionResult) -> list[PinDifference]:
    """Return the projects whose versions differ between two answers, by name."""
    releases = [*(before["releases"] or ()), *(after["releases"] or ())]
    projects = {one["normalized"]: one["project"] for one in releases}
    changed = changed_pins(_pins(before), _pins(after))
    return [PinDifference(projects[name], name, *versions) for name, versions in changed.items()]


def _pins(found: ResolutionResult) -> Mapping[str, str]:
    return {one["normalized"]: one["version"] for one in found["releases"] or ()}


def _pinned(service: Service, text: str) -> Pinned:
    """Return the other moment. Raises ProblemError."""
    catalog = service.require_catalog()
    try:
        moment = parse_pin(text.strip()).moment
    except ProblemError as error:
        raise bad_parameter("than", error.problem.detail, PIN_ACCEPTS) from None
    serial = exact_serial(service, catalog, moment, "than")
    with catalog.read() as connection:
        return Pinned(catalog, serial, epoch_of(connection, serial), time_of(connection, serial))


OPERATIONS = page_operations(_resolve)
