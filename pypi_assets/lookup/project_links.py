"""The links of a project, read from the `label, URL` of its metadata: those that a browser can follow safely."""

from collections.abc import Iterable
from typing import TypedDict

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import split_fetchable
from pypi_assets.inert import inert_line

MOST_LINKS = 20
_LONGEST_LABEL, _LONGEST_URL = 60, 2_000
_FIRST = ("homepage", "documentation", "source", "repository", "changelog", "issues")
"""The labels that most people look for, in the spelling of PEP 753; others keep the order of the metadata."""
_SAME = {
    "sourcecode": "source",
    "github": "source",
    "code": "source",
    "docs": "documentation",
    "changes": "changelog",
    "releasenotes": "changelog",
    "history": "changelog",
    "bugtracker": "issues",
    "issuetracker": "issues",
    "tracker": "issues",
    "bugs": "issues",
    "bugreports": "issues",
}


class ProjectLink(TypedDict):
    """A link of a project: its `label` as the project wrote it, the `url`, and the `host` that this leads to."""

    label: str
    url: str
    host: str


def project_links(project_urls: Iterable[str]) -> list[ProjectLink]:
    """Return the links of `project_urls`, each once: home page, documentation and source first.

    URLs other than http and https are skipped, and so are those with a user: a browser would hide the host behind it.

    >>> project_links(["Docs, https://example.org/docs", "x, javascript:alert(1)"])
    [{'label': 'Docs', 'url': 'https://example.org/docs', 'host': 'example.org'}]
    """
    found: dict[str, ProjectLink] = {}
    for text in project_urls:
        label, separator, url = text.partition(",")
        url = url.strip() if separator else ""
        if not label.strip() or len(url) > _LONGEST_URL or "@" in url.partition("://")[2].partition("/")[0]:
            continue
        try:
            _, host, port = split_fetchable(url)
        except RefusedError:
            continue
        found.setdefault(url, ProjectLink(label=inert_line(label)[:_LONGEST_LABEL], url=url, host=host + port))
    return sorted(found.values(), key=_rank)[:MOST_LINKS]


def _rank(link: ProjectLink) -> int:
    plain = "".join(char for char in link["label"].lower() if char.isalnum())
    plain = _SAME.get(plain, plain)
    return _FIRST.index(plain) if plain in _FIRST else len(_FIRST)
