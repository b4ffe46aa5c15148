"""The dataset `modules`: which projects, in which versions, provide a module. Its keys are in docs/formats.md.

    m MODULE PROJECT      [display name, [versions]]               what is looked up
    f PROJECT FILENAME    [version, list, display name, serial]    what each file contributes
    l PROJECT LIST        [modules]                                a list that files of the project share

The records of a project follow from the contributions of its files alone, so they are computed whole, before and
after a change, and the difference is written.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import plyvel

from pypi_assets.leveldbs.records import Records, Row, key, prefix, scan
from pypi_assets.leveldbs.version_order import version_key

FORMAT = 1
COLUMNS = ("project", "version", "filename", "tombstone", "live_since", "modules")
"""Those of the dumps that `change` looks at."""
_HASH_DIGITS = 32


@dataclass(slots=True)
class _Project:
    """What the files of a project contribute, `[version, list, display name, live since]` each, and the lists."""

    files: dict[str, list[Any]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)


def change(db: plyvel.DB | None, project: str, rows: list[Row]) -> tuple[Records, Records]:
    """The project's records before and after `rows`; `project` is the normalized name."""
    state = _load(db, project) if db else _Project()
    before = _records(project, state) if db else {}
    hashes: dict[int, str] = {}  # by identity: rows that have the same list mostly have the same object
    for row in rows:
        modules = row["modules"] if not row["tombstone"] else None
        if modules is not None and id(modules) not in hashes:
            hashes[id(modules)] = hashlib.sha256(orjson.dumps(modules)).hexdigest()[:_HASH_DIGITS]
            state.lists[hashes[id(modules)]] = modules
        if row["tombstone"]:
            state.files.pop(row["filename"], None)
        else:
            list_hash = None if modules is None else hashes[id(modules)]
            state.files[row["filename"]] = [row["version"], list_hash, row["project"], row["live_since"]]
    return before, _records(project, state)


def module_prefix(module: str) -> bytes:
    """What the keys of all projects that provide `module` begin with; the project's normalized name follows."""
    return prefix("m", module)


def decode_module(value: bytes) -> tuple[str, list[str]]:
    """The project's display name, and the versions that provide the module, in PEP 440's order."""
    display, versions = orjson.loads(value)
    return display, versions


def _load(db: plyvel.DB, project: str) -> _Project:
    def records(letter: str) -> Mapping[str, Any]:
        start = prefix(letter, project)
        return {record_key.removeprefix(start).decode(): orjson.loads(value) for record_key, value in scan(db, start)}

    return _Project(dict(records("f")), dict(records("l")))


def _records(project: str, state: _Project) -> Records:
    if not state.files:
        return {}
    records: Records = {}
    ordered = sorted({version for version, *_ in state.files.values()}, key=version_key)
    places = {version: place for place, version in enumerate(ordered)}
    places_of: defaultdict[str, set[int]] = defaultdict(set)
    for filename, contribution in state.files.items():
        records[key("f", project, filename)] = orjson.dumps(contribution)
        version, list_hash = contribution[:2]
        if list_hash is not None:
            places_of[list_hash].add(places[version])
    lists_with: defaultdict[str, list[str]] = defaultdict(list)
    for list_hash in sorted(places_of):
        records[key("l", project, list_hash)] = orjson.dumps(state.lists[list_hash])
        for module in dict.fromkeys(state.lists[list_hash]):
            lists_with[module].append(list_hash)
    # The name as the file shows it that came last: it must not depend on the order in which rows were applied.
    display = max((contribution[3] or 0, filename, contribution[2]) for filename, contribution in state.files.items())[
        2
    ]
    values: dict[tuple[str, ...], bytes] = {}
    for module, list_hashes in lists_with.items():
        shared = tuple(list_hashes)
        if shared not in values:  # most modules of a project are in the same lists
            found = set().union(*(places_of[list_hash] for list_hash in shared))
            values[shared] = orjson.dumps([display, [ordered[place] for place in sorted(found)]])
        records[key("m", module, project)] = values[shared]
    return records
