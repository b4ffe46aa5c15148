"""Parse a page as a browser would and collect its defects."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from pypi_assets_tests.service.published import Client

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
_VOID = frozenset({"meta", "link", "img", "input", "br", "hr"})
_INLINE = frozenset({"a", "bdi", "code", "span", "strong"})
_FETCHING = frozenset({"src", "srcset", "action", "formaction", "poster", "background", "data", "xlink:href"})
_FORBIDDEN = frozenset({"iframe", "object", "embed", "base", "style", "template"})
SCRIPT = "/static/pages.js"
EXTERNAL = {"external", "nofollow", "noopener", "noreferrer"}
"""The relations that a link to another host has to have."""


@dataclass
class Document(HTMLParser):
    """A parsed page. `faults` are descriptions of defects.

    A page without faults is well-formed and labelled, and loads nothing from other hosts. `external` are the links to
    other hosts.
    """

    faults: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    external: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _labelled: set[str] = field(default_factory=set)
    _inputs: list[tuple[str | None, bool]] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _href: str | None = None

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @property
    def text(self) -> str:
        """Return the text of the page on one line."""
        return " ".join("".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._seen.add(tag)
        if tag not in _INLINE:
            self.texts.append(" ")
        if len(given) != len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        self._check_attributes(tag, given)
        if tag == "a":
            self._href = given.get("href")
        if tag == "label" and given.get("for"):
            self._labelled.add(str(given["for"]))
        if tag == "input" and given.get("type") != "hidden":
            self._inputs.append((given.get("id"), "label" in self._open or "aria-label" in given))
        if tag == "img" and "alt" not in given:
            self.faults.append("an image has no alt")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> where {self._open[-3:]} are open, near {self.getpos()}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script" and data.strip():
            self.faults.append("a script has a text")
        self.texts.append(data)
        if self._href and self._open and "a" in self._open and data.strip():
            self.links[data.strip()] = self._href

    def _check_attributes(self, tag: str, given: dict[str, str | None]) -> None:
        if tag in _FORBIDDEN:
            self.faults.append(f"there is a <{tag}>")
        if tag == "script" and given != {"src": SCRIPT, "defer": None}:
            self.faults.append(f"a script is not {SCRIPT}: {given}")
        if tag == "a" and set((given.get("rel") or "").split()) >= EXTERNAL:
            address = given.pop("href") or ""
            self.external.append(address)
            if not address.startswith(("https://", "http://")):
                self.faults.append(f"<a> leads to {address}")
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.faults.append(f"<{tag}> has {name}")
            if name in _FETCHING | {"href"} and not _is_ours(value or ""):
                self.faults.append(f"<{tag}> leads to {value}")
        identity = given.get("id")
        if identity in self._ids:
            self.faults.append(f"two elements have the id {identity}")
        if identity:
            self._ids.add(identity)

    def finished(self) -> "Document":
        """Return the document after adding the faults that show only at its end."""
        self.close()
        if self._open:
            self.faults.append(f"never closed: {self._open}")
        self.faults += [
            f"an input without a label: {id_}" for id_, has in self._inputs if not has and id_ not in self._labelled
        ]
        self.faults += [f"there is no <{tag}>" for tag in ("html", "title", "main", "h1") if tag not in self._seen]
        return self


def _is_ours(address: str) -> bool:
    return address.startswith("#") or (address.startswith("/") and not address.startswith("//"))


def parsed(html: str) -> Document:
    """Return the document of a page."""
    document = Document()
    document.feed(html)
    return document.finished()


def page(client: Client, path: str, status: int = 200) -> Document:
    """Return the page at `path`, after redirects within the service. Assert that the page has no faults."""
    answer = client.get(path, headers=BROWSER, allow_redirects=True)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    document = parsed(answer.text)
    assert document.faults == []
    return document
