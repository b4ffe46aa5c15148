"""Requests the pages of an index without serials, as JSON (PEP 691) or HTML (PEP 503), whichever the index serves.

Requests are conditional, by ETag and Last-Modified, once these are known. The meaning of a page is decided in
`comparison.py`; pages are parsed by `pages.py` and `html_pages.py`.
"""

import io
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from urllib.parse import quote, unquote, urljoin, urlsplit

from packaging.utils import canonicalize_name

from pypi_assets.index.client import IndexAnswer, IndexClient
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import ListedProject
from pypi_assets.index.observing.html_pages import MAX_HTML_BYTES, read_html_list, read_html_page
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownList, ShownPage, ShownProject, Validators
from pypi_assets.index.pages import read_listed_projects, read_listing_serial, read_shown_page

_HTML = "application/vnd.pypi.simple.v1+html"
ACCEPT = f"application/vnd.pypi.simple.v1+json, {_HTML};q=0.2, text/html;q=0.01"
MAX_PAGE_BYTES = 256 * 1024**2
_SETTLED_AFTER_S = 2.0


class SimplePages:
    """Reads the pages of one index from below its URL.

    source = SimplePages(client)
    page = source.page("demo", None, NO_VALIDATORS)
    """

    def __init__(self, client: IndexClient) -> None:
        self._client = client

    def list_of_projects(self, known: Validators) -> ShownList | None:
        """Return all projects of the index, or None if the list has not changed."""
        url = self._client.index_url
        answer = self._client.fetch(url, accept=ACCEPT, headers=known.headers(), max_bytes=MAX_PAGE_BYTES)
        if answer is None:
            return None
        if answer.media_type.endswith("json"):
            return ShownList(list(_listed(answer)), _validators(answer))
        require_html(answer)
        projects = read_html_list(answer.body, url=answer.url, charset=answer.charset, index_url=url)
        own = urlsplit(url).netloc
        below = [
            project
            for project in projects
            if project.url is not None and urlsplit(project.url).netloc in {own, _host(answer)}
        ]
        return ShownList(below, _validators(answer))

    def page(self, project: str, url: str | None, known: Validators) -> ShownPage | None:
        """Return the current page of `project`, or None if it has not changed."""
        address = url or urljoin(self._client.index_url, f"{quote(project, safe='')}/")
        answer = self._client.fetch(address, accept=ACCEPT, headers=known.headers(), max_bytes=MAX_PAGE_BYTES)
        if answer is None:
            return None
        _require_own_page(answer, project, address)
        if answer.media_type.endswith("json"):
            shown = read_shown_page(answer.body, project=project, url=answer.url)
        else:
            require_html(answer)
            shown = read_html_page(
                answer.body,
                project=project,
                url=answer.url,
                charset=answer.charset,
                is_certain=answer.media_type == _HTML,
            )
        serial = answer.serial if shown.serial is None else shown.serial
        return ShownPage(
            shown.project,
            shown.files,
            shown.name,
            shown.status,
            shown.versions,
            shown.broken,
            _validators(answer),
            serial,
        )


def _listed(answer: IndexAnswer) -> Iterator[ShownProject]:
    body = io.BytesIO(answer.body)
    read_listing_serial(body, answer.url)
    for entry in read_listed_projects(body, answer.url):
        if isinstance(entry, ListedProject):
            yield ShownProject(entry.name)


def _validators(answer: IndexAnswer) -> Validators:
    """Return the validators of an answer, or none if its content changed just before it was sent.

    File times are whole seconds, and many servers build the ETag from a time and a size. So a page that changes twice
    within a second has the same validators both times, and the second change would not be sent (RFC 9110, 8.8.2.2).
    """
    sent, changed = _seconds(answer.date), _seconds(answer.last_modified)
    if sent is not None and changed is not None and sent - changed < _SETTLED_AFTER_S:
        return NO_VALIDATORS
    return Validators(answer.etag, answer.last_modified)


def _seconds(date: str | None) -> float | None:
    """Return the date of a header in unix seconds, or None if it is invalid."""
    try:
        return None if date is None else parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def _host(answer: IndexAnswer) -> str:
    return urlsplit(answer.url).netloc


def require_html(answer: IndexAnswer) -> None:
    """Raise an error unless the answer is HTML of at most MAX_HTML_BYTES."""
    if answer.media_type not in {_HTML, "text/html", "application/xhtml+xml"}:
        text = f"expected a page of the Simple API as JSON or HTML, received {answer.media_type or 'no media type'}"
        raise TransientError(text, answer.url)
    if len(answer.body) > MAX_HTML_BYTES:
        raise RefusedError(f"the page has more than {MAX_HTML_BYTES} bytes", answer.url)


def _require_own_page(answer: IndexAnswer, project: str, address: str) -> None:
    """Raise RefusedError if redirects have led to something other than the page of the project."""
    if answer.url == address:
        return
    segments = [unquote(part) for part in urlsplit(answer.url).path.split("/") if part]
    if segments and segments[-1].startswith("index."):
        segments.pop()
    if not segments or canonicalize_name(segments[-1]) != project:
        raise RefusedError(f"redirects to {answer.url}, which is not the page of {project} (a login?)", address)
