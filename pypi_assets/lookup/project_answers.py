"""Answers about a project and about one of its versions, made from the rows of their live files."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypedDict, cast

from packaging.utils import canonicalize_name

from pypi_assets.distributions.installability import installable_or_all
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.urls import split_fetchable
from pypi_assets.leveldbs.datasets.commands.entry_points import command_names
from pypi_assets.lookup.providers import NamesReader
from pypi_assets.sanitize import inert_line
from pypi_assets.version_order import canonical_version, newest_release, version_key

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog


MOST_LINKS = 20
_LONGEST_LABEL, _LONGEST_URL = 60, 2_000
_FIRST = ("homepage", "documentation", "source", "repository", "changelog", "issues")
"""The labels that people look for most, spelled as in PEP 753. Other labels keep the order of the metadata."""
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
    """A link of a project: its `label` as the project wrote it, its `url`, and the `host` in it."""

    label: str
    url: str
    host: str


def project_links(project_urls: Iterable[str]) -> list[ProjectLink]:
    """Return the links in `project_urls`, each once. Home page, documentation and source come first.

    Only http and https URLs are returned. URLs with a user name are skipped, because a browser would hide the real host
    behind it.

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


MOST_NAMES = 100_000
_LONGEST_LICENSE = 100
"""In characters. Many projects put the whole text of their licence into the field for its name."""


class FileResult(TypedDict):
    """A live file of a release. `size` is in bytes.

    `first_seen_at` is when an observed index first showed the file, if no page states its upload time.
    """

    filename: str
    kind: str
    size: int | None
    sha256: str | None
    uploaded_at: str | None
    first_seen_at: str | None
    requires_python: str | None
    yanked: bool
    yanked_reason: str | None
    outcome: str


class ReleaseResult(TypedDict):
    """A release with live files. It is `yanked` if all of them are."""

    version: str
    yanked: bool
    files: list[FileResult]


class ProjectResult(TypedDict):
    """A project with live files, and its releases in PEP 440 order. An installer would choose the version `newest`.

    Some fields need a catalog and are None without one: `summary`, `license` and `links` (of the newest release),
    `status` (PEP 792), and the serials of the first and the last change. `license` is an SPDX expression; without one,
    the `License` field if it is short, else the names of the licence classifiers.
    """

    project: str
    normalized: str
    newest: str
    summary: str | None
    license: str | None
    links: list[ProjectLink] | None
    status: str | None
    commands: list[str]
    first_serial: int | None
    last_serial: int | None
    releases: list[ReleaseResult]


class VersionFileResult(FileResult):
    """A live file of a version, with its requirements. None: they are unknown."""

    requires_dist: list[str] | None


class VersionResult(TypedDict):
    """A version with live files: the requirements, modules and commands of all of them."""

    project: str
    normalized: str
    version: str
    yanked: bool
    requires_dist: list[str] | None
    extras: list[str]
    modules: list[str]
    commands: list[str]
    files: list[VersionFileResult]


class ProjectFacts(TypedDict):
    """The facts about a project that only the catalog knows."""

    summary: str | None
    license: str | None
    links: list[ProjectLink] | None
    status: str | None
    first_serial: int | None
    last_serial: int | None


_NO_FACTS = ProjectFacts(summary=None, license=None, links=None, status=None, first_serial=None, last_serial=None)


def facts_at(
    catalog: "Catalog", serial: int, name: str, rows: Sequence[Mapping[str, Any]] | None = None
) -> ProjectFacts:
    """Return the catalog's facts about a project at `serial`. `rows` are its files, if they were read already."""
    from pypi_assets.catalog.observed.projects import find_project  # the database is slow to import
    from pypi_assets.catalog.reports.moments import first_and_last_serial
    from pypi_assets.catalog.reports.past_statuses import page_status_at

    found = rows_at(catalog, serial, name) if rows is None else rows
    with catalog.read() as connection:
        first, last = first_and_last_serial(connection, canonicalize_name(name), serial)
        project = find_project(connection, name)
        # `rows` have the current status, even if they are from a past serial
        has_files = bool(found)
        status = None if project is None else page_status_at(connection, project, serial, has_live_files=has_files)
    newest = [row for row in found if canonical_version(row["version"]) == _newest(found)] if found else []
    summaries = (row["summary"] for row in newest if row["summary"])
    urls = [url for row in newest for url in row["project_urls"] or ()]
    return ProjectFacts(
        summary=next(summaries, None),
        license=next(filter(None, map(license_of, newest)), None),
        links=project_links(urls),
        status=status,
        first_serial=first,
        last_serial=last,
    )


def known_facts(catalog: "Catalog", serial: int, name: str) -> ProjectFacts | None:
    """Return the catalog's facts about a project at `serial`, or None if the catalog lags behind or cannot be read.

    A mirror copies datasets first, and replays the journal into its catalog later.
    """
    from sqlalchemy.exc import SQLAlchemyError  # the database is slow to import

    from pypi_assets.catalog.database import CatalogError
    from pypi_assets.catalog.ledger.range_ledger import complete_serial

    try:
        with catalog.read() as connection:
            if complete_serial(connection) < serial:
                return None
        return facts_at(catalog, serial, name)
    except (CatalogError, SQLAlchemyError):
        return None


