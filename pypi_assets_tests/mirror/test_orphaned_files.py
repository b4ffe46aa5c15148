"""A mirror's clean-up deletes only files that were not named during the grace time."""

import os

import orjson
import pytest

from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.mirror.mirror_state import read_mirror
from pypi_assets.mirror.sources import BehindError
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import Storage
from pypi_assets_tests.mirror.conftest import DAY_S, Mirrors, Origin, assert_whole, contents
from pypi_assets_tests.mirror.static_files import send


def age(storage: Storage, seconds: float, now: float) -> None:
    """Set the age of all files."""
    for stored in storage.list():
        assert storage.root
        os.utime(storage.root / stored.path, (now - seconds, now - seconds))


def paths(storage: Storage) -> set[str]:
    return {stored.path for stored in storage.list()}


def test_superseded_files_are_kept_for_the_grace_time(changing_origin: Origin, mirrors: Mirrors) -> None:
    origin, mirror = changing_origin, mirrors.of(changing_origin.files.url)
    storage = mirror.storage
    mirror.run()
    age(storage, 10 * DAY_S, mirrors.clock.now)
    storage.put(f"{DUMPS}/9-10/python_distribution_data0000.json.gz", b"left over")
    storage.put("other/file", b"of a person")
    age(storage, 10 * DAY_S, mirrors.clock.now)
    first = paths(storage)
    origin.publish()
    full_dump(origin.published.catalog, origin.storage, 1, since=origin.published.catalog.clock())
    done = mirror.run()
    assert done.deleted == 1
    assert first - paths(storage) == {f"{DUMPS}/9-10/python_distribution_data0000.json.gz"}
    superseded = read_mirror(storage).superseded
    assert f"{DUMPS}/0-27/_MANIFEST.json" in superseded
    assert "modules/input_lists/00001" in superseded
    assert any("open-" in path for path in superseded)
    age(storage, 10 * DAY_S, mirrors.clock.now)
    assert mirror.run().deleted == 0
    mirrors.clock.now += DAY_S + 1
    age(storage, 10 * DAY_S, mirrors.clock.now)
    deleted = mirror.run().deleted
    gone = first - paths(storage)
    assert deleted == len(gone) - 1 > 5
    assert gone >= {path for path in first if path.startswith((f"{DUMPS}/0-27/", "modules/input_lists/00001"))}
    assert not [path for path in gone if path.startswith("other/")]
    assert_whole(storage)
    assert read_mirror(storage).superseded == {}
    assert storage.get(PUBLISHED) == origin.storage.get(PUBLISHED)


@pytest.mark.parametrize("stream", [None, "observed"])
def test_journal_missing_from_the_source_is_kept(stream: str | None, origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    before = contents(mirror.storage)
    published = orjson.loads(origin.storage.get(PUBLISHED))
    if stream is None:
        published["journal"] = None
    else:
        del published["journal"][stream]
    origin.files.answers[PUBLISHED] = send(orjson.dumps(published))
    try:
        for _ in range(3):
            with pytest.raises(BehindError):
                mirror.run()
            mirrors.clock.now += 2 * DAY_S
    finally:
        origin.files.answers.clear()
    assert contents(mirror.storage) == before
    mirror.run()
    assert_whole(mirror.storage)
