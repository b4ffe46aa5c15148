"""The routes of the files on pages of the Simple API.

Metadata are served here. Bytes are served if they are kept for a scope, and otherwise by redirects to the index.
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
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer, redirect
from pypi_assets.service.service import Service
from pypi_assets.service.simple import OPTIONS
from pypi_assets.service.simple_pages import METADATA_SUFFIX, UNHASHED

_METADATA_TYPE = "text/plain; charset=utf-8"
FileAnswer = WholeAnswer | StreamedAnswer
_IN_URLS = "%/:?[]@!$&'()*+,;=~"
Filename = Annotated[
    str, Meta(min_length=1, max_length=600, description=f"a filename, or with {METADATA_SUFFIX} its metadata")
]


class HashedParameters(OperationParameters, frozen=True):
    """A file, by its SHA-256 and filename."""

    sha256: Sha256
    filename: Filename


class BytesParameters(OperationParameters, frozen=True):
    """Bytes, by their SHA-256 alone."""

    sha256: Sha256


class UnhashedParameters(OperationParameters, frozen=True):
    """A file, by its project and filename."""

    project: ProjectName
    filename: Filename


def _file(service: Service, call: Call[HashedParameters] | Call[UnhashedParameters]) -> FileAnswer:
    place, is_of_metadata = _place(call.parameters)
    if call.pinned is not None:
        return _past_file(service, call, call.pinned, place, is_of_metadata=is_of_metadata)
    datasets = service.datasets()
    found = next(_published_files(datasets, place), None)
    if found is not None and is_of_metadata:
        return _published_metadata(datasets, *found)
    is_hidden = not is_of_metadata and _is_hidden(service, place)
    if found is None and not is_hidden:
        raise _no_file(place, datasets.serial)
    return _bytes_of(service, call, place, None if found is None else found[1].url, is_hidden=is_hidden)


def _file_of_hash(service: Service, call: Call[BytesParameters]) -> FileAnswer:
    """Return the bytes with this hash, whatever their name, if they were ever on the index."""
    place = FilePlace(sha256=call.parameters.sha256.lower())
    if service.catalog is not None:
        try:
            known = files_of_hash(service.catalog, place)
        except (CatalogError, SQLAlchemyError):  # the datasets have the live files
            known = []
        if known:
            return _answer_of(service, call, place, known, is_of_metadata=False)
    found = next(_published_files(service.datasets(), place), None)
    if found is None:
        raise not_found("no file with this SHA-256 is known", parameter="sha256")
    return _bytes_of(service, call, place, found[1].url, is_hidden=False)


def _place(parameters: HashedParameters | UnhashedParameters) -> tuple[FilePlace, bool]:
    """Return the file, and whether its metadata are requested."""
    name = parameters.filename.removesuffix(METADATA_SUFFIX)
    if isinstance(parameters, HashedParameters):
        place = FilePlace(name, sha256=parameters.sha256.lower())
    else:
        place = FilePlace(name, project=canonicalize_name(parameters.project))
    return place, name != parameters.filename


def _past_file(
    service: Service, call: Call[Any], pinned: Pinned, place: FilePlace, *, is_of_metadata: bool
) -> FileAnswer:
    found = past_files(pinned.catalog, pinned.serial, place)
    if not found:
        raise _no_file(place, pinned.serial)
    return _answer_of(service, call, place, found, is_of_metadata=is_of_metadata)


def _file_of_any_time(service: Service, call: Call[HashedParameters]) -> FileAnswer:
    """Return a file that pages at a serial link to. Its content follows from the hash, so the address never expires."""
    place, is_of_metadata = _place(call.parameters)
    found = files_of_hash(service.require_catalog(), place)
    if not found:
        raise not_found(f"no file {place.filename} with this SHA-256 is known", parameter="filename")
    return _answer_of(service, call, place, found, is_of_metadata=is_of_metadata)


def _bytes_when_over(service: Service, call: Call[HashedParameters]) -> FileAnswer | None:
    """Return the bytes for an address whose epoch has expired, as in lock files. Metadata belong to an epoch."""
    return None if _place(call.parameters)[1] else _file_of_any_time(service, call)


def _answer_of(
    service: Service, call: Call[Any], place: FilePlace, found: list[PastFile], *, is_of_metadata: bool
) -> FileAnswer:
    file = found[0]
    if is_of_metadata:
        if file.metadata is not None:
            return WholeAnswer(file.metadata, _METADATA_TYPE)
        if file.has_index_metadata:
            return _to_origin(file.url, METADATA_SUFFIX)
        raise not_found(f"there are no metadata for {file.filename}", parameter="filename")
    url = next((one.url for one in found if one.url is not None), None)
    return _bytes_of(service, call, place, url, is_hidden=any(one.is_hidden for one in found))


def _bytes_of(service: Service, call: Call[Any], place: FilePlace, url: str | None, *, is_hidden: bool) -> FileAnswer:
    """Return the answer to each request for the bytes of a file.

    These are the bytes if they are kept, and otherwise a redirect to the index. In a quarantine it is a 451.
    """
    if is_hidden and not service.settings.service_allow_quarantined:
        raise _refused(place)
    kept = service.kept.answer(service.catalog, place.sha256, call.headers)
    return _to_origin(url) if kept is None else kept


def _published_files(datasets: OpenSet, place: FilePlace) -> Iterator[tuple[str, SimpleFile]]:
    """Yield the live files at this place, mostly one, with their projects."""
    simple = datasets.reader(SimpleReader)
    if place.sha256 is None:
        places = [(place.project or "", place.filename or "")]
    else:
        by_hash = datasets.reader(HashesReader).file(place.sha256).results
        places = [(one["normalized"], one["filename"]) for one in by_hash if place.filename in {None, one["filename"]}]
    for project, filename in places:
        page = simple.page(project, filename)
        if page is not None:
            yield from ((project, file) for file in page.files)


def _published_metadata(datasets: OpenSet, project: str, file: SimpleFile) -> WholeAnswer:
    if file.metadata_sha256 is None:
        raise not_found(f"there are no metadata for {file.filename}", parameter="filename")
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
    """Return the metadata of the file, rendered from `depgraph`."""
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
    """Check whether the file is quarantined now. It is not if there is no catalog that answers."""
    if service.catalog is None or service.settings.service_allow_quarantined:
        return False
    try:
        return is_hidden_now(service.catalog, place)
    except (CatalogError, SQLAlchemyError):  # the datasets have only files that were visible when they were published
        return False


def _to_origin(url: str | None, suffix: str = "") -> WholeAnswer:
    """Return a redirect to a file on the index. It is never cached, because the file may be quarantined tomorrow."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise not_found("the index has never shown an address for this file", parameter="filename")
    origin = urlunsplit((parts.scheme, parts.netloc, parts.path + suffix, parts.query, ""))
    return redirect(quote(origin, safe=_IN_URLS), Lasting.NO_STORE)


