"""The first page, the form that pins a page to a serial or a date, and the list of all pages and static files."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.project_history import recent_events
from pypi_assets.service.health_routes import STATUS
from pypi_assets.service.operations import PAGES, Call, Operation
from pypi_assets.service.pages import latest_changes, project_pages, resolutions, search, solvability_page
from pypi_assets.service.pages.page import Content, View, page, page_operations, shell_requirement
from pypi_assets.service.pages.rendering import is_local_page
from pypi_assets.service.parameters import NoParameters, OperationParameters
from pypi_assets.service.pins import PIN_ACCEPTS, parse_pin
from pypi_assets.service.problems import ProblemError, bad_parameter
from pypi_assets.service.responses import Lasting, WholeAnswer, redirect
from pypi_assets.service.service import Service
from pypi_assets.times import utc_text

_FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_ADDRESSES = {"robots.txt": "/robots.txt"}
_FEW = 8
_EXAMPLES = {
    "import": (("dateutil", "python-dateutil"), ("yaml", "pyyaml"), ("numpy", "numpy")),
    "dependents": (("six", "six"), ("requests", "requests"), ("pyyaml", "pyyaml")),
    "changes": (("requests", "requests"), ("flask", "flask"), ("pyyaml", "pyyaml")),
}
"""Links of the first page, each with the project that must exist for it.

The first link of each kind whose project exists is shown.
"""


class HomeParameters(OperationParameters, frozen=True):
    """The first page has no parameters."""


class AsOfParameters(OperationParameters, frozen=True):
    """The page to pin, and the moment. Without a moment, it is the latest state."""

    moment: Annotated[str, Meta(max_length=100, description=PIN_ACCEPTS)] = ""
    page: Annotated[str, Meta(max_length=4_000, description="the path of a page, such as /import/yaml/")] = "/"


@page("/", "home.html", "Show the first page")
def _home(view: View, _parameters: HomeParameters) -> Content:
    recent = _recent(view)
    parts = {"status": view.part(STATUS), "recent": recent}
    examples = _examples(view)
    names = [examples.get("changes"), *(one["project"] for one in recent or ())]
    return Content("Search", parts, {"examples": examples, "requirement": _installable(view, names)})


def _installable(view: View, names: Iterable[str | None]) -> str | None:
    """Return the first of these projects that has a release, or None."""
    if view.serial is None:
        return None
    snapshot = view.snapshot
    return next((shell_requirement(name) for name in names if name and snapshot.versions(name)), None)


def _recent(view: View) -> list[dict[str, Any]] | None:
    """Return the newest events, or None if the catalog does not answer or does not exist."""
    catalog = view.service.catalog if view.pinned is None else view.pinned.catalog
    if catalog is None or view.serial is None:
        return None
    try:
        with catalog.read() as connection:
            found = recent_events(connection, view.serial, _FEW)
    except (CatalogError, SQLAlchemyError):
        return None
    return [{**one, "at": utc_text(one["at"])} for one in found]


def _examples(view: View) -> dict[str, str]:
    if view.serial is None:
        return {}
    snapshot = view.snapshot
    found = {
        kind: next((text for text, name in some if snapshot.versions(name)), None) for kind, some in _EXAMPLES.items()
    }
    return {kind: text for kind, text in found.items() if text is not None}


def _as_of(_service: Service, call: Call[AsOfParameters]) -> WholeAnswer:
    given = call.parameters
    if not is_local_page(given.page):
        raise bad_parameter("page", "the page is not a path of this service", "a path that begins with one slash")
    moment = given.moment.strip()
    if not moment:
        return redirect(given.page, Lasting.REVALIDATED, 303)
    try:
        parse_pin(moment)
    except ProblemError as error:
        raise bad_parameter("moment", f"{moment!r:.120} is neither a serial nor a date", PIN_ACCEPTS) from error
    return redirect(f"/at/{moment}{given.page}", Lasting.REVALIDATED, 303)


AS_OF = Operation(
    path="/as-of",
    handler=_as_of,
    summary="Redirect to a page as of a serial or a date",
    parameters=AsOfParameters,
    media_types=("text/html",),
    tag=PAGES,
    at_serial=False,
)
OPERATIONS = (*page_operations(_home), AS_OF)


def operations() -> Iterator[Operation]:
    """Yield the operations of all pages and static files."""
    yield from OPERATIONS
    for module in (search, project_pages, resolutions, solvability_page, latest_changes):
        yield from module.OPERATIONS
    yield from (_file(path) for path in sorted(_FOLDER.rglob("*")) if path.is_file())


def _file(path: Path) -> Operation:
    return Operation(
        path=_ADDRESSES.get(path.name, f"/static/{path.relative_to(_FOLDER).as_posix()}"),
        handler=partial(_answer, path.read_bytes(), _MEDIA_TYPES[path.suffix]),
        summary="Return a file that pages load",
        media_types=(_MEDIA_TYPES[path.suffix],),
        tag=PAGES,
        at_serial=False,
    )


def _answer(content: bytes, media_type: str, _service: Service, _call: Call[NoParameters]) -> WholeAnswer:
    return WholeAnswer(content, media_type)
