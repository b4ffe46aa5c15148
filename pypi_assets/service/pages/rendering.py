"""Rendering of pages: addresses, numbers and times for people, and templates that escape all text and make it inert.

Pages only load the style and the script of this service. The address of a page ends with a slash, and the address of
its data with `.json`. So `/import/flask.json/` is the page of the module `flask.json`, and `/import/flask.json` is the
data of the module `flask`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pypi_assets.lookup.owner_ranking import in_words
from pypi_assets.sanitize import inert_line

HTML = "text/html; charset=utf-8"
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = (
    ("Content-Security-Policy", _POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
)
"""The headers of each page. No script runs except the file `pages.js`, even if a name contains a script."""
_LONGEST_TEXT = 500
_LONGEST = 4_000
_PATH_ALONE = frozenset({"", ".", ".."})
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_DAY_LETTERS = 10
_OWN_WORDS = frozenset({"a", "did", "it", "no", "not", "nothing", "the", "there", "this", "too", "who"})
"""First words of the service's own sentences, as opposed to sentences that begin with a name."""


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun.

    >>> counted(1, "release"), counted(1200, "release"), counted(2, "dependency", "dependencies")
    ('1 release', '1,200 releases', '2 dependencies')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def size_in_words(size_bytes: int) -> str:
    """Return a size with its unit.

    >>> size_in_words(999), size_in_words(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    size, unit = float(size_bytes), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit and size < 9.95 else f"{size:.0f} {_UNITS[unit]}"


def day(time: str | None) -> str:
    """Return the day of an ISO 8601 time, or "" if the time is missing or invalid.

    >>> day("2026-03-03T12:00:00Z")
    '2026-03-03'
    """
    shown = (time or "")[:_DAY_LETTERS]
    return shown if unix_seconds(shown) is not None else ""


def unix_seconds(time: str | None) -> float | None:
    """Return an ISO 8601 time in unix seconds, or None if it is invalid. A time without a zone is in UTC."""
    try:
        found = datetime.fromisoformat(time or "")
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def sentence(text: str) -> str:
    """Return a sentence of the service with a capital letter, unless it begins with a name.

    >>> sentence("there is no project six"), sentence("six has no version 9")
    ('There is no project six', 'six has no version 9')
    """
    return text[:1].upper() + text[1:] if text.partition(" ")[0] in _OWN_WORDS else text


def version_span(versions: Sequence[str]) -> str:
    """Return the first and last of some versions, and their number.

    >>> version_span(["1.0"]), version_span(["1.0", "1.1", "2.0"])
    ('1.0', '1.0 to 2.0 (3 versions)')
    """
    if len(versions) < 2:
        return "".join(versions)
    return f"{versions[0]} to {versions[-1]} ({counted(len(versions), 'version')})"


def page_address(prefix: str, *parts: str, **query: object) -> str | None:
    """Return the address of a page, or None if a part is empty, contains a slash, or is too long for a path.

    >>> page_address("/at/17.17", "project", "a b", page=2)
    '/at/17.17/project/a%20b/?page=2'
    """
    return _address(prefix, parts, "/", query)


def data_address(prefix: str, *parts: str, **query: object) -> str | None:
    """Return the address of a page's data. The address for the first page, which has no parts, is `/index.json`."""
    return _address(prefix, parts or ("index",), ".json", query)


def download_address(prefix: str, sha256: str, filename: str) -> str | None:
    """Return the address of this service that redirects to the bytes of a file.

    >>> download_address("/at/17.17", "00ff", "six-1.17.0.tar.gz")
    '/at/17.17/files/00ff/six-1.17.0.tar.gz'
    """
    return _address(prefix, ("files", sha256, filename), "", {})


def is_local_page(path: str) -> bool:
    """Check whether a path, with or without a query, can be an address of this service, as submitted in a form.

    >>> is_local_page("/import/yaml/"), is_local_page("//elsewhere.invalid/")
    (True, False)
    """
    is_plain = path.isascii() and path.isprintable() and not {"\\", " ", '"', "<", ">"} & set(path)
    return is_plain and path.startswith("/") and not path.startswith("//") and len(path) <= _LONGEST


def _address(prefix: str, parts: tuple[str, ...], ending: str, query: dict[str, object]) -> str | None:
    if any(part in _PATH_ALONE or "/" in part or "\0" in part for part in parts):
        return None
    path = "".join(f"/{quote(part, safe='')}" for part in parts)
    given = {name: value for name, value in query.items() if value is not None}
    found = f"{prefix}{path}{ending}" + (f"?{urlencode(given)}" if given else "")
    return found if len(found) <= _LONGEST else None


def render(template: str, content: Mapping[str, Any]) -> bytes:
    """Render the template with `content`, as UTF-8. All foreign text is escaped and made inert, wherever it is used."""
    return _ENVIRONMENT.get_template(template).render(content).encode(errors="replace")


def shown(value: object) -> object:
    """Return a value as a template prints it.

    A str becomes one line, without bidirectional controls, cut at `_LONGEST_TEXT`. Other values are returned unchanged,
    as is text marked as HTML, which was escaped before.

    >>> shown("a\\u202eb")
    'a\\ufffdb'
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    line = inert_line(value[: 2 * _LONGEST_TEXT])
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


def _escaped_address(prefix: str, *parts: str, **query: object) -> Markup | None:
    found = page_address(prefix, *parts, **query)
    return None if found is None else escape(found)


def _escaped_download(prefix: str, sha256: str, filename: str) -> Markup | None:
    found = download_address(prefix, sha256, filename)
    return None if found is None else escape(found)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "counted": counted,
        "day": day,
        "reasons": in_words,
        "sentence": sentence,
        "size": size_in_words,
        "span": version_span,
    }
    environment.globals |= {"address": _escaped_address, "download": _escaped_download}
    return environment


_ENVIRONMENT = _environment()
