"""The stored state of a mirror and its status."""

from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.mirror.following import Mirror
from pypi_assets.mirror.mirror_state import (
    MIRROR,
    MirrorState,
    identity_of,
    mirror_status,
    read_mirror,
    write_mirror,
)
from pypi_assets.mirror.sources import MirrorError, SourceError
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import OWNER, RootOwner, require_claimable
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.mirror.conftest import Mirrors, Origin
from pypi_assets_tests.naming import naming


def test_mirror_state_round_trips() -> None:
    storage = open_storage("memory:///")
    assert read_mirror(storage) is None
    state = MirrorState("https://one.example", 3.5, 2.5, 3.5, "no\nanswer", is_refused=True, superseded={"a/b": 1.5})
    write_mirror(storage, state)
    assert read_mirror(storage) == state


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 2}', b'{"format": 1}', b'{"format": 1, "x": 1}'])
def test_corrupt_mirror_state_is_named(content: bytes) -> None:
    storage = open_storage("memory:///")
    storage.put(MIRROR, content)
    with pytest.raises(MirrorError, match=naming("mirror.json")):
        read_mirror(storage)


def test_status_has_held_serial_and_start_of_failures(origin: Origin) -> None:
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
    assert status.leveldbs == {dataset: version for version, dataset in enumerate(DATASETS, 1)}
    assert set(status.journal.values()) == {status.dumps_serial}


def test_home_has_one_identity(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert identity_of(first) == identity_of(first) != identity_of(second)


def test_storage_belongs_to_one_home(origin: Origin, mirrors: Mirrors) -> None:
    def of(home: str | None, **options: bool) -> Mirror:
        return replace(mirrors.of(origin.files.url), home=home, **options)

    of(None).run()
    of("first").run()
    before = mirrors.storage("mirror").get(MIRROR)
    for _ in range(2):
        with pytest.raises(MirrorError):
            of("second").run()
    assert mirrors.storage("mirror").get(MIRROR) == before
    of("first").run()
    of("second", take_over=True).run()
    of("second").run()
    with pytest.raises(MirrorError):
        of("first").run()


def test_only_one_of_two_homes_that_start_together_publishes(changing_origin: Origin, mirrors: Mirrors) -> None:
    first, second = (replace(mirrors.of(changing_origin.files.url), home=name) for name in ("first", "second"))

    def begin_second(_path: str) -> None:
        changing_origin.files.before = lambda _path: None
        write_mirror(first.storage, MirrorState(second.source.name, home=second.home))

    changing_origin.files.before = begin_second
    with pytest.raises(MirrorError):
        first.run()
    assert not first.storage.exists(PUBLISHED)
    second.run()
    assert first.storage.exists(PUBLISHED)


def test_source_that_never_answered_does_not_claim_a_storage(origin: Origin, mirrors: Mirrors) -> None:
    storage = mirrors.storage("mirror")
    for url in ("http://127.0.0.1:9/storage", f"{origin.files.url}/elsewhere"):
        with pytest.raises(SourceError):
            replace(mirrors.of(url), home="first").run()
        assert list(storage.list()) == []
        with pytest.raises(MirrorError):
            mirror_status(storage)
    replace(mirrors.of(origin.files.url), home="second").run()
    assert mirror_status(storage).state == "following"


def test_catalog_wins_over_a_mirror_that_starts_at_the_same_time(changing_origin: Origin, mirrors: Mirrors) -> None:
    mirror = replace(mirrors.of(changing_origin.files.url), home="first")
    catalog = RootOwner(changing_origin.published.index.url, "catalog")

    def begin_catalog(path: str) -> None:
        if mirror.storage.exists(MIRROR):  # it was claimable before
            changing_origin.files.before = lambda _path: None
            mirror.storage.put(OWNER, catalog.encode())

    changing_origin.files.before = begin_catalog
    with pytest.raises(MirrorError):
        mirror.run()
    assert [file.path for file in mirror.storage.list()] == [OWNER]
    assert require_claimable(mirror.storage, catalog) == catalog
    with pytest.raises(MirrorError):
        mirror.run()
