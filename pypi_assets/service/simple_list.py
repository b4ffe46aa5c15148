"""The route of the Simple API's list of projects: of the published datasets, and at an earlier serial of the catalog.

It lists the projects that have files, by normalized name. With this list other indexes, and pypi-assets itself, can
follow the service.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import quote

from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.live_projects import live_projects
from pypi_assets.lookup.simple_reader import SimpleReader
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import Parameters
from pypi_assets.service.responses import Answer, StreamedAnswer, redirect
from pypi_assets.service.service import Service
from pypi_assets.service.simple_pages import HTML, MEDIA_TYPES, V1_JSON, negotiate

_API_VERSION = "1.0"
_AT_ONCE = 2_000
"""How many projects a chunk has: about 50 KB."""
_HTML_START = (
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    f'<meta name="pypi:repository-version" content="{_API_VERSION}">\n'
    "<title>Simple index</title>\n</head>\n<body>\n"
)
_HTML_END = "</body>\n</html>\n"


class ListParameters(Parameters, frozen=True):
    """The list has no parameters."""


def render_list(names: Iterable[str], media_type: str) -> Iterator[bytes]:
    """Yield the list of these projects (normalized names) in one of MEDIA_TYPES, in chunks."""
    parts = _json_parts(names) if media_type == V1_JSON else _html_parts(names)
    return (part.encode() for part in parts)


def _json_parts(names: Iterable[str]) -> Iterator[str]:
    yield f'{{"meta":{{"api-version":"{_API_VERSION}"}},"projects":['
    separator = ""
    for some in _in_parts(names):
        yield separator + ",".join(to_utf8_json({"name": name}).decode() for name in some)
        separator = ","
    yield "]}"


def _html_parts(names: Iterable[str]) -> Iterator[str]:
    yield _HTML_START
    for some in _in_parts(names):  # a normalized name has no character that HTML would need escaped
        yield "".join(f'<a href="{quote(name)}/">{name}</a><br>\n' for name in some)
    yield _HTML_END


def _in_parts(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _list(service: Service, call: Call[ListParameters]) -> StreamedAnswer:
    media_type, pinned = negotiate(call.headers.get("accept")), call.pinned
    shown = media_type if media_type != HTML else f"{HTML}; charset=utf-8"
    if pinned is not None:
        chunks = render_list(live_projects(pinned.catalog, pinned.serial), media_type)
        return StreamedAnswer(chunks, shown, serial=pinned.serial, modified=pinned.at, varies=("Accept",))
    datasets = service.datasets()
    names = (one["name"] for one in datasets.reader(SimpleReader).listed())
    chunks = render_list(names, media_type)
    modified = datasets.published.published_at
    return StreamedAnswer(chunks, shown, serial=datasets.serial, modified=modified, varies=("Accept",))


def _with_slash(_service: Service, _call: Call[ListParameters]) -> Answer:
    return redirect("simple/", status=301)


LIST = Operation(
    path="/simple/",
    handler=_list,
    summary="The list of projects in the Simple API",
    description="All projects that have files, by normalized name. Installers do not need it; mirrors and indexes do.",
    parameters=ListParameters,
    media_types=MEDIA_TYPES,
    tag="simple",
)
LIST_WITHOUT_SLASH = Operation(
    path="/simple",
    handler=_with_slash,
    summary="Leads to the list of projects",
    parameters=ListParameters,
    media_types=MEDIA_TYPES,
    problems=(301,),
    tag="simple",
)
OPERATIONS = (LIST, LIST_WITHOUT_SLASH)
