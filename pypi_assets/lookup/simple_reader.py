"""Looks up what the page of a project in the Simple API shows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from typing import TYPE_CHECKING, TypedDict

from packaging.utils import canonicalize_name

from pypi_assets.leveldbs.datasets.simple import page_records as simple
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import key, records_of
from pypi_assets.leveldbs.format.version_order import VersionKey, version_key
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.reader import DatasetReader, require_text

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage


_ACTIVE = "active"


class PageFileResult(TypedDict):
    """A file on the page of its project. `yanked` is a flag, or the reason. `metadata_sha256` is that of the metadata
    which are served for it, and `metadata_by` who has them: `record` or `index`; both are None where there are none.
    `first_seen_at` is when an observed index first showed it, if no page states its upload.
    """

    filename: str
    version: str
    normalized: str
    url: str | None
    sha256: str | None
    size: int | None
    requires_python: str | None
    uploaded_at: str | None
    yanked: bool | str
    metadata_sha256: str | None
    metadata_by: str | None
    first_seen_at: str | None
    project_status: str | None


class ListedResult(TypedDict):
    """A project on the list of projects, by its normalized name."""

    name: str


class SimpleReader(DatasetReader):
    """Answers from `simple`. Names of projects are compared normalized."""

    dataset = "simple"
    names_start = key("f", "")

    def _spelled(self, name: str) -> str:
        return canonicalize_name(name)

    def page(self, name: str, filename: str | None = None) -> "SimplePage | None":
        """What the page of a project shows, or of it one file alone; None where it shows no live file.

        >>> simple.page("requests").files[-1].filename
        'requests-2.32.3.tar.gz'
        """
        project = canonicalize_name(require_text("page", name))
        if filename is not None:
            require_text("page", filename)
        return self._read(lambda db: _page(db, project, filename))[1]

    def listed(self) -> Stream[ListedResult]:
        """Return the projects that have a page with files, by normalized name, as they are read.

        >>> next(iter(simple.listed()))
        {'name': '0x0'}
        """
        return self._stream(ListedResult, _projects)

    def files(self, name: str) -> Answer[PageFileResult]:
        """The files on the page of a project, in its order."""
        project = canonicalize_name(require_text("files", name))

        def found(db: Database) -> Iterable[PageFileResult]:
            page = _page(db, project, None)
            return () if page is None else page_results(page)

        return self._answer(PageFileResult, found)


def _projects(db: Database) -> Iterator[ListedResult]:
    """Yield each project (normalized) once. One step leads over all of its files."""
    start = simple.project_prefix("")[:-1]
    with closing(db.raw_iterator(verify_checksums=True)) as records:
        records.seek(start)
        while records.valid() and records.key().startswith(start):
            project, _ = simple.split_file_key(records.key())
            yield ListedResult(name=project)
            records.seek(simple.project_prefix(project)[:-1] + b"\1")


def in_page_order(files: "Iterable[SimpleFile]") -> "list[SimpleFile]":
    """The files by version, as PEP 440 orders them, then by filename: so PyPI orders them, and installers choose the
    first of equals."""
    found = sorted(files, key=itemgetter(0))
    ranks = _ranks({file[1] for file in found})
    found.sort(key=lambda file: ranks[file[1]])  # numbers compare faster, and there are fewer releases than files
    return found


def page_versions(files: "Iterable[SimpleFile]") -> list[str]:
    """The texts of the releases of these files, in PEP 440's order."""
    return sorted({file.version for file in files}, key=version_key)


def page_results(page: "SimplePage") -> Iterable[PageFileResult]:
    """The files of the page, in its order, as they are printed."""
    return [
        PageFileResult(
            filename=file.filename,
            version=file.version,
            normalized=page.project,
            url=file.url,
            sha256=file.sha256,
            size=file.size,
            requires_python=file.requires_python,
            uploaded_at=file.uploaded_at,
            yanked=file.yanked,
            metadata_sha256=file.metadata_sha256,
            metadata_by=None if file.metadata_sha256 is None else "record" if file.is_rendered else "index",
            first_seen_at=file.first_seen_at,
            project_status=page.status,
        )
        for file in in_page_order(page.files)
    ]


def _ranks(versions: Iterable[str]) -> dict[str, int]:
    """A number for each version; of those that PEP 440 holds equal the same."""
    places = sorted((_place(version), version) for version in versions)
    ranks: dict[str, int] = {}
    rank, before = 0, None
    for place, version in places:
        rank += place != before
        ranks[version], before = rank, place
    return ranks


def _place(version: str) -> VersionKey:
    """What PEP 440 holds equal has the same place."""
    of_version = version_key(version)
    return of_version[:-1] if of_version[0] else of_version


def _page(db: Database, project: str, filename: str | None) -> "SimplePage | None":
    from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage  # others need nothing of the catalog

    if filename is None:
        records = records_of(db, simple.project_prefix(project))
    else:
        value = db.get(simple.file_key(project, filename), verify_checksums=True)
        records = [] if value is None else [(simple.file_key(project, filename), value)]
    if not records:
        return None
    start = len(simple.project_prefix(project))
    names = [record_key[start:].decode() for record_key, _ in records]
    found = simple.decode_files(value for _, value in records)
    files = [SimpleFile(name, *record[:-1]) for name, record in zip(names, found, strict=True)]  # without the status
    return SimplePage(project, _status(names, found), tuple(in_page_order(files)))


def _status(names: Sequence[str], found: Sequence[simple.FileRecord]) -> str:
    """Return the status of the project of these files; a page that states none is of an active one (PEP 792)."""
    if len({record.status for record in found}) == 1:
        return found[0].status or _ACTIVE
    # files may be of dumps before and after the status changed: that which came last has the newer one
    newest = max(zip(found, names, strict=True), key=lambda one: (one[0].uploaded_at or "", one[1]))[0]
    return newest.status or _ACTIVE


READER = SimpleReader
