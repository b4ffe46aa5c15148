"""The routes of the files that pages of the Simple API name: their metadata are answered here, and redirects
lead to their bytes.
"""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote, urlsplit, urlunsplit

from msgspec import Meta
from packaging.utils import canonicalize_name
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.past_pages import (
    FilePlace,
    PastFile,
    files_of_hash,
    is_hidden_now,
    past_files,
)
from pypi_assets.catalog.reports.simple_page import SimpleFile
from pypi_assets.distributions.served_metadata import file_version, render_metadata
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hashes_reader import HashesReader
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.lookup.simple_reader import SimpleReader
from pypi_assets.service.operations import Call, Handler, Operation
from pypi_assets.service.parameters import OperationParameters, ProjectName, Sha256
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, not_found, unavailable
from pypi_assets.service.responses import Lasting, WholeAnswer, redirect
from pypi_assets.service.service import Service
from pypi_assets.service.simple import OPTIONS
from pypi_assets.service.simple_pages import METADATA_SUFFIX, UNHASHED

_METADATA_TYPE = "text/plain; charset=utf-8"
_IN_URLS = "%/:?[]@!$&'()*+,;=~"
Filename = Annotated[
    str, Meta(min_length=1, max_length=600, description=f"the name of a file, or with {METADATA_SUFFIX} its metadata")
]


class HashedParameters(OperationParameters, frozen=True):
    """Which file, by its sha256 and its name."""

    sha256: Sha256
    filename: Filename


class UnhashedParameters(OperationParameters, frozen=True):
    """Which file, by its project and its name."""

    project: ProjectName
    filename: Filename


def _file(service: Service, call: Call[HashedParameters] | Call[UnhashedParameters]) -> WholeAnswer:
    place, is_of_metadata = _place(call.parameters)
    if call.pinned is not None:
        return _past_file(service, call.pinned, place, is_of_metadata=is_of_metadata)
    datasets = service.datasets()
    found = next(_published_files(datasets, place), None)
    if found is not None and is_of_metadata:
        return _published_metadata(datasets, *found)
    if not is_of_metadata and _is_hidden(service, place):
        raise _refused(place)
    if found is None:
        raise _no_file(place, datasets.serial)
    return _to_origin(found[1].url)


def _place(parameters: HashedParameters | UnhashedParameters) -> tuple[FilePlace, bool]:
    """The file, and whether its metadata are requested."""
    name = parameters.filename.removesuffix(METADATA_SUFFIX)
    if isinstance(parameters, HashedParameters):
        place = FilePlace(name, sha256=parameters.sha256.lower())
    else:
        place = FilePlace(name, project=canonicalize_name(parameters.project))
    return place, name != parameters.filename


def _past_file(service: Service, pinned: Pinned, place: FilePlace, *, is_of_metadata: bool) -> WholeAnswer:
    found = past_files(pinned.catalog, pinned.serial, place)
    if not found:
        raise _no_file(place, pinned.serial)
    return _answer_of(service, place, found, is_of_metadata=is_of_metadata)


def _file_of_any_time(service: Service, call: Call[HashedParameters]) -> WholeAnswer:
    """What pages at a serial name: the content follows from the hash, so the address lasts longer than an epoch."""
    place, is_of_metadata = _place(call.parameters)
    found = files_of_hash(service.require_catalog(), place)
    if not found:
        raise not_found(f"no file {place.filename} with this sha256 is known", parameter="filename")
    return _answer_of(service, place, found, is_of_metadata=is_of_metadata)


def _bytes_when_over(service: Service, call: Call[HashedParameters]) -> WholeAnswer | None:
    """Bytes by an address with an epoch that is over, as lock files have them; metadata are of the epoch."""
    return None if _place(call.parameters)[1] else _file_of_any_time(service, call)


def _answer_of(service: Service, place: FilePlace, found: list[PastFile], *, is_of_metadata: bool) -> WholeAnswer:
    file = found[0]
    if is_of_metadata:
        if file.metadata is not None:
            return WholeAnswer(file.metadata, _METADATA_TYPE)
        if file.has_index_metadata:
            return _to_origin(file.url, METADATA_SUFFIX)
        raise not_found(f"there are no metadata of {file.filename}", parameter="filename")
    if any(one.is_hidden for one in found) and not service.settings.service_allow_quarantined:
        raise _refused(place)
    return _to_origin(file.url)


