"""The routes of the Simple API: pages of projects, and the list of projects.

Pages come from the published datasets, and at a past serial from the catalog. Serials and the list come from the
catalog. With them, other indexes and pypi-assets itself can follow this service as they follow PyPI.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote

from packaging.utils import canonicalize_name
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.catalog.reports.past_statuses import last_serial_at
from pypi_assets.catalog.reports.project_following import require_answered
from pypi_assets.catalog.reports.project_list import ListedAt, projects_at
from pypi_assets.catalog.reports.simple_page import SimplePage
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.lookup.simple_reader import SimpleReader, in_page_order
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import OperationParameters, ProjectName
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import not_found
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer, redirect
from pypi_assets.service.service import Service
from pypi_assets.service.simple_pages import HTML, MEDIA_TYPES, V1_JSON, negotiate, render_list, render_page

SAFE = "safe"
NO_SDIST_METADATA = "no-sdist-metadata"
OPTIONS = (SAFE, NO_SDIST_METADATA)
"""Options that can follow a serial after a comma. They are not in the query string, because installers drop it."""
_HTML_HEADERS = (("Content-Security-Policy", "default-src 'none'"),)


class PageParameters(OperationParameters, frozen=True):
    """The project of a page."""

    project: ProjectName


class ListParameters(OperationParameters, frozen=True):
    """The list has no parameters."""


class ServedPage(NamedTuple):
    """A page at `serial`, valid since `modified`. `set_id` is the set of datasets, if it determines the page."""

    page: SimplePage
    serial: int
    modified: datetime | None
    set_id: str | None


def shown_page(service: Service, pinned: Pinned | None, project: str) -> ServedPage:
    """Return the page of a project (normalized): the latest page, or the page at a pinned serial.

    Raises a ProblemError if there is none.
    """
    if pinned is not None:
        return ServedPage(_past_page(service, pinned, project), pinned.serial, pinned.at, None)
    datasets = service.datasets()
    page = datasets.reader(SimpleReader).page(project)
    set_id: str | None = datasets.id
    if page is None:
        page, set_id = _page_without_files(service, datasets, project), None
    if page is None:
        raise _no_page(project, datasets.serial)
    if page.last_serial is None:
        page = replace(page, last_serial=_last_serial(service, datasets.serial, project))
    if page.last_serial is None and service.has_catalog:
        set_id = None  # the catalog may answer the next request
    return ServedPage(page, datasets.serial, datasets.published.published_at, set_id)


def _page(service: Service, call: Call[PageParameters]) -> WholeAnswer:
    given, pinned = call.parameters.project, call.pinned
    project = canonicalize_name(given)
    if project != given:
        return redirect(f"../{quote(project)}/", status=301)
    shown = shown_page(service, pinned, project)
    media_type = negotiate(call.headers.get("accept"))
    options = () if pinned is None else pinned.options
    body = render_page(
        shown.page, media_type, has_sdist_metadata=NO_SDIST_METADATA not in options, is_pinned=pinned is not None
    )
    answer = WholeAnswer(
        body,
        _content_type(media_type),
        serial=shown.serial,
        modified=shown.modified,
        varies=("Accept",),
        headers=_headers(media_type),
        set_id=shown.set_id,
        last_serial=shown.page.last_serial,
    )
    if SAFE in options:
        answer.lasting = Lasting.REDIRECT  # it depends on what is quarantined today
    return answer


def _last_serial(service: Service, serial: int, project: str) -> int | None:
    """Return the serial of a project's last event up to `serial`, or None if the catalog has no answers there."""
    if service.catalog is None:
        return None
    try:
        answerable_serial(service.catalog, serial)
        with service.catalog.read() as connection:
            found = find_project(connection, project)
            return None if found is None else last_serial_at(connection, found.id, serial)
    except (CatalogError, SQLAlchemyError):
        return None


def _past_page(service: Service, pinned: Pinned, project: str) -> SimplePage:
    with pinned.catalog.read() as connection:
        following = require_answered(connection, project, pinned.serial)
    is_safe = SAFE in pinned.options
    page = page_at(pinned.catalog, pinned.serial, project, is_safe=is_safe, stored=service.stored_files)
    if page is None:
        reason = None if following is None else following.sentence()
        raise _no_page(project, pinned.serial, reason)
    return replace(page, files=tuple(in_page_order(page.files)))


def _page_without_files(service: Service, datasets: OpenSet, project: str) -> SimplePage | None:
    """Return the page of a project without live files, such as a quarantined one. The datasets lack such pages."""
    catalog = service.catalog
    if catalog is None:
        return None
    try:
        page = page_at(catalog, answerable_serial(catalog, datasets.serial), project)
    except CatalogError:
        return None
    return None if page is None or page.files else page


