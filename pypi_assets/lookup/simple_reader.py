"""Look up the files that a project's page of the Simple API shows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from typing import TYPE_CHECKING, TypedDict

from packaging.utils import canonicalize_name

from pypi_assets.leveldbs.datasets.simple import page_records as simple
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import key, records_of
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.reader import DatasetReader, require_text
from pypi_assets.version_order import VersionKey, version_key

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage


_ACTIVE = "active"


class PageFileResult(TypedDict):
    """A file on the page of its project.

    `yanked` is a flag, or the reason as text. `metadata_sha256` is the hash of the metadata that are served for the
    file, and `metadata_by` is their origin, `record` or `index`; both are None if no metadata are served.
    `first_seen_at` is when an observed index first showed the file, if no page states an upload time.
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
    """A project on the list of projects, by normalized name."""

    name: str


class SimpleReader(DatasetReader):
    """A reader of the dataset `simple`. Project names are compared normalized."""

    dataset = "simple"
    names_start = key("f", "")

    def _spelled(self, name: str) -> str:
        return canonicalize_name(name)

    def page(self, name: str, filename: str | None = None) -> "SimplePage | None":
        """Return the page of a project, or only one of its files. Return None if there is no such live file.

        >>> simple.page("requests").files[-1].filename
        'requests-2.32.3.tar.gz'
        """
        project = canonicalize_name(require_text("page", name))
        if filename is not None:
            require_text("page", filename)
        return self._read(lambda db: _page(db, project, filename))[1]

    def listed(self) -> Stream[ListedResult]:
        """Return the projects that have a page with files, by normalized name, as a stream.

        >>> next(iter(simple.listed()))
        {'name': '0x0'}
        """
        return self._stream(ListedResult, _projects)

    def files(self, name: str) -> Answer[PageFileResult]:
        """Return the files on the page of a project, in the order of the page."""
        project = canonicalize_name(require_text("files", name))

        def found(db: Database) -> Iterable[PageFileResult]:
            page = _page(db, project, None)
            return () if page is None else page_results(page)

        return self._answer(PageFileResult, found)


def _projects(db: Database) -> Iterator[ListedResult]:
    """Yield each project (normalized) once. One seek skips all of its files."""
    start = simple.project_prefix("")[:-1]
    with closing(db.raw_iterator(verify_checksums=True)) as records:
        records.seek(start)
        while records.valid() and records.key().startswith(start):
            project, _ = simple.split_file_key(records.key())
            yield ListedResult(name=project)
            records.seek(simple.project_prefix(project)[:-1] + b"\1")


def in_page_order(files: "Iterable[SimpleFile]") -> "list[SimpleFile]":
    """Return the files by version (PEP 440), then by filename.

    This is the order of PyPI, and it matters: installers take the first of equally good files.
    """
    found = sorted(files, key=itemgetter(0))
    ranks = _ranks({file[1] for file in found})
    found.sort(key=lambda file: ranks[file[1]])  # integers compare faster, and there are fewer releases than files
    return found


def page_versions(files: "Iterable[SimpleFile]") -> list[str]:
    """Return the versions of these files as written, in PEP 440 order."""
    return sorted({file.version for file in files}, key=version_key)


def page_results(page: "SimplePage") -> Iterable[PageFileResult]:
    """Return the files of the page as results, in the order of the page."""
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
    """Return a number for each version, by which versions are sorted. Versions that are equal by PEP 440 share one."""
    places = sorted((_place(version), version) for version in versions)
    ranks: dict[str, int] = {}
    rank, before = 0, None
    for place, version in places:
        rank += place != before
        ranks[version], before = rank, place
    return ranks


def _place(version: str) -> VersionKey:
    """Return a sort key that is equal for versions that are equal by PEP 440."""
    of_version = version_key(version)
    return of_version[:-1] if of_version[0] else of_version


def _page(db: Database, project: str, filename: str | None) -> "SimplePage | None":
    from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage  # other readers do not need the catalog

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
    """Return the status of the project of these files. A page without a status means an active project (PEP 792)."""
    if len({record.status for record in found}) == 1:
        return found[0].status or _ACTIVE
    # files may come from dumps before and after a change of the status: the newest file has the newest status
    newest = max(zip(found, names, strict=True), key=lambda one: (one[0].uploaded_at or "", one[1]))[0]
    return newest.status or _ACTIVE


READER = SimpleReader
