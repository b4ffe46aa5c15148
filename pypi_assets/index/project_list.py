"""Reads the Simple index, the list of all projects, from a file: tens of megabytes, so one project at a time.

What the list means for the catalog is decided in `crawl/simple_lister.py` and `crawl/full_crawl.py`.
"""

from collections.abc import Iterator
from typing import BinaryIO

import ijson

from pypi_assets.index.bounds import check_list
from pypi_assets.index.broken_entries import broken_entry, require_few
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import LONGEST_NAME, BrokenEntry, ListedProject
from pypi_assets.index.pages import read_meta_serial, read_serial

_BROKEN_IN_MEMORY = 1_000
"""Up to here the end of the list decides whether too many entries are broken."""


def read_listing_serial(body: BinaryIO, url: str) -> int | None:
    """The index's last serial in `meta`, wherever that is in the body; None if there is none.

    Raises RefusedError where the body is another JSON document, or beyond the bounds of `bounds.py`. Raises
    TransientError where it is not JSON.
    """
    try:
        check_list(body)
        body.seek(0)
        return read_meta_serial(next(ijson.items(body, "meta"), None))
    except ijson.JSONError as error:
        raise TransientError("the list of projects is broken JSON", url) from error
    except ValueError as error:
        raise RefusedError(f"the list of projects breaks the protocol: {error}", url) from error


def read_listed_projects(body: BinaryIO, url: str) -> Iterator[ListedProject | BrokenEntry]:
    """The projects of the list in `body`, with broken entries among them; errors as in `read_listing_serial`, raised
    where the reader meets them.

    `body` is one that `read_listing_serial` has read, which checks its bounds.
    A project whose serial is broken is listed without a serial, after its broken entry. Raises RefusedError where many
    entries are broken, or all.
    """
    try:
        body.seek(0)
        broken = good = 0
        for entry in ijson.items(body, "projects.item"):
            project, problem = _read_listed_project(entry)
            if problem is not None:
                broken += 1
                if broken > _BROKEN_IN_MEMORY:
                    require_few(broken, good, "the list of projects", url)
                yield broken_entry(problem, entry, name=None if project is None else project.name)
            if project is not None:
                good += 1
                yield project
        require_few(broken, good, "the list of projects", url)
        if not good and (broken or not _has_list(body)):
            raise RefusedError("the list of projects breaks the protocol: projects is no list of projects", url)
    except ijson.JSONError as error:
        raise TransientError("the list of projects is broken JSON", url) from error


def _has_list(body: BinaryIO) -> bool:
    """Whether `projects` is a list at all."""
    body.seek(0)
    return any(prefix == "projects" and event == "start_array" for prefix, event, _ in ijson.parse(body))


def _read_listed_project(entry: object) -> tuple[ListedProject | None, str | None]:
    """The project of one entry, and what is wrong with the entry."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return None, "an entry without a name"
    name = entry["name"]
    if len(name) > LONGEST_NAME:
        return None, f"the name {name[:40]!r}... is longer than {LONGEST_NAME} characters"
    if "\0" in name:
        return None, f"the name {name!r} holds a NUL, which no database can keep"
    try:
        return ListedProject(name, read_serial(entry.get("_last-serial"))), None
    except ValueError as error:
        return ListedProject(name, None), str(error)
