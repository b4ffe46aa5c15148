"""Reads the Simple API as JSON (PEP 691, 700, 714, 792): project pages, and the list of all projects.

Pages that break the protocol are rejected. The list has tens of megabytes, so it is read from a file, one project at a
time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO
from urllib.parse import urljoin

import ijson
import orjson
from packaging.utils import canonicalize_name

from pypi_assets.characters import is_printable
from pypi_assets.index.bounds import check_list, check_values
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import (
    LONGEST_NAME,
    BrokenEntry,
    IndexFile,
    ListedProject,
    ProjectPage,
    broken_entry,
    is_count,
    require_few,
)
from pypi_assets.index.observing.shown_pages import ShownFile, ShownPage
from pypi_assets.index.urls import quote_blanks, redact

RENDERED_METADATA_KEY = "_core-metadata-is-rendered"
"""The key of a file whose metadata pypi-assets has rendered from its record: they are not the bytes of its METADATA."""
_CORE_METADATA_KEYS = ("core-metadata", "data-dist-info-metadata", "dist-info-metadata")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
_DIGITS = re.compile(r"[0-9a-f]{1,200}")
# A URL that the normalization of RFC 3986 leaves unchanged: absolute, without port, user or query, and without dot
# segments.
_WHOLE_URL = re.compile(r"https?://[A-Za-z0-9.-]++(?:/[A-Za-z0-9_~+%!-][A-Za-z0-9._~+%!-]*+)++")


def read_project_page(
    body: bytes, *, project: str, url: str, header_serial: int | None, etag: str | None
) -> ProjectPage:
    """Return the page of `project` (normalized) with its serial, from the `body` that `url` returned.

    Raises the errors of `read_shown_page`, and RefusedError if the page has no serial.
    """
    shown = read_shown_page(body, project=project, url=url)
    last_serial = header_serial if shown.serial is None else shown.serial
    if last_serial is None:
        raise RefusedError(
            f"the page of {project} has neither meta._last-serial nor the header X-PyPI-Last-Serial: the index does"
            " not support PyPI's serials, so the page cannot be placed in the history; to follow such an index, use a"
            " new catalog with PYPI_ASSETS_LISTER=pages",
            url,
        )
    files = tuple(entry.file for entry in shown.files)
    return ProjectPage(project, last_serial, shown.status, files, etag, shown.broken, shown.versions, shown.name)


def read_shown_page(body: bytes, *, project: str, url: str) -> ShownPage:
    """Return the content of the page of `project` (normalized), from the `body` that `url` returned.

    A broken file entry does not affect the other entries. Its file does not count as removed, since the page lists it.
    Raises TransientError if the body is not JSON. Raises RefusedError if it is not a project page, if it has too many
    values, or if many or all of its entries are broken.
    """
    try:
        check_values(body)
    except ValueError as error:
        raise RefusedError(f"the page of {project} is too large: {error}", url) from error
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise TransientError(f"the page of {project} is broken JSON: {error}", url) from error
    try:
        last_serial = read_meta_serial(_read_object(document, "the page").get("meta"))
        if canonicalize_name(_read_text(document, "name")) != project:
            raise ValueError(f"it is the page of {document['name']}")
        status = _read_status(document.get("project-status"))
        files, broken = _read_files(document.get("files"), url)
        versions = _read_versions(document.get("versions"))
    except ValueError as error:
        raise RefusedError(f"the page of {project} breaks the protocol: {error}", url) from error
    require_few(len(broken), len(files), f"the page of {project}", url)
    name = document["name"] if document["name"] != project else None
    return ShownPage(project, files, name, status, versions, broken, serial=last_serial)


def read_meta_serial(meta: object) -> int | None:
    """Return the serial in `meta`, or None if it has none.

    Raises ValueError unless the Simple API's major version is 1, the only known one. PEP 691 requires clients to check
    it.
    """
    fields = _read_object(meta, "meta")
    version = fields.get("api-version")
    if not isinstance(version, str) or version.partition(".")[0] != "1":
        raise ValueError(f"meta.api-version is {version!r}, and only 1.x is known")
    return read_serial(fields.get("_last-serial"))


def read_serial(value: object) -> int | None:
    """Return `value`, which must be a serial or None. Raises ValueError for anything but a non-negative integer."""
    if value is not None and not is_count(value):
        raise ValueError("_last-serial is not a number")
    return value


def _read_status(value: object) -> str:
    """Return the status of a project (PEP 792), which is `active` if the index states none."""
    status = None if value is None else _read_object(value, "project-status").get("status")
    if status is not None and not isinstance(status, str):
        raise ValueError("project-status is not text")
    return status or "active"


def _read_versions(versions: object) -> tuple[str, ...]:
    """Return the versions of the releases, or an empty tuple if the index does not list them (API before 1.1)."""
    if versions is None:
        return ()
    if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
        raise ValueError("versions is not a list of texts")
    return tuple(version for version in versions if 0 < len(version) <= LONGEST_NAME)


def _read_files(entries: object, url: str) -> tuple[tuple[ShownFile, ...], tuple[BrokenEntry, ...]]:
    """Return the files and the broken entries of a page.

    A file with a broken entry is among the files, if its filename is usable, but without URL, hash and other facts.
    """
    if not isinstance(entries, list):
        raise ValueError("files is not a list")
    files: dict[str, ShownFile] = {}
    broken: list[BrokenEntry] = []
    for entry in entries:
        name = entry.get("filename") if isinstance(entry, dict) else None
        try:
            filename = _read_filename(_read_object(entry, "it"))
        except ValueError as error:
            broken.append(broken_entry(str(error), entry, name=name))
            continue
        try:
            shown = ShownFile(_read_file(filename, entry, url), entry["hashes"], _read_signature(entry))
        except ValueError as error:
            broken.append(broken_entry(str(error), entry, name=filename))
            shown = ShownFile(_without_facts(filename, is_yanked=bool(entry.get("yanked", False))))
        if filename not in files:
            files[filename] = shown
        elif shown.file.url is not None and not is_same_file(files[filename], shown):
            broken.append(broken_entry("it is listed twice", entry, name=filename))
    if broken and not files:
        raise ValueError(f"no entry of a file is usable: {broken[0].problem}")
    return tuple(files.values()), tuple(broken)


def is_same_file(first: ShownFile, second: ShownFile) -> bool:
    """Check whether two entries with one filename are one file, so that the second has nothing new.

    An index that joins others, or lists a folder twice, shows a file at two URLs. They are the same file if a hash of
    both is equal and no fact of the content differs.
    """
    if first == second:
        return True
    shared = first.hashes.keys() & second.hashes.keys()
    sizes = {first.file.size, second.file.size} - {None}
    return (
        any(isinstance(first.hashes[name], str) for name in shared)
        and all(first.hashes[name] == second.hashes[name] for name in shared)
        and len(sizes) < 2
        and first.file.yanked == second.file.yanked
    )


def _read_filename(entry: dict[str, object]) -> str:
    filename = _read_text(entry, "filename")
    check_filename(filename)
    return filename


def check_filename(filename: str) -> None:
    """Raise ValueError if this is not a plain filename, or if it is too long."""
    if not is_printable(filename) or "/" in filename or "\\" in filename or filename in {".", ".."}:
        raise ValueError(f"{filename!r} is not a plain filename")
    if len(filename) > LONGEST_NAME:
        raise ValueError(f"{filename[:40]!r}... is longer than {LONGEST_NAME} characters")


def _without_facts(filename: str, *, is_yanked: bool) -> IndexFile:
    return IndexFile(filename, None, None, None, None, None, is_yanked, None, False, None)


def _read_file(filename: str, entry: dict[str, object], url: str) -> IndexFile:
    size = entry.get("size")
    if size is not None and not is_count(size):
        raise ValueError("size is not a number of bytes")
    yanked = entry.get("yanked")
    yanked = False if yanked is None else yanked
    if not isinstance(yanked, bool | str):
        raise ValueError("yanked is neither a boolean nor a reason")
    core_metadata, core_metadata_sha256 = _read_core_metadata(entry)
    return IndexFile(
        filename=filename,
        url=_read_url(entry, url),
        sha256=_read_sha256(_read_object(entry.get("hashes"), "hashes")),
        size=size,
        uploaded_at=_read_upload_time(entry),
        requires_python=_read_optional_text(entry, "requires-python"),
        yanked=bool(yanked),  # by PEP 691, an empty text does not mean yanked, as it does in HTML
        yanked_reason=yanked if isinstance(yanked, str) and yanked else None,
        core_metadata=core_metadata,
        core_metadata_sha256=core_metadata_sha256,
    )


def _read_url(entry: dict[str, object], page_url: str) -> str:
    """Return the file's URL without credentials, since URLs are stored and displayed."""
    address = _read_text(entry, "url")
    return address if _WHOLE_URL.fullmatch(address) else redact(quote_blanks(urljoin(page_url, address)))