def _refused(place: FilePlace) -> ProblemError:
    return ProblemError(
        451,
        "refused",
        f"{place.filename or 'the file'} is quarantined on the index now, so its bytes are not served; start"
        " `pypi-assets serve --allow-quarantined` to serve them",
        parameter="filename" if place.filename else "sha256",
    )


def _no_file(place: FilePlace, serial: int) -> ProblemError:
    return not_found(f"there was no live file {place.filename} at serial {serial}", parameter="filename")


def _operation(
    path: str, handler: Handler, parameters: type[OperationParameters], which: str = "", **more: Any
) -> Operation:
    """Return the operation for the addresses of files. `which` describes the files."""
    return Operation(
        path=path,
        handler=handler,
        summary="Redirect to a file, or return its bytes or its metadata",
        description="Pages of the Simple API link to these addresses. An address that ends in"
        f" `{METADATA_SUFFIX}` returns the metadata of the file, with the SHA-256 that the page states.{which}",
        parameters=parameters,
        media_types=("text/plain", "application/octet-stream"),
        problems=(307, 404, 451),
        tag="simple",
        **more,
    )


FILE = _operation("/files/{sha256}/{filename}", _file, HashedParameters, options=OPTIONS, when_over=_bytes_when_over)
FILE_OF_ANY_TIME = _operation(
    "/at/files/{sha256}/{filename}",
    _file_of_any_time,
    HashedParameters,
    " Pages at a serial link to this route. It never expires, so lock files can contain it.",
    at_serial=False,
)
UNHASHED_FILE = _operation(
    f"/files/{UNHASHED}/{{project}}/{{filename}}",
    _file,
    UnhashedParameters,
    " This route is for files without a SHA-256 on the index.",
    options=OPTIONS,
)
FILE_OF_HASH = Operation(
    path="/files/sha256/{sha256}",
    handler=_file_of_hash,
    summary="Redirect to the file with this SHA-256",
    description="The file may have been removed from the index, or replaced, since it was seen. If its bytes are kept"
    " for a scope, they are returned, also in ranges.",
    parameters=BytesParameters,
    media_types=("application/octet-stream",),
    problems=(307, 404, 451),
    tag="simple",
    at_serial=False,
)
OPERATIONS = (UNHASHED_FILE, FILE, FILE_OF_ANY_TIME, FILE_OF_HASH)
