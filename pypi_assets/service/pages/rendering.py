"""Renders templates: all text is escaped and made inert, and a page loads the style and the script of this service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pypi_assets.inert import inert_line
from pypi_assets.lookup.owner_ranking import in_words
from pypi_assets.service.pages.addresses import download_address, page_address
from pypi_assets.service.pages.words import counted, day, sentence, size_in_words, version_span

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
"""Of each page. No script runs but the file `pages.js`, also if a name has one."""
_LONGEST_TEXT = 500


def render(template: str, content: Mapping[str, Any]) -> bytes:
    """The template of this name with `content`, as UTF-8. All foreign text is escaped and inert, wherever it stands."""
    return _ENVIRONMENT.get_template(template).render(content).encode(errors="replace")


def shown(value: object) -> object:
    """What a template prints of a value: text on one line, without what changes directions, and not longer than
    `_LONGEST_TEXT`; all other values as they are. What is marked as HTML was escaped before.

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
