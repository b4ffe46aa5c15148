"""Pages, which consist of parts that the API or `lookup/` answer. The parts are also the page's `.json`.

Install commands on pages contain the address of this service's Simple API. It comes from the setting. Without the
setting, pages contain the address at which the service listens, and the script replaces it with the browser's address.
The address never comes from the header Host: a request could contain any host, and a cache would keep such a page for
others.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_type_hints
from urllib.parse import urlsplit

import msgspec
from markupsafe import escape
from packaging.version import InvalidVersion, Version

from pypi_assets.index.addresses import is_loopback
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.questions.snapshot import Snapshot
from pypi_assets.service.health_routes import STATUS
from pypi_assets.service.operations import PAGES, Call, Operation
from pypi_assets.service.pages.rendering import HEADERS, HTML, data_address, page_address, render
from pypi_assets.service.parameters import OperationParameters, convert_parameters
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, not_found
from pypi_assets.service.questions import snapshot_of
from pypi_assets.service.responses import JSON, Lasting, WholeAnswer, redirect, to_json
from pypi_assets.service.service import Service

_OPTIONAL = frozenset({404, 503})
_PLAIN_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class IndexAddress:
    """The address of an index for installers: `base` without a slash at the end, and `path` below it.

    `is_certain` means that the setting contains it. `trusted_host` is the value of pip's option `--trusted-host`,
    without which pip rejects other machines that lack TLS. It is empty if pip does not need the option.
    """

    base: str
    path: str
    is_certain: bool
    trusted_host: str


def index_address(service: Service, serial: int | None) -> IndexAddress:
    """Return the address of the Simple API at `serial`. None: at the latest state."""
    public_url = service.settings.service_public_url
    base = (public_url or service.address).rstrip("/")
    parts = urlsplit(base)
    is_trusted = parts.scheme == "https" or is_loopback(parts.hostname)
    path = "/simple/" if serial is None else f"/at/{serial}/simple/"
    return IndexAddress(base, path, public_url is not None, "" if is_trusted else parts.netloc)


def shell_requirement(project: str, version: str | None = None) -> str | None:
    """Return a requirement quoted for a shell, or None if no installer could find it. The input can be any text.

    >>> shell_requirement("six", "1!1.0"), shell_requirement("six", "$(reboot)")
    ("'six==1!1.0'", None)
    """
    if not _PLAIN_NAME.fullmatch(project):
        return None
    if version is None:
        return project
    try:
        return shlex.quote(f"{project}=={Version(version)}")
    except InvalidVersion:
        return None


@dataclass
class View:
    """The data for one request of a page: one set of datasets, or one serial of the catalog.

    `address` is the path of the page below `prefix`, in parts, and `query` is its query. `is_lasting` means that all
    parts so far may be cached like other answers of their serial. Problems may not, nor may data that depend on today.
    """

    service: Service
    call: Call[Any]
    address: tuple[str, ...]
    query: Mapping[str, object] = field(default_factory=dict)
    is_lasting: bool = True

    @property
    def pinned(self) -> Pinned | None:
        """Return the serial that the page is pinned to, or None for the latest state."""
        return self.call.pinned

    @property
    def prefix(self) -> str:
        """Return the prefix of addresses of pages at the same serial."""
        return "" if self.pinned is None else f"/at/{self.pinned.serial}.{self.pinned.epoch}"

    @property
    def serial(self) -> int | None:
        """Return the serial of the page, or None if nothing is published."""
        if self.pinned is not None:
            return self.pinned.serial
        return None if self.service.present is None else self.service.present.serial

    @property
    def datasets(self) -> OpenSet:
        """Return the set of datasets of the page. Raises a ProblemError if nothing is published."""
        return self.service.datasets()

    @property
    def snapshot(self) -> Snapshot:
        """Return the index as of the page's serial. Raises a ProblemError if nothing is published."""
        return snapshot_of(self.service, self.pinned or self.datasets)

    def part(self, operation: Operation, **parameters: object) -> Any:
        """Return the answer of an operation of the API as plain values. Raises its ProblemError."""
        given = convert_parameters(operation.parameters, parameters, ())
        try:
            answer = operation.handler(self.service, msgspec.structs.replace(self.call, parameters=given, headers={}))
        except ProblemError:
            self.is_lasting = False
            raise
        self.is_lasting = self.is_lasting and answer.lasting == Lasting.SHORT
        return msgspec.json.decode(answer.body) if isinstance(answer, WholeAnswer) else None

    def optional_part(self, operation: Operation, **parameters: object) -> Any:
        """Return the result of `part`, or None if it is missing or cannot be answered now."""
        try:
            return self.part(operation, **parameters)
        except ProblemError as error:
            if error.problem.status in _OPTIONAL:
                return None
            raise


