"""Detects the kind of an index by its list of projects, the serials on the list, and its changelog.

`init` writes the result into a settings file. With PYPI_ASSETS_LISTER=auto, a first crawl uses the result directly.
`kinds.py` defines how an index of each kind is opened.
"""

import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from pypi_assets.index.client import IndexAnswer, IndexClient
from pypi_assets.index.errors import (
    LeadsElsewhereError,
    LoginError,
    NoAnswerError,
    PackageIndexError,
    RefusedError,
    TransientError,
)
from pypi_assets.index.file_endings import FILE_ENDINGS
from pypi_assets.index.kind_names import AUTO, PAGES, SIMPLE, XMLRPC
from pypi_assets.index.models import ListedProject
from pypi_assets.index.observing.html_pages import read_html_list
from pypi_assets.index.observing.page_source import ACCEPT, MAX_PAGE_BYTES, SimplePages, require_html
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownPage, ShownProject
from pypi_assets.index.pages import read_listed_projects, read_listing_serial
from pypi_assets.index.urls import LIST_FOLDERS, addresses_of, redact

_MOST_PAGES = 3
_PRODUCTS = {
    "Artifactory": re.compile(r"/api/pypi/[^/]+/"),
    "GitLab": re.compile(r"/api/v4/(?:projects/[^/]+|groups/[^/]+/-)/packages/pypi/"),
    "Nexus": re.compile(r"/repository/[^/]+/"),
    "devpi": re.compile(r"/\+simple/"),
}
"""Products that can be recognized by the form of their URLs."""
_WHERE = (
    "Check PYPI_ASSETS_INDEX_URL, which is the address that pip takes as --index-url: in devpi"
    " .../USER/INDEX/, in Artifactory .../api/pypi/NAME/, in Nexus .../repository/NAME/, in GitLab"
    " .../api/v4/projects/ID/packages/pypi/. If it needs a login, set it in the URL, in netrc or in the keyring:"
    " without a login, many servers answer 403 or 404"
)


class UnknownIndexError(RefusedError):
    """No URL of the index has a list or pages that can be followed. The message names the answer of each URL."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The kind of an index: `xmlrpc` (serials and a changelog), `simple` (serials only) or `pages` (neither).

    `index_url` is the URL at which the list of projects was requested, and `moved_to` is the target if that redirects.
    Neither has credentials. `serial` is the index's last serial, and `projects` the length of its list; each is None if
    unknown. `changelog` explains why there is no changelog. It is empty if there is one, or if none was looked for.
    """

    index_url: str
    kind: str
    serial: int | None = None
    projects: int | None = None
    changelog: str = ""
    moved_to: str | None = None

    @property
    def product(self) -> str:
        """Return the product whose URLs have this form, or an empty string if none is known."""
        path = urlsplit(self.moved_to or self.index_url).path
        return next((name for name, form in _PRODUCTS.items() if form.search(path)), "")

    @property
    def lister(self) -> str:
        """Return the value for PYPI_ASSETS_LISTER. `auto` chooses between the two kinds with serials."""
        return PAGES if self.kind == PAGES else AUTO


def detect(client: IndexClient, url: str, projects: Collection[str] = ()) -> Detection:
    """Detect the kind of the index at `url`, by requesting its list of projects and then its changelog.

    If there is no list, the pages of some of `projects` (normalized) are requested. `client` must be a client for the
    same host. Raises UnknownIndexError if nothing was found, or TransientError if a URL failed in a way that may pass.
    Raises LoginError if credentials are missing, and NoAnswerError if there is no connection.
    """
    addresses, answers, may_pass = addresses_of(redact(url)), list[str](), False
    for address in addresses:
        try:
            return _detect_by_list(client, address)
        except (LoginError, NoAnswerError):
            raise
        except LeadsElsewhereError as error:
            answers.append(f"leads to {error.target} ({error.url})")
        except PackageIndexError as error:
            answers.append(str(error))
            may_pass |= isinstance(error, TransientError)
    for address in addresses:
        page = _first_page(client, address, [ShownProject(name) for name in sorted(projects)])
        if page is not None:
            found = _detect_by_serial(client, address, page.serial)
            return found if found is not None and found.kind == XMLRPC else Detection(address, PAGES)
    hint = "if the index has no list, name its projects in PYPI_ASSETS_PROJECTS"
    if projects:
        hint = "it has no page of the first projects of PYPI_ASSETS_PROJECTS either"
    raise (TransientError if may_pass else UnknownIndexError)(
        f"no list of projects was found, as JSON (PEP 691) or HTML (PEP 503): {'; '.join(answers)}. {_WHERE}; {hint}",
        redact(url),
    )


