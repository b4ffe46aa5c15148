"""Create the index's responses: its pages in the format that the client accepts, and its changelog by XML-RPC."""

import xmlrpc.client
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any
from urllib.parse import quote
from xml.parsers.expat import ExpatError

import orjson
from packaging.metadata import RawMetadata
from packaging.utils import canonicalize_name

from pypi_assets.devindex.index_state import IndexProject, IndexRelease, IndexState, ProjectStatus
from pypi_assets.devindex.uploads import UploadedFile

API_VERSION = "1.4"


def simple_index_json(state: IndexState) -> bytes:
    """Return `/simple/` as JSON (PEP 691)."""
    listed = _listed_projects(state)
    return _json(
        {
            "meta": {"_last-serial": state.last_serial or 0, "api-version": API_VERSION},
            "projects": [{"_last-serial": project.last_serial, "name": project.name} for _, project in listed],
        }
    )


def simple_index_html(state: IndexState) -> bytes:
    """Return `/simple/` as HTML (PEP 503)."""
    links = "".join(
        f'    <a href="/simple/{normalized}/">{escape(project.name)}</a>\n'
        for normalized, project in _listed_projects(state)
    )
    return (
        "<!DOCTYPE html>\n<html>\n  <head>\n"
        f'    <meta name="pypi:repository-version" content="{API_VERSION}">\n'
        f"    <title>Simple index</title>\n  </head>\n  <body>\n{links}  </body>\n</html>\n"
        f"<!--SERIAL {state.last_serial or 0}-->"
    ).encode()


def simple_project_json(project: IndexProject, base: str) -> bytes:
    """Return `/simple/{project}/` as JSON (PEP 691, 700, 708, 714, 792)."""
    files = [
        {
            "core-metadata": _core_metadata(file),
            "data-dist-info-metadata": _core_metadata(file),
            "filename": file.filename,
            "hashes": {"sha256": file.sha256},
            "provenance": None,
            "requires-python": file.requires_python,
            "size": file.size,
            "upload-time": file.uploaded_at,
            "url": file_url(file, base),
            "yanked": (release.yanked_reason or True) if release.yanked else False,
        }
        for release, file in _visible_files(project)
    ]
    return _json(
        {
            "files": files,
            "meta": {"_last-serial": project.last_serial, "api-version": API_VERSION},
            "name": canonicalize_name(project.name),
            "project-status": {"status": project.status},
            "versions": [release.version for release in project.visible_releases() if release.files],
        }
    )


def simple_project_html(project: IndexProject, base: str) -> bytes:
    """Return `/simple/{project}/` as HTML (PEP 503, 592, 658, 714)."""
    title = f"Links for {canonicalize_name(project.name)}"
    links = "".join(_link(release, file, base) for release, file in _visible_files(project))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n  <head>\n'
        f'    <meta name="pypi:repository-version" content="{API_VERSION}">\n'
        f'<meta name="pypi:project-status" content="{project.status}">    <title>{title}</title>\n'
        f"  </head>\n  <body>\n    <h1>{title}</h1>\n{links}</body>\n</html>\n"
        f"<!--SERIAL {project.last_serial}-->"
    ).encode()


def latest_release(project: IndexProject) -> IndexRelease | None:
    """Return the release that the older JSON API describes.

    It prefers releases that are not yanked, then releases that are not pre-releases, then the greatest version.
    """
    releases = project.visible_releases()
    return max(releases, key=lambda one: (not one.yanked, not one.is_prerelease, one.order), default=None)


def legacy_project_json(project: IndexProject, release: IndexRelease, metadata: RawMetadata, base: str) -> bytes:
    """Return `/pypi/{project}/json`; `metadata` comes from the first file of `release`."""
    project_url = f"{base}/project/{project.name}/"
    info = {
        "author": metadata.get("author"),
        "author_email": metadata.get("author_email"),
        "bugtrack_url": None,
        "classifiers": metadata.get("classifiers", []),
        "description": metadata.get("description", ""),
        "description_content_type": metadata.get("description_content_type"),
        "docs_url": None,
        "download_url": metadata.get("download_url"),
        "downloads": {"last_day": -1, "last_month": -1, "last_week": -1},
        "dynamic": metadata.get("dynamic"),
        "home_page": metadata.get("home_page"),
        "keywords": ",".join(metadata.get("keywords", [])) or None,
        "license": metadata.get("license"),
        "license_expression": metadata.get("license_expression"),
        "license_files": metadata.get("license_files"),
        "maintainer": metadata.get("maintainer"),
        "maintainer_email": metadata.get("maintainer_email"),
        "name": project.name,
        "package_url": project_url,
        "platform": ",".join(metadata.get("platforms", [])) or None,
        "project_url": project_url,
        "project_urls": metadata.get("project_urls"),
        "provides_extra": metadata.get("provides_extra"),
        "release_url": f"{project_url}{release.version}/",
        "requires_dist": metadata.get("requires_dist"),
        "requires_python": metadata.get("requires_python"),
        "summary": metadata.get("summary"),
        "version": release.version,
        "yanked": release.yanked,
        "yanked_reason": release.yanked_reason,
    }
    releases = {one.version: _legacy_files(one, base) for one in project.visible_releases()}
    return _json(
        {
            "info": info,
            "last_serial": project.last_serial,
            "ownership": {"organization": None, "roles": [{"role": "Owner", "user": project.owner}]},
            "releases": releases,
            "urls": releases[release.version],
            "vulnerabilities": [],
        }
    )


