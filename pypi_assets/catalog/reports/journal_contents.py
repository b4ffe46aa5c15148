"""The content stream of the journal: the contents of files, and the changes of releases.

*File read* records depend only on the content of the file and the extractor's version, apart from the file's place.
Comparisons of releases depend on the files that the catalog knows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import bare_rows, sent_values
from pypi_assets.catalog.derived.file_updates import REPLACED
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import FOLLOWED
from pypi_assets.catalog.publications.dump_rows import Contents
from pypi_assets.catalog.reads.read_outcomes import READ_LATE, ReadOutcome
from pypi_assets.catalog.reports.journal_format import Record
from pypi_assets.catalog.reports.journal_records import file_record
from pypi_assets.catalog.reports.logged_changes import LoggedBatch, LoggedFile, is_begun
from pypi_assets.catalog.reports.release_comparisons import Change, Group, ReleaseComparisons
from pypi_assets.catalog.tables import changes
from pypi_assets.index.actions import Action

FILE_READ = "file read"
NOT_READ = "file not read"
_COMPARED = frozenset({*(action.value for action in Action), READ_LATE})
"""The causes of changes whose releases are compared. Files from before the first known event are not compared."""
_BEARING = frozenset({READ_LATE, REPLACED, FOLLOWED})
_DATA = ReadOutcome.DATA.value


class ContentRecords:
    """The files that became live, were read or were replaced, as logged in a sealed range.

    At each serial, the contents of files come first, then the changes of their releases. Batches must be given in
    order.
    """

    def __init__(self, connection: Connection, _serials: SerialRange) -> None:
        self._connection = connection
        self._contents = Contents(connection)
        self._comparisons = ReleaseComparisons(connection, self._contents)
        self._last = 0
        self._seen: set[int] = set()  # the files of the last serial that have a record
        self._waiting: list[LoggedFile] = []  # its files whose releases are compared: more of them can follow
        self._seconds: dict[int, int | None] = {}  # the times of these

    def of(self, batch: LoggedBatch) -> Iterator[Record]:
        """Yield the records of a batch."""
        files = self._once_a_serial(_bearing(self._connection, batch))
        contents = self._contents.read_from(
            batch.stored[id_] for id_ in {file.distribution_id for file in files} - batch.replaced
        )
        compared = (file for file in files if file.cause in _COMPARED)
        changed = self._comparisons.changes((*self._waiting, *compared))
        seconds = self._seconds = self._seconds | batch.times.seconds
        for file in files:
            if self._waiting and file.logged_serial != self._waiting[0].logged_serial:
                yield from _changes(self._waiting, changed, seconds)
                self._waiting = []
            id_ = file.distribution_id
            content = self._content_at(batch, file) if id_ in batch.replaced else contents.get(id_)
            if content is not None:
                kind = FILE_READ if content["outcome"] == _DATA else NOT_READ
                record = file_record(file, kind, seconds[file.serial])
                record.update(content)
                yield record
            if file.cause in _COMPARED:
                self._waiting.append(file)
        self._seconds = {file.serial: seconds[file.serial] for file in self._waiting}

    def rest(self) -> Iterator[Record]:
        """Yield the records after the last batch."""
        yield from _changes(self._waiting, self._comparisons.changes(self._waiting), self._seconds)

    def _once_a_serial(self, files: Iterable[LoggedFile]) -> list[LoggedFile]:
        """Return `files` with the first change of each file at a serial."""
        found = []
        for file in files:
            if file.logged_serial != self._last:
                self._last, self._seen = file.logged_serial, set()
            if file.distribution_id not in self._seen:
                self._seen.add(file.distribution_id)
                found.append(file)
        return found

    def _content_at(self, batch: LoggedBatch, file: LoggedFile) -> dict[str, object] | None:
        """Return the content that counted when the change was logged."""
        id_ = file.distribution_id
        return Contents(self._connection, file.logged_serial).read_from([batch.stored[id_]]).get(id_)


def _bearing(connection: Connection, batch: LoggedBatch) -> list[LoggedFile]:
    """Return the changes that get the content of their file.

    If a file was read late, only the late read gets its content, which can be logged after this range.
    """
    live = batch.live
    found = [
        file for file in batch.files if file.cause in _BEARING or is_begun(file, live.get(file.distribution_id, ()))
    ]
    others = sorted({file.distribution_id for file in found if file.cause != READ_LATE})
    if not others:
        return found
    c = changes.c
    sent = sent_values(connection, c.distribution_id, others)
    query = (
        select(c.distribution_id, c.logged_serial, c.cause)
        .select_from(sent)
        .join(changes, c.distribution_id == sent.c.value)
        .where(c.cause.in_((READ_LATE, REPLACED)), c.logged_serial >= batch.files[0].logged_serial)
    )
    later: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for id_, logged_serial, cause in bare_rows(connection, query):
        # at the same serial, a late read comes before a replacement
        later[id_].append((logged_serial, cause == REPLACED))

    def is_read_late(file: LoggedFile) -> bool:
        """Check whether the file's content at this change became known by a late read."""
        own = file.logged_serial
        after = [
            (serial, is_replaced)
            for serial, is_replaced in later[file.distribution_id]
            if serial > own or (serial == own and not is_replaced)
        ]
        return bool(after) and not min(after)[1]

    if not later:
        return found
    return [file for file in found if file.cause == READ_LATE or not is_read_late(file)]


def _changes(
    files: Iterable[LoggedFile], changed: Mapping[Group, Sequence[Change]], seconds: Mapping[int, int | None]
) -> Iterator[Record]:
    """Yield the changes of the releases of `files`, which are logged at the same serial."""
    first: dict[tuple[str, str], LoggedFile] = {}
    for file in files:
        first.setdefault((file.normalized, file.version), file)
    for _, file in sorted(first.items()):
        for kind, facts in changed.get((file.logged_serial, file.project_id, file.version), ()):
            record = file_record(file, kind, seconds[file.serial])
            del record["filename"], record["cause"]
            yield record | facts
