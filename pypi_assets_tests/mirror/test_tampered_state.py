"""A published.json with one changed field is never accepted. The last good version stays, with a message."""

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
import pytest

from pypi_assets.lookup import ModulesReader
from pypi_assets.lookup.latest import open_latest
from pypi_assets.mirror.mirror_state import mirror_status
from pypi_assets.mirror.sources import MirrorError, RefusedSourceError
from pypi_assets.mirror.sync_plan import read_state
from pypi_assets.storage.published import PUBLISHED
from pypi_assets_tests.examples import first_seed
from pypi_assets_tests.mirror.conftest import Mirrors, Origin, assert_whole, contents
from pypi_assets_tests.mirror.static_files import send

MISSING = object()
Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield all fields of a JSON value at any depth with their values."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield (*at, key), entry
        yield from places(entry, (*at, key))


def other_values(value: Any) -> Iterator[Any]:
    """Yield values of other types, then other values of the same type, and at last a marker for a missing field."""
    yield from (candidate for candidate in (None, True, 1.5, "x", [], {}, [value], {"x": value}) if candidate != value)
    if isinstance(value, str):
        yield from ("", value[:-1], value + "x", "0" * 64, value.replace("1", "2"), 7)
    elif isinstance(value, int):
        yield from (value + 1, -1, 10**9, 2**70, str(value))
        if value > 1:
            yield value - 1
    yield MISSING


def tampered(published: bytes) -> list[tuple[Place, Any, bytes]]:
    """Return a published.json for each changed field: the field's place, the value and the content."""
    found = []
    fields = orjson.loads(published)
    for place, value in places(fields):
        for other in other_values(value):
            changed = deepcopy(fields)
            target = changed
            for key in place[:-1]:
                target = target[key]
            if other is MISSING:
                del target[place[-1]]
            elif other == value and type(other) is type(value):
                continue
            else:
                target[place[-1]] = other
            content = json.dumps(changed).encode()
            if not is_same(content, published):
                found.append((place, "missing" if other is MISSING else other, content))
    return found


def is_same(content: bytes, published: bytes) -> bool:
    """Check whether both describe the same state. A null field may also be missing."""
    try:
        states = [replace(read_state(one, "one"), content=b"") for one in (content, published)]
    except RefusedSourceError:
        return False
    return states[0] == states[1]


def assert_refused(origin: Origin, mirrors: Mirrors, versions: list[tuple[Place, Any, bytes]]) -> list[Any]:
    """Assert that a mirror with the last good version rejects each changed version, and return the accepted ones."""
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    good, held = mirror.storage.get(PUBLISHED), contents(mirror.storage)
    taken = []
    try:
        for place, other, content in versions:
            origin.files.answers[PUBLISHED] = send(content)
            try:
                mirror.run()
            except MirrorError:
                status = mirror_status(mirror.storage)
                assert status.state in {"failing", "refused"}
                assert status.error
            else:
                taken.append((place, other))
                mirror.storage.put(PUBLISHED, good)
                continue
            assert mirror.storage.get(PUBLISHED) == good, (place, other)
            assert contents(mirror.storage) == held, (place, other)
    finally:
        origin.files.answers.clear()
    assert_whole(mirror.storage)
    with open_latest(ModulesReader, mirror.storage) as reader:
        assert reader.module("yaml").results
    mirror.run()
    assert mirror_status(mirror.storage).state == "following"
    return taken


def test_drawn_changed_fields_are_rejected(origin: Origin, mirrors: Mirrors) -> None:
    versions = tampered(origin.storage.get(PUBLISHED))
    assert assert_refused(origin, mirrors, random.Random(first_seed()).sample(versions, 60)) == []


@pytest.mark.nightly
def test_all_changed_fields_are_rejected(origin: Origin, mirrors: Mirrors) -> None:
    assert assert_refused(origin, mirrors, tampered(origin.storage.get(PUBLISHED))) == []
