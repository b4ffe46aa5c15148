"""The page of the API: Swagger UI over the OpenAPI document, from static files of this service."""

from collections.abc import Mapping
from typing import Any

from pypi_assets.service.answers import Answer
from pypi_assets.service.pages.rendering import HEADERS, HTML, render
from pypi_assets.service.problems import TITLES

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""In addition to the policy of all pages, it allows pictures in data: URLs, which the style of Swagger UI has, and
plain strings where Trusted Types would be required, since its renderer (React) has none. All scripts, styles and
requests still belong to this service.
"""
_HEADERS = tuple((name, _POLICY if name == "Content-Security-Policy" else value) for name, value in HEADERS)


def docs_answer(document: Mapping[str, Any]) -> Answer:
    """Return the page of a document. Without scripts, it is a table of the routes."""
    body = render("docs.html", {"document": document, "titles": TITLES})
    return Answer(body, HTML, headers=_HEADERS)
