"""Reads HTML pages (PEP 503): the list of projects, and the page of a project with its files.

The HTML is read by the standard library's tokenizer, as in pip. Parsers that build a tree need memory that is quadratic
in the page's size if tags are badly nested. So does pypi-simple's parser, which adds each text to all links that are
still open. The tokenizer is fed in pieces, and a page that keeps it from advancing is rejected.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import canonicalize_name

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.file_endings import FILE_ENDINGS
from pypi_assets.index.models import LONGEST_NAME, BrokenEntry, IndexFile, broken_entry, require_few
from pypi_assets.index.observing.shown_pages import ShownFile, ShownPage, ShownProject
from pypi_assets.index.pages import check_filename, is_same_file, read_digest
from pypi_assets.index.urls import quote_blanks, redact

MAX_HTML_BYTES = 64 * 1024**2
MAX_LINKS = 2_000_000
_PIECE = 16 * 1024
_MOST_UNREAD = 64 * 1024
"""The longest tag or comment in characters."""
_MOST_UNREAD_TEXT = 1024**2
"""The longest script or style sheet in characters."""
_MOST_SECONDS = 30.0
"""The most processor time for one page."""
_TEXT_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "windows-1252": "cp1252",
    "cp1252": "cp1252",
    "utf-16": "utf-16",
}
_TITLES = re.compile(
    r"\s*+(?:[^\s:]++: )?(?:links for|index of|directory listing for|simple index|simple list|simple package)\b",
    re.IGNORECASE,
)
"""How page titles of common servers begin, including empty pages. devpi puts the name of its index in front."""
_NOT_FILLED_IN = {"submit", "hidden", "button", "image", "reset"}
"""Input types that do not make a form a login form. devpi's page has such a form, to refresh a mirrored project."""
_INDEX_FILE = re.compile(r"(?<=/)index\.html?\Z", re.IGNORECASE)
_HASH = re.compile(r"(?P<algorithm>md5|sha1|sha224|sha256|sha384|sha512|blake2b(?:_256)?)=(?P<digits>[0-9A-Za-z]++)")
_DATA_METADATA = ("data-core-metadata", "data-dist-info-metadata")


@dataclass(slots=True)
class _HtmlLink:
    href: str
    attributes: Mapping[str, str]
    text: str = ""


@dataclass(slots=True)
class HtmlPage:
    """The links of a page in order, the base of relative links, and signs of which kind of page it is.

    `is_marked` is true if the page has the version of the Simple API or the title of an index page. `has_form` is true
    if it has a form to fill in, like a login page.
    """

    base: str
    links: list[_HtmlLink] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    title: str = ""
    has_form: bool = False

    @property
    def is_marked(self) -> bool:
        return "repository-version" in self.meta or bool(_TITLES.match(self.title))