def _read_upload_time(entry: dict[str, object]) -> str | None:
    """Return the upload time in UTC with a Z at its end, as PEP 700 requires it, so that times compare as texts.

    Some indexes write another time zone or none, which is taken as UTC.
    """
    written = _read_optional_text(entry, "upload-time")
    if written is None:
        return None
    moment = datetime.fromisoformat(written)
    if _UTC_TIME.fullmatch(written):
        return written
    try:
        in_utc = moment.astimezone(UTC) if moment.tzinfo else moment
    except OverflowError as error:
        raise ValueError("upload-time is out of range") from error
    return f"{in_utc.replace(tzinfo=None).isoformat()}Z"


def _read_core_metadata(entry: dict[str, object]) -> tuple[bool, str | None]:
    """Return whether the index serves the file's METADATA next to it, and its hash.

    Older indexes use older keys (PEP 714).
    """
    if entry.get(RENDERED_METADATA_KEY) is True:
        return False, None
    value: object = None
    for key in _CORE_METADATA_KEYS:
        value = entry.get(key)
        if value is not None:
            break
    if value is None or isinstance(value, bool):
        return bool(value), None
    return True, _read_sha256(_read_object(value, "core-metadata"))


def _read_sha256(hashes: dict[str, object]) -> str | None:
    value = hashes.get("sha256")
    return None if value is None else read_digest("sha256", value)