def _published_files(datasets: OpenSet, place: FilePlace) -> Iterator[tuple[str, SimpleFile]]:
    """The live files at this place, with their projects: mostly one."""
    simple = datasets.reader(SimpleReader)
    if place.sha256 is None:
        projects = [place.project or ""]
    else:
        by_hash = datasets.reader(HashesReader).file(place.sha256).results
        projects = [one["normalized"] for one in by_hash if one["filename"] == place.filename]
    for project in projects:
        page = simple.page(project, place.filename)
        if page is not None:
            yield from ((project, file) for file in page.files)


def _published_metadata(datasets: OpenSet, project: str, file: SimpleFile) -> WholeAnswer:
    if file.metadata_sha256 is None:
        raise not_found(f"there are no metadata of {file.filename}", parameter="filename")
    if not file.is_rendered:
        return _to_origin(file.url, METADATA_SUFFIX)
    body = _rendered(datasets, project, file)
    if body is None or hashlib.sha256(body).hexdigest() != file.metadata_sha256:
        raise unavailable(f"the datasets disagree about the metadata of {file.filename}")
    return WholeAnswer(
        body,
        _METADATA_TYPE,
        serial=datasets.serial,
        modified=datasets.published.published_at,
        set_id=datasets.id,
    )


def _rendered(datasets: OpenSet, project: str, file: SimpleFile) -> bytes | None:
    """What `depgraph` has of the file, as metadata."""
    for one in datasets.reader(DepgraphReader).project(project, file.version).results:
        if one["filename"] == file.filename:
            return render_metadata(
                one["project"],
                file_version(file.filename, file.version, one["project"]),
                one["requires_python"],
                one["requires_dist"] or (),
                one["provides_extra"],
            )
    return None


def _is_hidden(service: Service, place: FilePlace) -> bool:
    """Whether the file is quarantined now, as far as there is a catalog that answers."""
    if service.catalog is None or service.settings.service_allow_quarantined:
        return False
    try:
        return is_hidden_now(service.catalog, place)
    except (CatalogError, SQLAlchemyError):  # the datasets have what was shown when they were published
        return False


def _to_origin(url: str | None, suffix: str = "") -> WholeAnswer:
    """Leads to where the index has a file. Nothing of it is kept: tomorrow it may be refused."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise not_found("the index has shown no address of this file", parameter="filename")
    origin = urlunsplit((parts.scheme, parts.netloc, parts.path + suffix, parts.query, ""))
    return redirect(quote(origin, safe=_IN_URLS), Lasting.NO_STORE)


def _refused(place: FilePlace) -> ProblemError:
    return ProblemError(
        451,
        "refused",
        f"{place.filename} is quarantined on the index now, so its bytes are refused; `pypi-assets serve"
        " --allow-quarantined` leads to them",
        parameter="filename",
    )


def _no_file(place: FilePlace, serial: int) -> ProblemError:
    return not_found(f"no such file {place.filename} was live at serial {serial}", parameter="filename")


def _operation(
    path: str, handler: Handler, parameters: type[OperationParameters], which: str = "", **more: Any
) -> Operation:
    """The operation of the address of a file; `which` says of which files it is."""
    return Operation(
        path=path,
        handler=handler,
        summary="Where a file is, or its metadata",
        description="Pages of the Simple API name these addresses. One that ends in"
        f" `{METADATA_SUFFIX}` has the metadata of the file, with the sha256 that the page has of them.{which}",
        parameters=parameters,
        media_types=("text/plain",),
        problems=(307, 404, 451),
        tag="simple",
        **more,
    )


FILE = _operation("/files/{sha256}/{filename}", _file, HashedParameters, options=OPTIONS, when_over=_bytes_when_over)
FILE_OF_ANY_TIME = _operation(
    "/at/files/{sha256}/{filename}",
    _file_of_any_time,
    HashedParameters,
    " Pages at a serial name this one. It never expires, so lock files can have it.",
    at_serial=False,
)
UNHASHED_FILE = _operation(
    f"/files/{UNHASHED}/{{project}}/{{filename}}",
    _file,
    UnhashedParameters,
    " This one is for files of which the index shows no sha256.",
    options=OPTIONS,
)
OPERATIONS = (UNHASHED_FILE, FILE, FILE_OF_ANY_TIME)
