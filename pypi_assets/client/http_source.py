"""The answers of a service, over HTTP."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from pypi_assets.client.change_iterator import MOST_PER_BATCH, ChangesBatch, Filters
from pypi_assets.client.client_errors import (
    LocationError,
    NotFoundError,
    ServiceError,
    UnreachableError,
    service_error,
)
from pypi_assets.client.results import ResultPage
from pypi_assets.questions.addresses import STEPS, filled, names_in
from pypi_assets.questions.paging import PageCursor, digest_of
from pypi_assets.questions.question import ParameterError, Parameters, Question, all_questions
from pypi_assets.questions.snapshot import OtherSnapshotError

_PINNED = re.compile(r"/at/(\d+)\.(\d+)/")
_LONGEST_EXCERPT = 200
_LINES = "application/x-ndjson"
_NOT_HERE = (requests.codes.ok, requests.codes.not_found, requests.codes.method_not_allowed)


@dataclass(frozen=True, slots=True)
class ServiceSource:
    """A service at `url`, which ends in a slash. `moment` is the part of a path after `/at/`; empty is the newest."""

    url: str
    session: requests.Session
    timeout_s: float
    moment: str = ""

    def page(
        self, question: Question[Any], asked: Parameters, page_size: int | None, cursor: str | None
    ) -> ResultPage[Mapping[str, Any]]:
        """Return one page. Raises ServiceError, UnreachableError, and OtherSnapshotError if there is no route."""
        if question.path is None:
            raise OtherSnapshotError(
                f"the service has no route for the question {question.name}: connect to a home or a storage"
            )
        values = {one.name: getattr(asked, one.name) for one in question.takes}
        path, in_path = self._path(question, values), names_in(question.path)
        if question.has_body:
            body = {one.name: values[one.name] for one in question.takes if values[one.name] != one.default}
            return self._page(question, asked, self._request("POST", path, json=body))
        query = {
            one.name: _text(values[one.name])
            for one in question.takes
            if one.name not in in_path and values[one.name] != one.default
        }
        query |= {} if page_size is None else {"limit": str(page_size)}
        query |= {} if cursor is None else {"cursor": cursor}
        if question.long_by(asked):
            return self._lines(question, path, query)
        try:
            content = self._request("GET", path, params=query)
        except NotFoundError as error:
            if error.serial is None or error.parameter not in values:
                raise
            hints, columns = error.hints, tuple(question.result.__annotations__)
            return ResultPage(error.serial, error.epoch, None, (), None, columns, lambda: hints)
        return self._page(question, asked, content)

    def _page(self, question: Question[Any], asked: Parameters, content: Any) -> ResultPage[Mapping[str, Any]]:
        if not _is_answer(content, question):
            raise _foreign(self.url)
        serial, results = content["serial"], [content["result"]] if question.is_single else content["results"]
        epoch, digest, key = content.get("epoch"), digest_of(question, asked), question.sort_key
        named = content.get("set") if epoch is None else f"{serial}.{epoch}"
        return ResultPage(
            serial,
            epoch,
            content.get("followed_projects"),
            results,
            content.get("next"),
            tuple(question.result.__annotations__),
            hints=lambda: tuple(content.get("hints") or ()),
            cursor_after=None if key is None else lambda result: PageCursor(named, digest, list(key(result))).text(),
        )

    def changes(self, since: str | None, filters: Filters) -> ChangesBatch:
        """Return the changes after a position. Raises ServiceError and UnreachableError."""
        from pypi_assets.journal.cursors import Cursor as Position

        query = {name: ",".join(values) for name, values in filters.items()} | {"limit": str(MOST_PER_BATCH)}
        content = self._request("GET", "v1/changes", params=query if since is None else query | {"since": since})
        try:
            found, cursor, through = content["changes"], content["cursor"], content["through"]
            is_last = Position.parse(cursor) >= Position.after_serial(through)
        except (KeyError, TypeError, ValueError):
            raise _foreign(self.url) from None
        return ChangesBatch(found, cursor, through, is_last)

    def at(self, moment: str) -> "ServiceSource":
        """Return the same service at a moment."""
        return ServiceSource(self.url, self.session, self.timeout_s, moment)

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    def _path(self, question: Question[Any], values: Mapping[str, Any]) -> str:
        accepted = {one.name: one.accepts.text for one in question.takes}
        for one in question.takes:
            if one.is_required and values[one.name] in STEPS:
                raise ParameterError(one.name, values[one.name], accepted[one.name])
        path = filled(question.path or "", values)
        folder, _, last = (question.path or "").rpartition("/")
        for name in names_in(last):  # a value that is a word can be the last part of another question's route
            if values[name].isalpha() and f"{folder}/{values[name]}" in {one.path for one in all_questions()}:
                raise ParameterError(name, values[name], f"{accepted[name]}, and not the name of another route")
        return f"at/{quote(self.moment, safe=':')}{path}" if self.moment else path.removeprefix("/")

    def _lines(self, question: Question[Any], path: str, query: Mapping[str, str]) -> ResultPage[Mapping[str, Any]]:
        """Return all results of a search of the whole index, read from the service as they are iterated over."""
        url = self.url + path
        try:
            response = self.session.get(url, params={**query, "format": "ndjson"}, timeout=self.timeout_s, stream=True)
            if response.status_code != requests.codes.ok:
                raise _error_of(url, response)
            if response.headers.get("Content-Type", "").partition(";")[0].strip() != _LINES:
                response.close()
                raise _foreign(url)
        except requests.RequestException as error:
            raise UnreachableError(url, str(error)) from error

        def results() -> Iterator[Mapping[str, Any]]:
            try:
                with response:
                    yield from map(json.loads, response.iter_lines())
            except (requests.RequestException, ValueError) as error:
                raise UnreachableError(url, str(error)) from error

        serial, epoch = _as_of(response)
        columns = tuple(question.result.__annotations__)
        return ResultPage(serial or 0, epoch, None, results(), None, columns, close=response.close)

    def _request(self, method: str, path: str, **content: Any) -> Any:
        url = self.url + path
        try:
            with self.session.request(method, url, timeout=self.timeout_s, **content) as response:
                content = _json(response)
        except requests.RequestException as error:
            raise UnreachableError(url, str(error)) from error
        if response.status_code == requests.codes.ok and content is not None:
            return content
        raise _error_of(url, response)


def _foreign(url: str) -> LocationError:
    return LocationError(f"{url} is not answered by a service of pypi-assets: is it the URL of another program?")


def _error_of(url: str, response: requests.Response) -> ServiceError | LocationError:
    content = _json(response)
    if response.status_code in _NOT_HERE and not (isinstance(content, dict) and "type" in content):
        return _foreign(url)
    document = content if isinstance(content, dict) else {"detail": response.text[:_LONGEST_EXCERPT]}
    found = service_error(url, response.status_code, document, _seconds(response.headers.get("Retry-After")))
    found.serial, found.epoch = _as_of(response)
    return found


def _as_of(response: requests.Response) -> tuple[int | None, int | None]:
    """Return the serial of a response and its epoch, if the response names them."""
    if pinned := _PINNED.search(response.url):
        return int(pinned[1]), int(pinned[2])
    return _number(response.headers.get("X-PyPI-Last-Serial", "")), None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _is_answer(content: Any, question: Question[Any]) -> bool:
    """Check whether a document has the form of an answer to the question."""
    if not isinstance(content, dict) or not isinstance(content.get("serial"), int):
        return False
    results = [content.get("result")] if question.is_single else content.get("results")
    fields = question.result.__annotations__.keys()
    return isinstance(results, list) and all(isinstance(one, dict) and fields <= one.keys() for one in results)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _json(response: requests.Response) -> Any:
    try:
        return response.json()
    except (requests.JSONDecodeError, RecursionError):
        return None


def _seconds(text: str | None) -> float | None:
    seconds = None if text is None else _number(text)
    return None if seconds is None else float(seconds)
