"""Reads the Simple index, the list of all projects, from a file: tens of megabytes, so one project at a time.

What the list means for the catalog is decided in `crawl/simple_lister.py` and `crawl/full_crawl.py`.
"""

from collections.abc import Iterator
from typing import BinaryIO

import ijson

from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import LONGEST_NAME, ListedProject
from pypi_assets.index.pages import read_meta_serial, read_serial


def read_listing_serial(body: BinaryIO, url: str) -> int | None:
    """The index's last serial in `meta`, wherever that is in the body; None if there is none.

    Raises RefusedError where the body is another JSON document, TransientError where it is not JSON.
    """
    try:
        body.seek(0)
        return read_meta_serial(next(ijson.items(body, "meta"), None))
    except ijson.JSONError as error:
        raise TransientError("the list of projects is broken JSON", url) from error
    except ValueError as error:
        raise RefusedError(f"the list of projects breaks the protocol: {error}", url) from error


def read_listed_projects(body: BinaryIO, url: str) -> Iterator[ListedProject]:
    """The projects of the list in `body`; errors as in `read_listing_serial`, raised where the reader meets them."""
    try:
        body.seek(0)
        is_empty = True
        for entry in ijson.items(body, "projects.item"):
            is_empty = False
            yield _read_listed_project(entry, url)
        if is_empty:
            body.seek(0)
            if next(ijson.items(body, "projects"), None) != []:
                raise RefusedError("the list of projects breaks the protocol: projects is not a list", url)
    except ijson.JSONError as error:
        raise TransientError("the list of projects is broken JSON", url) from error


def _read_listed_project(entry: object, url: str) -> ListedProject:
    try:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
            raise ValueError("an entry without a name")
        if len(entry["name"]) > LONGEST_NAME:
            raise ValueError(f"the name {entry['name'][:40]!r}... is longer than {LONGEST_NAME} characters")
        if "\0" in entry["name"]:
            raise ValueError(f"the name {entry['name']!r} holds a NUL, which no database can keep")
        return ListedProject(entry["name"], read_serial(entry.get("_last-serial")))
    except ValueError as error:
        raise RefusedError(f"the list of projects breaks the protocol: {error}", url) from error