@dataclass(frozen=True)
class Content:
    """The content of a page: its title, its `parts`, and further values for display."""

    title: str
    parts: Mapping[str, Any]
    shown: Mapping[str, Any] = field(default_factory=dict)
    leads_to: str | None = None
    """The address of another page to redirect to."""


@dataclass(frozen=True)
class WebPage:
    """A page at `path`, such as `/import/{name}`. `content` is called with a `View` and the request's parameters."""

    path: str
    template: str
    summary: str
    parameters: type[OperationParameters]
    content: Callable[[View, Any], Content]
    at_serial: bool = True


def page(
    path: str, template: str, summary: str, *, at_serial: bool = True
) -> Callable[[Callable[[View, Any], Content]], WebPage]:
    """Return a decorator that makes a page from the function that returns its content.

    The type of the function's second argument is the type of the parameters.

        @page("/import/{name}", "import.html", "Show which project an import comes from")
        def import_page(view: View, parameters: ImportPageParameters) -> Content: ...
    """

    def made(content: Callable[[View, Any], Content]) -> WebPage:
        _, parameters, _ = get_type_hints(content).values()
        return WebPage(path, template, summary, parameters, content, at_serial)

    return made


def page_operations(*pages: WebPage) -> tuple[Operation, ...]:
    """Return the operations of pages.

    The address of a page ends with a slash, and the address of its data with `.json`. A path with neither redirects to
    the page.
    """
    found = []
    for page in pages:
        path = page.path.rstrip("/")
        found.append(_operation(page, f"{path or '/index'}.json", _data, JSON))
        found.append(_operation(page, f"{path}/", _html, HTML))
        if path:
            found.append(_operation(page, path, _with_slash, HTML))
    return tuple(found)


def _operation(page: WebPage, path: str, handler: Callable[..., WholeAnswer], media_type: str) -> Operation:
    return Operation(
        path=path,
        handler=partial(handler, page),
        summary=page.summary,
        parameters=page.parameters,
        media_types=(media_type,),
        tag=PAGES,
        at_serial=page.at_serial,
    )


def _view(page: WebPage, service: Service, call: Call[Any]) -> View:
    parts = [part for part in page.path.split("/") if part]
    in_path = {part[1:-1]: str(getattr(call.parameters, part[1:-1])) for part in parts if part.startswith("{")}
    address = tuple(in_path[part[1:-1]] if part.startswith("{") else part for part in parts)
    fields = msgspec.structs.fields(call.parameters)
    given = {field.name: getattr(call.parameters, field.name) for field in fields if field.name not in in_path}
    query = {field.name: given[field.name] for field in fields if given.get(field.name, field.default) != field.default}
    return View(service.of_one_set(), call, address, query)


def _data(page: WebPage, service: Service, call: Call[Any]) -> WholeAnswer:
    view = _view(page, service, call)
    parts = page.content(view, call.parameters).parts
    lasting = Lasting.SHORT if view.is_lasting else Lasting.REVALIDATED
    return WholeAnswer(to_json(parts), serial=view.serial, lasting=lasting)


def _html(page: WebPage, service: Service, call: Call[Any]) -> WholeAnswer:
    view = _view(page, service, call)
    found = page.content(view, call.parameters)
    if found.leads_to is not None:
        return redirect(found.leads_to, Lasting.REVALIDATED, 303)
    body = render(page.template, {**frame(view, found.title), **found.parts, **found.shown})
    return WholeAnswer(body, HTML, serial=view.serial, lasting=Lasting.REVALIDATED, headers=HEADERS)


def frame(view: View, title: str) -> dict[str, Any]:
    """Return the values that every page shows around its content."""
    data = data_address(view.prefix, *view.address, **view.query)
    status = view.part(STATUS)
    catalog = status["catalog"] or {}
    exact = catalog.get("exact_from"), catalog.get("serial")
    return {
        "title": title,
        "prefix": view.prefix,
        "pinned": view.pinned,
        "index": index_address(view.service, view.pinned.serial if view.pinned else None),
        "here": escape(page_address("", *view.address, **view.query) or "/"),
        "data": data and escape(data),
        "status": status,
        "exact": {"from": exact[0], "to": exact[1]} if None not in exact else {"from": 1, "to": 0},
        "text": "",
    }


def _with_slash(page: WebPage, service: Service, call: Call[Any]) -> WholeAnswer:
    view = _view(page, service, call)
    address = page_address(view.prefix, *view.address, **view.query)
    if address is None:
        raise not_found("there is no page with this name")
    return redirect(address)