def file_url(file: UploadedFile, base: str) -> str:
    """Return the URL that serves `file`."""
    return f"{base}/packages/{quote(file.path)}"


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _listed_projects(state: IndexState) -> list[tuple[str, IndexProject]]:
    """Return the projects that are not quarantined, in the order of their normalized names."""
    return sorted(
        (item for item in state.projects.items() if item[1].status is not ProjectStatus.QUARANTINED),
        key=lambda item: item[0],
    )


def _visible_files(project: IndexProject) -> Iterator[tuple[IndexRelease, UploadedFile]]:
    """Yield the visible files by version, then by filename."""
    for release in project.visible_releases():
        for _, file in sorted(release.files.items()):
            yield release, file


def _core_metadata(file: UploadedFile) -> dict[str, str] | bool:
    return {"sha256": file.core_metadata_sha256} if file.core_metadata_sha256 else False


def _link(release: IndexRelease, file: UploadedFile, base: str) -> str:
    attributes = []
    if file.requires_python:
        attributes.append(f'data-requires-python="{escape(file.requires_python)}"')
    if file.core_metadata_sha256:
        digest = f"sha256={file.core_metadata_sha256}"
        attributes.append(f'data-dist-info-metadata="{digest}" data-core-metadata="{digest}"')
    if release.yanked:
        attributes.append(f'data-yanked="{escape(release.yanked_reason or "")}"')
    href = f"{escape(file_url(file, base))}#sha256={file.sha256}"
    return f'<a href="{href}" {" ".join(attributes)}>{escape(file.filename)}</a><br />\n'


def _legacy_files(release: IndexRelease, base: str) -> list[dict[str, Any]]:
    return [
        {
            "comment_text": None,
            "core-metadata": _core_metadata(file),
            "digests": {"blake2b_256": file.blake2b_256, "md5": file.md5, "sha256": file.sha256},
            "downloads": -1,
            "filename": file.filename,
            "has_sig": False,
            "md5_digest": file.md5,
            "packagetype": file.packagetype,
            "python_version": file.python_version,
            "requires_python": file.requires_python,
            "size": file.size,
            "upload_time": file.uploaded_at.removesuffix("Z").partition(".")[0],
            "upload_time_iso_8601": file.uploaded_at,
            "url": file_url(file, base),
            "yanked": release.yanked,
            "yanked_reason": release.yanked_reason,
        }
        for _, file in sorted(release.files.items())
    ]


HTML = "text/html"
V1_HTML = "application/vnd.pypi.simple.v1+html"
V1_JSON = "application/vnd.pypi.simple.v1+json"
OFFERED = (HTML, V1_HTML, V1_JSON)


def choose(accept: str | None, offered: Sequence[str] = OFFERED) -> str:
    """Return the first of the offered types with the greatest quality, or the first offered type if none is
    acceptable.
    """
    ranges = [_parse(item) for item in (accept or "*/*").split(",")]
    return max(offered, key=lambda media_type: _quality(media_type, ranges))


def _parse(item: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip() for part in item.lower().split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return media_range, float(value)
            except ValueError:
                return media_range, 0.0
    return media_range, 1.0


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the quality of the most specific range that covers the type."""
    for wanted in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if qualities := [quality for media_range, quality in ranges if media_range == wanted]:
            return max(qualities)
    return 0.0


PAGE_ROWS = 50_000


def answer(body: bytes, state: IndexState, page_rows: int = PAGE_ROWS) -> bytes:
    """Return the response to the call in `body`; `page_rows` is the most rows of one changelog response."""
    try:
        result = _call(body, state, page_rows)
    except xmlrpc.client.Fault as fault:
        return xmlrpc.client.dumps(fault, methodresponse=True).encode()
    return xmlrpc.client.dumps((result,), methodresponse=True, allow_none=True).encode()


def _call(body: bytes, state: IndexState, page_rows: int) -> Any:
    try:
        arguments, method = xmlrpc.client.loads(body)
    except (ExpatError, xmlrpc.client.ResponseError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise xmlrpc.client.Fault(-32700, "parse error; not well formed") from error
    match method:
        case "changelog_last_serial":
            _bind(arguments)
            return state.last_serial
        case "changelog_since_serial":
            (serial,) = _bind(arguments, "serial")
            return [
                [event.name, event.version, event.timestamp, event.action, event.serial]
                for event in state.changelog_since(serial, page_rows)
            ]
        case "list_packages_with_serial":
            _bind(arguments)
            return {project.name: project.last_serial for project in state.projects.values()}
        case "changelog":
            raise xmlrpc.client.Fault(
                -32500,
                "ValueError: The changelog method has been deprecated, use changelog_since_serial instead.",
            )
        case _:
            raise xmlrpc.client.Fault(-32601, "server error; requested method not found")


def _bind(arguments: tuple[Any, ...], *names: str) -> tuple[int, ...]:
    """Return the arguments if they are integers, one for each name."""
    for position, name in enumerate(names):
        if position >= len(arguments):
            raise _bad_argument(name, "Missing required argument")
        if type(arguments[position]) is not int:
            raise _bad_argument(name, "Input should be a valid integer")
    if len(arguments) > len(names):
        raise _bad_argument(str(len(names)), "Unexpected positional argument")
    return arguments


def _bad_argument(name: str, problem: str) -> xmlrpc.client.Fault:
    return xmlrpc.client.Fault(-32602, f"client error; {name}: {problem}")
