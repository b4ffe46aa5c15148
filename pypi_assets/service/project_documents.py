"""The routes of PyPI's older JSON API, `/pypi/{project}/json`, for tools that read it instead of the Simple API.

A document has the files of the project's page, and the metadata of one file of the release, as far as its record has
them: the keys of unknown facts, such as the description or vulnerabilities, are missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, TypedDict
from urllib.parse import quote

from packaging.utils import canonicalize_name
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.reports.simple_page import SimpleFile
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.project_answers import release_rows_at
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import OperationParameters, ProjectName, VersionText
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import not_found
from pypi_assets.service.responses import WholeAnswer, redirect, to_json
from pypi_assets.service.service import Service
from pypi_assets.service.simple import ServedPage, shown_page
from pypi_assets.service.simple_pages import upload_time
from pypi_assets.version_order import canonical_version, newest_release

_SECONDS = len("2026-03-03T12:00:00")


class ReleaseFile(TypedDict):
    """A file of a release. `url` is its address on the index, and `size` is in bytes."""

    filename: str
    url: str | None
    packagetype: str | None
    python_version: str | None
    digests: dict[str, str]
    size: int | None
    requires_python: str | None
    upload_time: str | None
    upload_time_iso_8601: str | None
    yanked: bool
    yanked_reason: str | None


class ReleaseInfo(TypedDict):
    """The metadata of a release. Without a catalog, only the first seven are known.

    `classifiers` has only the classifiers of licences.
    """

    name: str
    version: str
    requires_dist: list[str] | None
    requires_python: str | None
    provides_extra: list[str]
    yanked: bool
    yanked_reason: str | None
    summary: str | None
    license: str | None
    license_expression: str | None
    classifiers: list[str] | None
    project_urls: dict[str, str] | None


class ReleaseDocument(TypedDict):
    """A release: its metadata and its files. `last_serial` is the serial of the project's last event, if known."""

    info: ReleaseInfo
    last_serial: int | None
    urls: list[ReleaseFile]


class ProjectDocument(TypedDict):
    """A project: the metadata and the files of its newest release, and the files of all releases by version.

    `last_serial` is the serial of the project's last event, if known.
    """

    info: ReleaseInfo
    last_serial: int | None
    releases: dict[str, list[ReleaseFile]]
    urls: list[ReleaseFile]


class DocumentParameters(OperationParameters, frozen=True):
    """The project to describe."""

    project: ProjectName


class VersionDocumentParameters(OperationParameters, frozen=True):
    """The release to describe."""

    project: ProjectName
    version: VersionText


def _project(service: Service, call: Call[DocumentParameters]) -> WholeAnswer:
    project = canonicalize_name(call.parameters.project)
    if project != call.parameters.project:
        return redirect(f"../{quote(project)}/json", status=301)
    shown = _shown(service, call.pinned, project)
    releases = {version: list(files) for version, files in groupby(shown.page.files, attrgetter("version"))}
    newest = newest_release((file.version, file.yanked is not False) for file in shown.page.files)
    version = next(version for version in releases if canonical_version(version) == newest)
    document = ProjectDocument(
        info=_info(service, call.pinned, shown, version),
        last_serial=shown.page.last_serial,
        releases={version: list(map(_file, files)) for version, files in releases.items()},
        urls=list(map(_file, releases[version])),
    )
    return _answer(shown, document)


def _version(service: Service, call: Call[VersionDocumentParameters]) -> WholeAnswer:
    given, project = call.parameters, canonicalize_name(call.parameters.project)
    if project != given.project:
        return redirect(f"../../{quote(project)}/{quote(given.version)}/json", status=301)
    shown = _shown(service, call.pinned, project)
    versions = [file.version for file in shown.page.files]
    canonical = canonical_version(given.version)
    same = [version for version in versions if canonical_version(version) == canonical]
    if not same:
        raise not_found(f"{project} has no release {given.version} at serial {shown.serial}", parameter="version")
    version = given.version if given.version in same else same[0]
    document = ReleaseDocument(
        info=_info(service, call.pinned, shown, version),
        last_serial=shown.page.last_serial,
        urls=[_file(file) for file in shown.page.files if file.version == version],
    )
    return _answer(shown, document)


def _shown(service: Service, pinned: Pinned | None, project: str) -> ServedPage:
    shown = shown_page(service, pinned, project)
    if not shown.page.files:
        raise not_found(f"{project} has no files at serial {shown.serial}", parameter="project")
    return shown


def _answer(shown: ServedPage, document: ProjectDocument | ReleaseDocument) -> WholeAnswer:
    return WholeAnswer(
        to_json(document),
        serial=shown.serial,
        modified=shown.modified,
        set_id=shown.set_id,
        last_serial=shown.page.last_serial,
    )