def _detect_by_list(client: IndexClient, address: str) -> Detection:
    """Return the kind of an index with a list of projects at `address`.

    Raises PackageIndexError if there is no list.
    """
    answer = client.fetch_serial_or_body(address, accept=ACCEPT, max_bytes=MAX_PAGE_BYTES)
    try:
        serial, count = _read_list(client, answer, address)
    except PackageIndexError as error:
        raise RefusedError(f"HTTP 200, {answer.media_type or 'no media type'}: {error.message}", error.url) from error
    found = _detect_by_serial(client, address, serial) or Detection(address, PAGES)
    moved_to = f"{answer.url.rstrip('/')}/"
    return replace(found, projects=count, moved_to=None if moved_to == address else moved_to)


def _read_list(client: IndexClient, answer: IndexAnswer, address: str) -> tuple[int | None, int | None]:
    """Return the serial and the number of projects of a list; each is None if unknown."""
    if answer.media_type.endswith("json"):
        if answer.serial is not None:
            return answer.serial, None
        body = io.BytesIO(answer.body)
        serial = read_listing_serial(body, answer.url)
        return serial, sum(isinstance(entry, ListedProject) for entry in read_listed_projects(body, answer.url))
    require_html(answer)  # HTML has no serials, or has them only on pages, which no kind of index reads
    listed = read_html_list(answer.body, url=answer.url, charset=answer.charset, index_url=address)
    if listed and all(project.name.lower().endswith(FILE_ENDINGS) for project in listed):
        raise RefusedError(
            "lists files and no projects: create a folder for each project and put its files there", answer.url
        )
    is_usual = urlsplit(answer.url).path.rstrip("/").rpartition("/")[2] in LIST_FOLDERS
    # any web server's folder listing looks like this
    if not is_usual and _first_page(client, answer.url, listed) is None:
        raise RefusedError("lists folders, and the first of them have no files of projects", answer.url)
    return None, len(listed)


def _detect_by_serial(client: IndexClient, address: str, serial: int | None) -> Detection | None:
    """Return the kind of an index with serials, or None if it gives no `serial` or no serials of projects."""
    if serial is None:
        return None
    try:
        return Detection(address, XMLRPC, client.last_serial())
    except PackageIndexError as error:
        is_simple = _has_serials_of_projects(client, address)
        return Detection(address, SIMPLE, serial, changelog=str(error)) if is_simple else None


def _has_serials_of_projects(client: IndexClient, address: str) -> bool:
    """Check whether the list has the projects' serials. Without them, a list does not show which projects changed."""
    try:
        answer = client.fetch(address, accept=ACCEPT, max_bytes=MAX_PAGE_BYTES)
    except PackageIndexError:  # there is no list
        return False
    if answer is None or not answer.media_type.endswith("json"):
        return False
    entries = read_listed_projects(io.BytesIO(answer.body), answer.url)
    first = next((entry for entry in entries if isinstance(entry, ListedProject)), None)
    return first is None or first.last_serial is not None


def _first_page(client: IndexClient, address: str, projects: Sequence[ShownProject]) -> ShownPage | None:
    """Return the first page that has a file, among the first few of these projects, or None."""
    pages = SimplePages(client)
    for project in islice(_with_address(projects, address), _MOST_PAGES):
        try:
            page = pages.page(project.name, project.url, NO_VALIDATORS)
        except PackageIndexError:
            continue
        if page is not None and page.files:
            return page
    return None


def _with_address(projects: Iterable[ShownProject], address: str) -> Iterable[ShownProject]:
    names = ((canonicalize_name(project.name), project.url) for project in projects)
    return (ShownProject(name, url or f"{address}{quote(name, safe='')}/") for name, url in names)