def license_of(row: Mapping[str, Any]) -> str | None:
    """Return the licence of a file in a few words, or None if its metadata state none.

    >>> license_of({"license_expression": None, "license": None, "license_classifiers": ["License :: OSI Approved"]})
    'OSI Approved'
    """
    text = row["license"] or ""
    if row["license_expression"] or 0 < len(text) <= _LONGEST_LICENSE:
        return cast("str", row["license_expression"] or text)
    names = dict.fromkeys(one.rpartition("::")[2].strip() for one in row["license_classifiers"] or ())
    return ", ".join(names) or text or None


def rows_at(catalog: "Catalog", serial: int, name: str) -> list[Mapping[str, Any]]:
    """Return the files of a project that were live at `serial`, as rows of dumps, by version and filename."""
    from pypi_assets.catalog.publications.dump_rows import project_rows_at
    from pypi_assets.dumps.dump_format import as_dumped

    rows = map(as_dumped, project_rows_at(catalog, serial, name))
    return sorted(rows, key=lambda row: (version_key(row["version"]), row["filename"]))


def release_rows_at(catalog: "Catalog", serial: int, project: str, version: str) -> list[Mapping[str, Any]]:
    """Return the files of one release that were live at `serial`, as rows of dumps, by filename.

    The project is normalized, and the version is the text of the release.
    """
    from pypi_assets.catalog.publications.dump_rows import releases_rows_at  # the database is slow to import
    from pypi_assets.dumps.dump_format import as_dumped

    rows = map(as_dumped, releases_rows_at(catalog, serial, [(project, version)]))
    return sorted(rows, key=itemgetter("filename"))


def commands_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return all commands that the files install, sorted."""
    return sorted({command for row in rows for command in command_names(row["console_scripts"] or ())})


def names_of_version(reader: NamesReader, project: str, version: str) -> list[str]:
    """Return the names, such as modules, that a version of a project provides."""
    wanted = canonical_version(version)
    groups = reader.names_in(project)
    return sorted(name for names, versions in groups if wanted in map(canonical_version, versions) for name in names)


def _newest(rows: Iterable[Mapping[str, Any]]) -> str:
    files = installable_or_all(list(rows), itemgetter("refusals"))
    return newest_release((row["version"], row["yanked"]) for row in files)


def project_result(
    rows: Sequence[Mapping[str, Any]], commands: list[str], facts: ProjectFacts | None = None
) -> ProjectResult:
    """Return the answer about a project with these live files. Without `facts`, the catalog's fields are None."""
    newest = _newest(rows)
    return ProjectResult(
        project=rows[0]["project"],
        normalized=rows[0]["normalized"],
        newest=next(row["version"] for row in rows if canonical_version(row["version"]) == newest),
        commands=commands,
        releases=[
            ReleaseResult(
                version=files[0]["version"], yanked=all(row["yanked"] for row in files), files=list(map(_file, files))
            )
            for files in (list(some) for _, some in groupby(rows, lambda row: canonical_version(row["version"])))
        ],
        **(facts or _NO_FACTS),
    )


def version_result(rows: Sequence[Mapping[str, Any]], modules: list[str], commands: list[str]) -> VersionResult:
    """Return the answer about a version with these live files."""
    lists = [row["requires_dist"] for row in rows if row["requires_dist"] is not None]
    return VersionResult(
        project=rows[0]["project"],
        normalized=rows[0]["normalized"],
        version=rows[0]["version"],
        yanked=all(row["yanked"] for row in rows),
        requires_dist=list(dict.fromkeys(one for some in lists for one in some)) if lists else None,
        extras=sorted({extra for row in rows for extra in row["provides_extra"] or ()}),
        modules=modules,
        commands=commands,
        files=[VersionFileResult(**_file(row), requires_dist=row["requires_dist"]) for row in rows],
    )


def _file(row: Mapping[str, Any]) -> FileResult:
    return cast("FileResult", {name: row[name] for name in FileResult.__annotations__})


class HistoryEntry(TypedDict):
    """Something that happened to a project at `serial`. Times are ISO 8601 in UTC.

    `kind` is the action of an event, the cause of a change without an event, or `visit`. `live` and `away` list the
    files that became live or stopped being live. `yanked` and `unyanked` list the files that were yanked or unyanked
    while live. `epoch` is the epoch of the serial, or None if the serial is not complete. An observed event, and a
    change of the kind `listed`, happened between `not_before` and `at`; `possible_kinds` are the actions that explain
    the latter, if it was a single one.
    """

    serial: int
    at: str | None
    kind: str
    text: str
    version: str | None
    filenames: list[str]
    visit: int | None
    outcome: str | None
    error: str | None
    live: list[str]
    away: list[str]
    yanked: list[str]
    unyanked: list[str]
    epoch: int | None
    not_before: str | None
    possible_kinds: list[str]


class LiveFileResult(TypedDict):
    """A distribution that was live at a serial, since the serial `live_since`. `size` is in bytes."""

    filename: str
    project: str
    version: str
    kind: str
    sha256: str | None
    yanked: bool
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    live_since: int
    outcome: str
    url: str | None