class _Tokens(HTMLParser):
    """Collects the relevant parts of a page. The text of a link ends at the next `<a>` or `</a>`."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page = HtmlPage(url)
        self._is_based = self._is_in_link = self._is_in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}  # the first of two equal attributes counts
        if tag == "a":
            self._is_in_link = "href" in attributes
            if self._is_in_link:
                if len(self.page.links) >= MAX_LINKS:
                    raise ValueError(f"it has more than {MAX_LINKS} links")
                kept = {name: value for name, value in attributes.items() if name.startswith("data-")}
                self.page.links.append(_HtmlLink(attributes["href"].strip(), kept))
        elif tag == "base" and "href" in attributes and not self._is_based:
            self._is_based = True
            self.page.base = urljoin(self.page.base, attributes["href"].strip())
        elif tag == "meta" and attributes.get("name", "").startswith("pypi:"):
            name = attributes["name"].removeprefix("pypi:")[:LONGEST_NAME]
            if len(self.page.meta) < 100:
                self.page.meta.setdefault(name, attributes.get("content", "")[:LONGEST_NAME])
        elif tag in {"title", "h1"}:
            self._is_in_title = not self.page.title.strip()
        elif tag == "input" and attributes.get("type", "").lower() not in _NOT_FILLED_IN:
            self.page.has_form = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._is_in_link = False
        elif tag in {"title", "h1"}:
            self._is_in_title = False

    def handle_data(self, data: str) -> None:
        if self._is_in_link and len(self.page.links[-1].text) <= LONGEST_NAME:
            self.page.links[-1].text += data[: LONGEST_NAME + 1]
        if self._is_in_title and len(self.page.title) <= LONGEST_NAME:
            self.page.title += data[: LONGEST_NAME + 1]


def read_html(body: bytes, *, url: str, charset: str | None) -> HtmlPage:
    """Return the links of the HTML in `body`, which `url` returned.

    Raises RefusedError if the page is too large, takes too long to read, or has another major version of the API.
    """
    if len(body) > MAX_HTML_BYTES:
        raise RefusedError(f"the page has more than {MAX_HTML_BYTES} bytes", url)
    text = body.decode(_encoding(body, charset), errors="replace").removeprefix("\ufeff")
    tokens, started = _Tokens(url), time.thread_time()
    try:
        for start in range(0, len(text), _PIECE):
            tokens.feed(text[start : start + _PIECE])
            limit = _MOST_UNREAD_TEXT if tokens.cdata_elem else _MOST_UNREAD
            if len(tokens.rawdata) > limit:
                raise ValueError(f"it has a tag of more than {limit} characters")
            if time.thread_time() - started > _MOST_SECONDS:
                raise ValueError(f"reading it takes more than {_MOST_SECONDS:.0f} seconds")
    except (ValueError, AssertionError) as error:  # the tokenizer has assertions that malformed declarations violate
        raise RefusedError(f"the page cannot be read as HTML: {error}", url) from error
    version = tokens.page.meta.get("repository-version", "1.0")
    if version.partition(".")[0] != "1":
        raise RefusedError(f"the page has version {version[:40]!r} of the Simple API, and only 1.x is known", url)
    return tokens.page


def _encoding(body: bytes, charset: str | None) -> str:
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return _TEXT_ENCODINGS.get((charset or "utf-8").strip("\"' ").lower(), "utf-8")


def read_html_list(body: bytes, *, url: str, charset: str | None, index_url: str) -> list[ShownProject]:
    """Return the projects that the list in `body` links to, in order and without duplicates.

    A link counts as a project if it leads to a folder directly below `index_url`, or to the folder's `index.html`, as
    on servers of static files. Raises RefusedError if there is no such link, unless the page is recognizably an index
    page.
    """
    page = read_html(body, url=url, charset=charset)
    below = {_path(index_url), _path(page.base), _path(url)}
    found: dict[str, ShownProject] = {}
    for link in page.links:
        address = _joined(page.base, link.href)
        parts = urlsplit(address)
        parent, _, segment = _INDEX_FILE.sub("", parts.path).rstrip("/").rpartition("/")
        name = unquote(segment)
        normalized = canonicalize_name(name)
        if parts.scheme not in {"http", "https"} or f"{parent}/" not in below or not _is_name(name):
            continue
        text = link.text.strip().rstrip("/")
        shown = text if canonicalize_name(text) == normalized else name
        found.setdefault(normalized, ShownProject(shown, address))
    if not found:
        _require_index_page(page, url)
    return list(found.values())


def read_html_page(body: bytes, *, project: str, url: str, charset: str | None, is_certain: bool = False) -> ShownPage:
    """Return the page of `project` (normalized) in `body`. A broken link does not affect the other files.

    `is_certain` is true if the media type is the Simple API's. Otherwise, a page without files must have the marks of
    an index page. Raises RefusedError if it has not, or if many links are broken.
    """
    page = read_html(body, url=url, charset=charset)
    files, broken = _files(page)
    require_few(len(broken), len(files), f"the page of {project}", url)
    if not files and not is_certain:
        _require_index_page(page, url)
    return ShownPage(
        project, tuple(files.values()), status=page.meta.get("project-status", "active"), broken=tuple(broken)
    )


def _require_index_page(page: HtmlPage, url: str) -> None:
    if page.has_form:
        raise RefusedError("expected a page of the index, received a page with a form to fill in (a login?)", url)
    if not page.is_marked:
        raise RefusedError(
            "expected a page of a package index, received an HTML page without files and without signs of one", url
        )


def _files(page: HtmlPage) -> tuple[dict[str, ShownFile], list[BrokenEntry]]:
    files: dict[str, ShownFile] = {}
    broken: list[BrokenEntry] = []
    for link in page.links:
        address = _joined(page.base, link.href)
        filename = unquote(urlsplit(address).path.rpartition("/")[2])
        if not filename.lower().endswith(FILE_ENDINGS):
            continue
        try:
            check_filename(filename)
        except ValueError as error:
            broken.append(broken_entry(str(error), link.href, name=filename))
            continue
        try:
            shown = _file(filename, address, link)
        except ValueError as error:
            broken.append(broken_entry(str(error), link.href, name=filename))
            shown = ShownFile(_without_facts(filename, link))
        if filename not in files:
            files[filename] = shown
        elif not is_same_file(files[filename], shown):
            broken.append(broken_entry("it is listed twice", link.href, name=filename))
    return files, broken


def _file(filename: str, address: str, link: _HtmlLink) -> ShownFile:
    plain, fragment = urldefrag(address)
    if urlsplit(plain).scheme not in {"http", "https"}:
        raise ValueError("its address is no http(s) URL")
    hashes = dict(_hashes(fragment))
    metadata = next((link.attributes[name] for name in _DATA_METADATA if name in link.attributes), None)
    reason = link.attributes.get("data-yanked")
    signature = link.attributes.get("data-gpg-sig")
    file = IndexFile(
        filename=filename,
        url=redact(quote_blanks(plain)),
        sha256=hashes.get("sha256"),
        size=None,
        uploaded_at=None,
        requires_python=link.attributes.get("data-requires-python") or None,
        yanked=reason is not None,
        yanked_reason=reason or None,
        core_metadata=metadata not in {None, "", "false"},
        core_metadata_sha256=dict(_hashes(metadata or "")).get("sha256"),
    )
    return ShownFile(file, hashes, None if signature is None else signature.lower() != "false")


def _without_facts(filename: str, link: _HtmlLink) -> IndexFile:
    is_yanked = "data-yanked" in link.attributes
    return IndexFile(filename, None, None, None, None, None, is_yanked, None, False, None)


def _hashes(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split("&"):
        if match := _HASH.fullmatch(part.strip()):
            yield match["algorithm"], read_digest(match["algorithm"], match["digits"])


def _joined(base: str, href: str) -> str:
    """Return the URL of a link, or an empty string if it is invalid."""
    try:
        address = urljoin(base, href)
        _ = urlsplit(address).port
    except ValueError:
        return ""
    return address


def _path(url: str) -> str:
    return f"{urlsplit(url).path.rpartition('/')[0]}/"


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.IGNORECASE)


def _is_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None
