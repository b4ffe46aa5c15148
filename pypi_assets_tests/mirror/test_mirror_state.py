"""What a mirror remembers, and what its status makes of it."""

import pytest

from pypi_assets.mirror.errors import MirrorError
from pypi_assets.mirror.mirror_state import MIRROR, MirrorState, mirror_status, read_mirror, write_mirror
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.mirror.conftest import Origin
from pypi_assets_tests.naming import naming


def test_it_is_read_as_it_was_written() -> None:
    storage = open_storage("memory:///")
    assert read_mirror(storage) is None
    state = MirrorState("https://one.example", 3.5, 2.5, 3.5, "no\nanswer", is_refused=True, superseded={"a/b": 1.5})
    write_mirror(storage, state)
    assert read_mirror(storage) == state


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 2}', b'{"format": 1}', b'{"format": 1, "x": 1}'])
def test_a_damaged_one_is_named(content: bytes) -> None:
    storage = open_storage("memory:///")
    storage.put(MIRROR, content)
    with pytest.raises(MirrorError, match=naming("mirror.json")):
        read_mirror(storage)


def test_the_status_has_what_is_held_and_since_when_it_fails(origin: Origin) -> None:
    storage = open_storage("memory:///")
    with pytest.raises(MirrorError):
        mirror_status(storage)
    write_mirror(storage, MirrorState("https://one.example"))
    status = mirror_status(storage)
    assert (status.state, status.dumps_serial, status.leveldbs, status.journal) == ("empty", None, {}, {})
    storage.put(PUBLISHED, origin.storage.get(PUBLISHED))
    assert mirror_status(storage).state == "following"
    for is_refused, state in ((False, "failing"), (True, "refused")):
        write_mirror(storage, MirrorState("x", 3.0, 1.0, 2.0, "no answer", is_refused=is_refused))
        status = mirror_status(storage)
        assert (status.state, status.failing_since, status.error) == (state, 2.0, "no answer")
    assert status.leveldbs == {"modules": 1, "depgraph": 2, "commands": 3, "hashes": 4, "simple": 5}
    assert set(status.journal.values()) == {status.dumps_serial}
