"""Open a client: `connect` detects whether a location is a service, a home or a storage."""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from pypi_assets.client.change_iterator import ChangeIterator, ChangesBatch, Filters, filters_of
from pypi_assets.client.client_errors import LocationError
from pypi_assets.client.methods import Questions
from pypi_assets.client.results import ResultIterator, ResultPage
from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.questions.paging import MOST_PER_PAGE
from pypi_assets.questions.question import ParameterError, Parameters, Question, find_question

if TYPE_CHECKING:
    import requests

_HTTP = ("http", "https")
_TIMEOUT_S = 30.0


class AnswerSource(Protocol):
    """A source of answers, page by page, as of one moment."""

    def page(
        self, question: Question[Any], asked: Parameters, page_size: int | None, cursor: str | None
    ) -> ResultPage[Any]:
        """Return the page at a cursor, or the first page if it is None."""

    def at(self, moment: str) -> "AnswerSource":
        """Return the same source at a serial or a time."""

    def changes(self, since: str | None, filters: Filters) -> ChangesBatch:
        """Return the changes after a position, or from the first change if it is None."""

    def close(self) -> None:
        """Close the connections and the files."""


class Client(Questions):
    """A client that answers questions about an index. `connect` opens it, and the end of a `with` block closes it."""

    def __init__(self, source: AnswerSource) -> None:
        self._source = source

    def at(self, moment: int | str | date) -> "Client":
        """Return the same client at a serial, or at a time in UTC, such as "2026-03-03". Closing one closes both.

        A home looks up the exact serial immediately, and a service with each question. Raises OtherSnapshotError for a
        storage, which only has the newest answers, ParameterError, and CatalogError if the catalog is not exact at this
        moment.
        """
        return Client(self._source.at(_moment_text(moment)))

    def changes(
        self,
        since: int | str | date | None = None,
        *,
        project: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        stream: str | Sequence[str] | None = None,
        module: str | Sequence[str] | None = None,
        gained: str | Sequence[str] | None = None,
    ) -> ChangeIterator:
        """Iterate over the changes in order, up to the last published one. The index must have a journal.

        `since` is a serial, a time in UTC, "now", or the `cursor` of an earlier iterator; None starts at the first
        change. Each filter is one value or several: names of projects, kinds of changes, streams (index, observed,
        content), modules, and properties that a release gained, such as "start-up". The moment of the client has no
        effect.

        Raises ParameterError (from a service: BadParameterError) for an unknown value, SinceError or NotFoundError for
        an unknown position, and NoJournalError, UnavailableError or GoneError if the journal lacks the changes after
        it.
        """
        given = {"project": project, "kind": kind, "stream": stream, "module": module, "gained": gained}
        filters = filters_of(given)
        return ChangeIterator(
            lambda cursor: self._source.changes(cursor, filters), None if since is None else _moment_text(since)
        )

    def close(self) -> None:
        """Close the connections and the files."""
        self._source.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._source!r})"

    def _ask(
        self, name: str, values: dict[str, Any], page_size: int | None = None, cursor: str | None = None
    ) -> ResultIterator[Any]:
        question = find_question(name)
        asked = question.given(**values)
        if page_size is not None and not 1 <= page_size <= MOST_PER_PAGE:
            raise ParameterError("page_size", page_size, f"a number from 1 to {MOST_PER_PAGE}")
        return ResultIterator(lambda at: self._source.page(question, asked, page_size, at), cursor)


def connect(
    location: str | os.PathLike[str] | None = None,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    timeout_s: float = _TIMEOUT_S,
    session: "requests.Session | None" = None,
) -> Client:
    """Return a client of a service, a home or a storage.

    >>> with pypi_assets.connect("http://127.0.0.1:8642") as client:
    ...     [one["project"] for one in client.module("yaml")]
    ['PyYAML']

    `location` is the URL of a service, the folder of a home, or a storage: a folder or a URL such as
    s3://BUCKET/PREFIX. None stands for the home and the storage of the settings (PYPI_ASSETS_...). A home answers
    earlier serials from its catalog. Files of a remote storage are cached in `cache_dir`. Two parameters are only for a
    service: `timeout_s`, the longest time without any bytes from it, and `session`, for proxies, certificates or
    credentials.

    Raises LocationError, StorageError and SettingsError. A service is not contacted before the first question.
    """
    cache = None if cache_dir is None else Path(cache_dir)
    if location is None:
        return Client(_source_of_settings(cache))
    text = os.fspath(location)
    scheme = urlsplit(text).scheme if "://" in text else ""
    if scheme in _HTTP:
        return Client(_service(text, timeout_s, session))
    if scheme in ("", "file"):
        folder = Path(unquote(urlsplit(text).path)) if scheme else Path(text).expanduser()
        return Client(_folder(folder.absolute(), cache))
    return Client(_storage(text, cache))


def _service(url: str, timeout_s: float, session: "requests.Session | None") -> AnswerSource:
    import requests

    from pypi_assets.client.http_source import ServiceSource

    parts = urlsplit(url)
    if not parts.hostname or parts.query or parts.fragment:
        raise LocationError(f"{url} is not the URL of a service: use https://HOST/ or https://HOST/PATH/")
    return ServiceSource(url.rstrip("/") + "/", session or requests.Session(), timeout_s)


def _folder(folder: Path, cache_dir: Path | None) -> AnswerSource:
    """Return the source of a folder: a home if it has a catalog or a folder `storage`, and otherwise a storage."""
    from pypi_assets.settings import CATALOG_URL_FILE, load_settings

    if not folder.is_dir():
        raise LocationError(f"there is no folder {folder}: {FIRST_COMMANDS}; or name another folder")
    if any((folder / name).exists() for name in ("catalog.sqlite", CATALOG_URL_FILE, "storage")):
        settings = load_settings()
        if settings.resolved_home != folder.resolve():
            settings = load_settings(home=folder, storage_url="", database_url="")
        return _home(settings, cache_dir)
    return _storage(folder.as_uri(), cache_dir)


def _source_of_settings(cache_dir: Path | None) -> AnswerSource:
    from pypi_assets.settings import load_settings

    return _home(load_settings(), cache_dir)


def _home(settings: Any, cache_dir: Path | None) -> AnswerSource:
    from pypi_assets.client.local_sources import PublishedSource
    from pypi_assets.storage.store import open_storage

    def open_catalog() -> Any:
        from pypi_assets.components import catalog_to_read

        return catalog_to_read(settings)

    storage = open_storage(settings.resolved_storage_url, read_only=True)
    return PublishedSource(storage, cache_dir or settings.leveldbs_dir, open_catalog)


def _storage(url: str, cache_dir: Path | None) -> AnswerSource:
    from pypi_assets.client.local_sources import PublishedSource
    from pypi_assets.setting_sources import STORAGE_URL_ACCEPTS, checked_storage_url
    from pypi_assets.storage.store import open_storage

    try:
        checked = checked_storage_url(url)
    except ValueError as error:
        raise LocationError(
            f"{url}: {error}; connect takes https://HOST/, a folder, or {STORAGE_URL_ACCEPTS}"
        ) from None
    return PublishedSource(open_storage(checked, read_only=True), cache_dir)


def _moment_text(moment: int | str | date) -> str:
    """Return a moment in the form of a path or an option. A time without a time zone is in UTC."""
    if isinstance(moment, datetime):
        in_utc = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        return in_utc.strftime("%Y-%m-%dT%H:%M:%SZ")  # events have whole seconds
    return moment.isoformat() if isinstance(moment, date) else str(moment)
