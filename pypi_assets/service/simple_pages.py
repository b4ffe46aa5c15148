"""Rendering of the Simple API in JSON and HTML: pages of projects, and the list of projects.

It follows PEP 503, 592, 658, 691, 700, 714 and 792. All functions are pure. All addresses are relative to the page, so
they work behind any host and prefix.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from itertools import islice
from urllib.parse import quote

import orjson

from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.project_list import ListedAt
from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.index.pages import RENDERED_METADATA_KEY
from pypi_assets.lookup.simple_reader import page_versions
from pypi_assets.service.responses import quality
from pypi_assets.short_texts import cached_if_short

API_VERSION, API_VERSION_WITHOUT_SIZES = "1.4", "1.0"
"""Versions of the Simple API.

Since 1.1, each file must have a size (PEP 700), so a page with a file of unknown size has version 1.0. Clients of 1.0
skip fields that were added later.
"""
V1_JSON = "application/vnd.pypi.simple.v1+json"
V1_HTML = "application/vnd.pypi.simple.v1+html"
HTML = "text/html"
MEDIA_TYPES = (V1_JSON, V1_HTML, HTML)
METADATA_SUFFIX = ".metadata"
_UP, _UP_TO_AT = "../../", "../../../"
UNHASHED = "unhashed"
"""Replaces the SHA-256 in the address of a file for which the index shows none. The project follows it."""
_ALIASES = {
    "application/vnd.pypi.simple.latest+json": V1_JSON,
    "application/vnd.pypi.simple.latest+html": V1_HTML,
}
_PREFERENCE = (HTML, V1_HTML, V1_JSON)
"""The preferred formats, best first, if several are accepted equally. Browsers accept all of them."""
_AT_ONCE = 2_000
"""The number of projects in a chunk, which has about 50 KB."""
_HTML_START = (
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    f'<meta name="pypi:repository-version" content="{API_VERSION}">\n'
    "<title>Simple index</title>\n</head>\n<body>\n"
)
_HTML_END = "</body>\n</html>\n"
_MOST_RANGES = 50
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.~-]+")
_escaped = cached_if_short(maxsize=1_024)(escape)
"""Escapes texts that many files of a page share."""
_of_file = cached_if_short(maxsize=16_384, longest=2_000)
"""Caches the rendering of a file, which is on pages at many serials. 16,384 entries take about 12 MB."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)


def render_page(
    page: SimplePage, media_type: str, *, has_sdist_metadata: bool = True, is_pinned: bool = False
) -> bytes:
    """Return a page in one of MEDIA_TYPES, with its files in the given order.

    Without `has_sdist_metadata`, the page offers no metadata for sdists. `is_pinned` means a page below `/at/...`: its
    files are at `/at/files/`, without serial and epoch, so that their addresses never expire.
    """
    without_metadata = None if has_sdist_metadata else DistributionKind.SDIST.value
    up = _UP_TO_AT if is_pinned else _UP
    return (_as_json if media_type == V1_JSON else _as_html)(page, without_metadata, up)


def render_list(projects: Iterable[ListedAt], media_type: str, serial: int) -> Iterator[bytes]:
    """Yield the list of these projects at `serial` in one of MEDIA_TYPES, in chunks."""
    return _json_parts(projects, serial) if media_type == V1_JSON else _html_parts(projects)


def _json_parts(projects: Iterable[ListedAt], serial: int) -> Iterator[bytes]:
    meta = to_utf8_json({"_last-serial": serial, "api-version": API_VERSION})
    yield b'{"meta":' + meta + b',"projects":['
    separator = b""
    for some in _in_parts(projects):
        yield separator + b",".join(map(_json_project, some))
        separator = b","
    yield b"]}"


def _json_project(project: ListedAt) -> bytes:
    if project.serial is None:
        return to_utf8_json({"name": project.name})
    return to_utf8_json({"_last-serial": project.serial, "name": project.name})


def _html_parts(projects: Iterable[ListedAt]) -> Iterator[bytes]:
    yield _HTML_START.encode()
    for some in _in_parts(projects):
        links = (f'<a href="{quote(one.normalized)}/">{escape(one.name)}</a><br>\n' for one in some)
        yield "".join(links).encode(errors="replace")
    yield _HTML_END.encode()


def _in_parts(projects: Iterable[ListedAt]) -> Iterator[list[ListedAt]]:
    rest = iter(projects)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def negotiate(accept: str | None) -> str:
    """Return the format of MEDIA_TYPES that a request prefers. If it accepts none of them, return HTML, as PyPI does.

    >>> negotiate("application/vnd.pypi.simple.v1+json, text/html;q=0.01")
    'application/vnd.pypi.simple.v1+json'
    """
    ranges: dict[str, float] = {}
    for item in (accept or "*/*").lower().split(",")[:_MOST_RANGES]:
        wanted, _, parameters = item.partition(";")
        ranges[wanted.strip()] = quality(parameters)
    best = max(_PREFERENCE, key=lambda media_type: _quality(media_type, ranges))
    return best if _quality(best, ranges) > 0 else HTML