def _info(service: Service, pinned: Pinned | None, shown: ServedPage, version: str) -> ReleaseInfo:
    files = {file.filename: file for file in shown.page.files if file.version == version}
    row = _described(_rows(service, pinned, shown, version))
    described = files.get(row.get("filename", "")) or next(iter(files.values()))
    yanks = [file.yanked for file in files.values()]
    is_yanked = False not in yanks
    links = row.get("project_urls")
    return ReleaseInfo(
        name=row.get("project") or shown.page.project,
        version=version,
        requires_dist=row.get("requires_dist"),
        requires_python=described.requires_python,
        provides_extra=row.get("provides_extra") or [],
        yanked=is_yanked,
        yanked_reason=next((one for one in yanks if is_yanked and isinstance(one, str)), None),
        summary=row.get("summary"),
        license=row.get("license"),
        license_expression=row.get("license_expression"),
        classifiers=row.get("license_classifiers"),
        project_urls=None if links is None else _links(links),
    )


def _rows(service: Service, pinned: Pinned | None, shown: ServedPage, version: str) -> Sequence[Mapping[str, Any]]:
    """Return the records of the files of a release, from the catalog, or without one from the datasets."""
    project = shown.page.project
    if pinned is not None:
        return release_rows_at(pinned.catalog, pinned.serial, project, version)
    if service.catalog is not None:
        try:
            answerable_serial(service.catalog, shown.serial)
            return release_rows_at(service.catalog, shown.serial, project, version)
        except (CatalogError, SQLAlchemyError):
            pass  # the datasets have the most important facts
    found = service.datasets().reader(DepgraphReader).project(project, version).results
    return [row for row in found if row["version"] == version]


def _described(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the record that describes the release: preferably of a file that was read, and of a wheel."""
    return min(
        rows,
        key=lambda row: (row["requires_dist"] is None, row["kind"] != DistributionKind.WHEEL, row["filename"]),
        default={},
    )


def _links(project_urls: Iterable[str]) -> dict[str, str]:
    """Return the links by label, from the lines `label, URL` of the metadata."""
    parts = (text.partition(",") for text in project_urls)
    return {label.strip(): url.strip() for label, _, url in parts if url.strip()}


def _file(file: SimpleFile) -> ReleaseFile:
    uploaded = upload_time(file.uploaded_at)
    return ReleaseFile(
        filename=file.filename,
        url=file.url,
        packagetype=_package_type(file.kind),
        python_version=_python_version(file.filename, file.kind),
        digests={} if file.sha256 is None else {"sha256": file.sha256},
        size=file.size,
        requires_python=file.requires_python,
        upload_time=None if uploaded is None else uploaded[:_SECONDS],
        upload_time_iso_8601=uploaded,
        yanked=file.yanked is not False,
        yanked_reason=file.yanked if isinstance(file.yanked, str) else None,
    )


def _package_type(kind: str) -> str | None:
    if kind == DistributionKind.UNKNOWN:
        return None
    return kind if kind == DistributionKind.SDIST else f"bdist_{kind}"


def _python_version(filename: str, kind: str) -> str | None:
    """Return the Python that a file is for, as uploads state it, or None if its name does not have it.

    >>> _python_version("demo-1.0-py2.py3-none-any.whl", "wheel")
    'py2.py3'
    """
    parts = filename.rpartition(".")[0].split("-")
    if kind == DistributionKind.WHEEL:
        return parts[-3] if len(parts) >= len(("name", "version", "python", "abi", "platform")) else None
    if kind == DistributionKind.EGG:
        return next((part.removeprefix("py") for part in parts if part.startswith("py") and part[2:3].isdigit()), None)
    return "source" if kind == DistributionKind.SDIST else None


PROJECT = Operation(
    path="/pypi/{project}/json",
    handler=_project,
    summary="Describe a project as PyPI's JSON API does",
    description=(
        "The metadata of the newest release, and the files of all releases, with the keys of PyPI's JSON API that the"
        " records have. New programs should use `/simple/` and `/v1/projects/`."
    ),
    parameters=DocumentParameters,
    answer=ProjectDocument,
    problems=(301, 404),
    tag="simple",
)
VERSION = Operation(
    path="/pypi/{project}/{version}/json",
    handler=_version,
    summary="Describe a release as PyPI's JSON API does",
    parameters=VersionDocumentParameters,
    answer=ReleaseDocument,
    problems=(301, 404),
    tag="simple",
)
OPERATIONS = (PROJECT, VERSION)