def _headers(media_type: str) -> Sequence[tuple[str, str]]:
    return () if media_type == V1_JSON else _HTML_HEADERS


def _content_type(media_type: str) -> str:
    return media_type if media_type != HTML else f"{HTML}; charset=utf-8"


def _no_page(project: str, serial: int, reason: str | None = None) -> Exception:
    return not_found(reason or f"there is no project {project} at serial {serial}", parameter="project")


def _with_slash(_service: Service, call: Call[PageParameters]) -> WholeAnswer:
    return redirect(f"{quote(canonicalize_name(call.parameters.project))}/", status=301)


def _list(service: Service, call: Call[ListParameters]) -> StreamedAnswer:
    media_type, pinned = negotiate(call.headers.get("accept")), call.pinned
    if pinned is not None:
        projects = projects_at(pinned.catalog, pinned.serial, pinned.epoch)
        return _streamed(projects, media_type, pinned.serial, pinned.at, f"at {pinned.serial}.{pinned.epoch}")
    datasets = service.datasets()
    modified: datetime | None = datasets.published.published_at
    epoch = _epoch(service, datasets.serial)
    if service.catalog is None or epoch is None:
        listed = (one["name"] for one in datasets.reader(SimpleReader).listed())
        unnumbered = (ListedAt(name, name, None) for name in listed)
        return _streamed(unnumbered, media_type, datasets.serial, modified, datasets.id)
    if epoch != datasets.serial:
        modified = None  # the list may have changed after the datasets were published
    projects = projects_at(service.catalog, datasets.serial)
    return _streamed(projects, media_type, datasets.serial, modified, f"{datasets.id} {epoch}")


def _epoch(service: Service, serial: int) -> int | None:
    """Return the epoch of a serial, or None if the catalog has no answers at this serial, as on a mirror that lags."""
    if service.catalog is None:
        return None
    try:
        answerable_serial(service.catalog, serial)
        with service.catalog.read() as connection:
            return epoch_of(connection, serial)
    except (CatalogError, SQLAlchemyError):
        return None


def _streamed(
    projects: Iterable[ListedAt], media_type: str, serial: int, modified: datetime | None, content: str
) -> StreamedAnswer:
    """Return the list as a stream. `content` determines the listed projects, so the entity tag is made from it."""
    return StreamedAnswer(
        render_list(projects, media_type, serial),
        _content_type(media_type),
        serial=serial,
        modified=modified,
        varies=("Accept",),
        headers=_headers(media_type),
        tag=hashlib.sha256(f"{media_type} {content}".encode()).hexdigest()[:32],
    )


def _list_with_slash(_service: Service, _call: Call[ListParameters]) -> WholeAnswer:
    return redirect("simple/", status=301)


PAGE = Operation(
    path="/simple/{project}/",
    handler=_page,
    summary="Show the page of a project in the Simple API",
    description=(
        "For installers: `pip install --index-url .../simple/`, or `.../at/2026-03-03/simple/` to resolve as of then."
        f" Options follow the serial after a comma: `{SAFE}` hides files that the index hides today, and"
        f" `{NO_SDIST_METADATA}` hides the metadata of sdists."
    ),
    parameters=PageParameters,
    media_types=MEDIA_TYPES,
    problems=(301, 404),
    tag="simple",
    options=OPTIONS,
)
PAGE_WITHOUT_SLASH = Operation(
    path="/simple/{project}",
    handler=_with_slash,
    summary="Redirect to the page of a project",
    parameters=PageParameters,
    media_types=MEDIA_TYPES,
    problems=(301,),
    tag="simple",
    options=OPTIONS,
)
LIST = Operation(
    path="/simple/",
    handler=_list,
    summary="List the projects in the Simple API",
    description=(
        "All projects that have a page and are not quarantined, each with the serial of its last event. Mirrors and"
        " indexes follow it; installers do not need it."
    ),
    parameters=ListParameters,
    media_types=MEDIA_TYPES,
    tag="simple",
    options=OPTIONS,
)
LIST_WITHOUT_SLASH = Operation(
    path="/simple",
    handler=_list_with_slash,
    summary="Redirect to the list of projects",
    parameters=ListParameters,
    media_types=MEDIA_TYPES,
    problems=(301,),
    tag="simple",
    options=OPTIONS,
)
OPERATIONS = (PAGE, PAGE_WITHOUT_SLASH, LIST, LIST_WITHOUT_SLASH)