def read_digest(algorithm: str, value: object) -> str:
    """Return a digest in lower case.

    Raises ValueError if it does not consist of hexadecimal digits, or if a sha256 does not have 64 of them.
    """
    digits = value.lower() if isinstance(value, str) else ""
    if algorithm == "sha256" and not _SHA256.fullmatch(digits):
        raise ValueError("its sha256 is not 64 hexadecimal digits")
    if not _DIGITS.fullmatch(digits):
        raise ValueError(f"its {algorithm} is not of hexadecimal digits")
    return digits


def _read_signature(entry: dict[str, object]) -> bool | None:
    value = entry.get("gpg-sig")
    return value if isinstance(value, bool) else None


def _read_object(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")
    return value


def _read_text(entry: dict[str, object], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is missing or not text")
    return value


def _read_optional_text(entry: dict[str, object], key: str) -> str | None:
    return _read_text(entry, key) if entry.get(key) not in (None, "") else None


_BROKEN_IN_MEMORY = 1_000
"""Up to this number of broken entries, the check for too many waits for the end of the list."""


def read_listing_serial(body: BinaryIO, url: str) -> int | None:
    """Return the index's last serial from `meta`, wherever that is in the body, or None if there is none.

    Raises RefusedError if the body is another JSON document or exceeds the limits of `bounds.py`, and TransientError if
    it is not JSON.
    """
    try:
        check_list(body)
        body.seek(0)
        return read_meta_serial(next(ijson.items(body, "meta"), None))
    except ijson.JSONError as error:
        raise TransientError("the list of projects is broken JSON", url) from error
    except ValueError as error:
        raise RefusedError(f"the list of projects breaks the protocol: {error}", url) from error


def read_listed_projects(body: BinaryIO, url: str) -> Iterator[ListedProject | BrokenEntry]:
    """Yield the projects of the list in `body`, and the broken entries among them.

    `read_listing_serial` must have read `body` before, since it checks the limits. A project with a broken serial is
    yielded without a serial, after its broken entry. Raises the errors of `read_listing_serial`, and RefusedError if
    many or all entries are broken. Errors are raised during iteration, where the reader meets them.
    """
    try:
        body.seek(0)
        broken = good = 0
        for entry in ijson.items(body, "projects.item"):
            project, problem = _read_listed_project(entry)
            if problem is not None:
                broken += 1
                if broken > _BROKEN_IN_MEMORY:
                    require_few(broken, good, "the list of projects", url)
                yield broken_entry(problem, entry, name=None if project is None else project.name)
            if project is not None:
                good += 1
                yield project
        require_few(broken, good, "the list of projects", url)
        if not good and (broken or not _has_list(body)):
            raise RefusedError("the list of projects breaks the protocol: projects is not a list of projects", url)
    except ijson.JSONError as error:
        raise TransientError("the list of projects is broken JSON", url) from error


def _has_list(body: BinaryIO) -> bool:
    """Check whether `projects` is a list."""
    body.seek(0)
    return any(prefix == "projects" and event == "start_array" for prefix, event, _ in ijson.parse(body))


def _read_listed_project(entry: object) -> tuple[ListedProject | None, str | None]:
    """Return the project of one entry, and the problem of the entry; each can be None."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return None, "an entry without a name"
    name = entry["name"]
    if len(name) > LONGEST_NAME:
        return None, f"the name {name[:40]!r}... is longer than {LONGEST_NAME} characters"
    if "\0" in name:
        return None, f"the name {name!r} holds a NUL, which no database can keep"
    try:
        return ListedProject(name, read_serial(entry.get("_last-serial"))), None
    except ValueError as error:
        return ListedProject(name, None), str(error)