def _address(project: str, filename: str, sha256: str | None, up: str) -> str:
    """Return the address of a file relative to its project's page. Without a hash, it is below the page's serial."""
    name = filename if _PLAIN_NAME.fullmatch(filename) else quote(filename, safe="")
    return f"{up}files/{sha256}/{name}" if sha256 else f"{_UP}files/{UNHASHED}/{project}/{name}"


def _api_version(page: SimplePage) -> str:
    """Return the version of the Simple API that the page follows."""
    return API_VERSION_WITHOUT_SIZES if any(file.size is None for file in page.files) else API_VERSION


def _as_json(page: SimplePage, without_metadata: str | None, up: str) -> bytes:
    meta: dict[str, object] = {"api-version": _api_version(page)}
    if page.last_serial is not None:
        meta["_last-serial"] = page.last_serial
    document: dict[str, object] = {"meta": meta, "name": page.project}
    if page.status is not None:
        document["project-status"] = {"status": page.status}
    document["versions"] = page_versions(page.files)
    document["files"] = [_json_file(page.project, file, without_metadata, up) for file in page.files]
    return to_utf8_json(document)


@_of_file
def _json_file(project: str, file: SimpleFile, without_metadata: str | None, up: str) -> orjson.Fragment:
    # unpacked at once, because a page can have thousands of files
    filename, _, kind, url, sha256, size, requires_python, uploaded_at, yanked, metadata, is_rendered, seen_at = file
    has_metadata = metadata is not None and (is_rendered or url is not None) and kind != without_metadata
    offered = {"sha256": metadata} if has_metadata else False
    found: dict[str, object] = {
        "filename": filename,
        "url": _address(project, filename, sha256, up),
        "hashes": {} if sha256 is None else {"sha256": sha256},
        "yanked": yanked,
        "core-metadata": offered,
        "data-dist-info-metadata": offered,
    }
    if has_metadata and is_rendered:
        found[RENDERED_METADATA_KEY] = True
    if requires_python:
        found["requires-python"] = requires_python
    if size is not None:
        found["size"] = size
    if (uploaded := upload_time(uploaded_at)) is not None:
        found["upload-time"] = uploaded
    elif (seen := upload_time(seen_at)) is not None:  # installers with a cutoff skip files without a time
        found["upload-time"] = seen
        found["_upload-time-is-first-seen"] = True
    return orjson.Fragment(to_utf8_json(found).decode())  # as bytes, it would take several times as much memory


def _as_html(page: SimplePage, without_metadata: str | None, up: str) -> bytes:
    project = escape(page.project)
    status = ""
    if page.status is not None:
        status = f'<meta name="pypi:project-status" content="{escape(page.status)}">\n'
    links = "".join([_link(project, file, without_metadata, up) for file in page.files])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="pypi:repository-version" content="{_api_version(page)}">\n{status}'
        f"<title>Links for {project}</title>\n</head>\n<body>\n<h1>Links for {project}</h1>\n{links}</body>\n</html>\n"
    ).encode(errors="replace")


@_of_file
def _link(project: str, file: SimpleFile, without_metadata: str | None, up: str) -> str:
    """Return the link to a file of a project. The project is normalized and escaped."""
    filename, _, kind, url, sha256, _, requires_python, _, yanked, metadata, is_rendered, _ = file
    fragment = attributes = ""
    if sha256:
        sha256 = escape(sha256)
        fragment = f"#sha256={sha256}"
    if requires_python:
        attributes = f' data-requires-python="{_escaped(requires_python)}"'
    if metadata is not None and (is_rendered or url is not None) and kind != without_metadata:
        value = f'"sha256={_escaped(metadata)}"'
        attributes += f" data-core-metadata={value} data-dist-info-metadata={value}"
    if yanked is not False:
        attributes += f' data-yanked="{_escaped(yanked) if isinstance(yanked, str) else ""}"'
    return f'<a href="{_address(project, filename, sha256, up)}{fragment}"{attributes}>{escape(filename)}</a><br>\n'


def upload_time(text: str | None) -> str | None:
    """Return a time as PEP 700 requires it, in UTC with a final Z, or None if it is missing or invalid."""
    if text is None or _TIME.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _quality(media_type: str, ranges: dict[str, float]) -> float:
    """Return the weight of the most specific range that matches the type."""
    names = [media_type, *(alias for alias, meant in _ALIASES.items() if meant == media_type)]
    if exact := [ranges[name] for name in names if name in ranges]:
        return max(exact)
    for wanted in (f"{media_type.partition('/')[0]}/*", "*/*"):
        if wanted in ranges:
            return ranges[wanted]
    return 0.0
