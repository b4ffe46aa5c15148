"""A mirror answers past serials as its source does after it has replayed them, and with a problem before."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.journal import replay as replay_module
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.replay import Replayed, ReplayError, replay
from pypi_assets.mirror.mirror_state import journal_end
from pypi_assets.mirror.past_catalog import Past, PastFollower
from pypi_assets.service.service import Service, open_service
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.mirror.conftest import Mirrors, Origin
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.service.published import Client, client_of

JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
PATHS = (
    "simple/demo/",
    "simple/gone/",
    "simple/other-app/",
    "v1/projects/demo",
    "v1/modules/yaml",
    "v1/projects/pyyaml",
)


@contextmanager
def served_mirror(mirrors: Mirrors, origin: Origin) -> Iterator[tuple[Service, Client]]:
    """Yield a client of the mirror's service, which polls only when `follow` is called."""
    home = mirrors.root / "mirror"
    service = open_service(load_settings(home=home, index_url=origin.published.index.url, service_refresh_s=3600))
    try:
        with client_of(service) as client:
            yield service, client
    finally:
        service.close()


@pytest.fixture
def catalog(mirrors: Mirrors) -> Iterator[Catalog]:
    """Yield the catalog of the mirror."""
    (mirrors.root / "mirror").mkdir(parents=True)
    catalog = open_catalog(sqlite_database(mirrors.root / "mirror" / "catalog.sqlite"))
    yield catalog
    catalog.close()


def answer(client: Client, serial: int, path: str) -> tuple[int, Any]:
    """Return the status and content of an answer at a serial.

    The epoch and the request ID are removed, since they differ for each catalog and request.
    """
    response = client.get(f"at/{serial}/{path}", headers=JSON, allow_redirects=True)
    content = response.json()
    content.pop("epoch", None)
    content.pop("request_id", None)
    return response.status_code, content


def assert_equal_answers(mirror: Client, source: Client, serials: Iterable[int]) -> None:
    for serial in serials:
        for path in PATHS:
            here, there = answer(mirror, serial, path), answer(source, serial, path)
            assert here == there, (serial, path)
            assert there[0] in (200, 404)


@pytest.mark.nightly
def test_replayed_serials_are_answered_as_by_the_source(
    changing_origin: Origin, mirrors: Mirrors, catalog: Catalog
) -> None:
    origin, history = changing_origin, changing_origin.published.index.history
    mirror = mirrors.of(origin.storage.url)
    end = origin.published.index.serial
    mirror.run()
    with served_mirror(mirrors, origin) as (service, client), origin.published.client() as source:
        assert client.get("v1/modules/yaml").status_code == 200
        assert_waits(client.get(f"at/{end}/simple/demo/"), f"up to serial 0 of {end}")
        assert_waits(client.get("at/2026-03-03/simple/demo/"), f"up to serial 0 of {end}")

        middle = end - 9
        replay(mirror.storage, catalog, middle)
        service.follow()
        assert_equal_answers(client, source, (middle - 2, middle))
        assert_waits(client.get(f"at/{middle + 1}/simple/demo/"), f"up to serial {middle} of {end}")
        assert_waits(client.get("at/2026-03-30/simple/demo/"), f"up to serial {middle} of {end}")
        assert client.get("v1/projects/demo").json()["result"]["first_serial"] is None  # it is not known yet
        never = client.get(f"at/{end + 100}/simple/demo/")
        assert (never.status_code, never.json()["type"]) == (409, "/docs#not-exact")
        assert mentions(never.json()["detail"], 0, middle)

        assert Past(mirror.storage, catalog).catch_up() is not None
        assert Past(mirror.storage, catalog).catch_up() is None
        assert_equal_answers(client, source, (1, 9, middle + 2, end))
        assert client.get("v1/projects/demo").json() == source.get("v1/projects/demo").json()
        assert client.get(f"at/{end}.{end}/v1/projects/demo").status_code == 200

        history.quarantine("pyyaml", at=origin.published.at())
        origin.publish()
        history.yank("demo", "1.0", "late", at=origin.published.at())
        history.remove_release("demo", "2.1", at=origin.published.at())
        history.unquarantine("pyyaml", at=origin.published.at())
        last = origin.publish()
        mirror.run()
        service.follow()
        assert_waits(client.get(f"at/{last}/simple/demo/"), f"up to serial {end} of {last}")
        assert Past(mirror.storage, catalog).catch_up() is not None
        assert_equal_answers(client, source, (end, *range(end + 2, last + 1)))
        for pinned in (client, source):  # the yank's reason shows at each serial
            assert pinned.get(f"at/{end}.{end}/v1/projects/demo").status_code == 410
        assert client.get(f"at/{middle}.{middle}/v1/modules/yaml").status_code == 410


def assert_waits(found: Any, text: str) -> None:
    assert (found.status_code, found.json()["type"]) == (503, "/docs#not-replayed-yet")
    assert int(found.headers["Retry-After"]) > 0
    assert text in found.json()["detail"]


def test_mirror_without_a_catalog_describes_how_to_get_one(origin: Origin, mirrors: Mirrors) -> None:
    mirrors.of(origin.storage.url).run()
    with served_mirror(mirrors, origin) as (_, client):
        response = client.get("at/5/simple/demo/")
    assert (response.status_code, response.json()["type"]) == (503, "/docs#no-catalog")
    assert "--latest-only" in response.json()["detail"]
    assert int(response.headers["Retry-After"]) > 0


def test_only_a_mirror_has_a_journal_to_replay(origin: Origin, mirrors: Mirrors) -> None:
    assert journal_end(origin.storage) is None
    storage = open_storage("memory:///")
    storage.put("mirror.json", b"{}")
    assert journal_end(storage) == 0
    mirror = mirrors.of(origin.storage.url)
    mirror.run()
    assert journal_end(mirror.storage) == origin.published.index.serial


@pytest.mark.nightly
def test_replay_catches_up_on_start_and_wake_up_and_continues_after_errors(
    changing_origin: Origin, mirrors: Mirrors, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "STEP_RECORDS", 10)
    monkeypatch.setattr(replay_module, "BATCH_RECORDS", 3)
    happened = threading.Semaphore(0)
    found: list[Replayed | Exception] = []

    def note(one: Replayed | Exception) -> None:
        found.append(one)
        happened.release()

    mirror = mirrors.of(changing_origin.storage.url)
    mirror.run()
    segment = next(file.path for file in mirror.storage.list("journal/content") if file.path.endswith(".zst"))
    content = mirror.storage.get(segment)
    mirror.storage.put(segment, b"damaged")
    follower = PastFollower(Past(mirror.storage, catalog), done=note, failed=note)
    assert happened.acquire(timeout=60)
    assert segment in str(found[0])
    mirror.storage.put(segment, content)
    for number in (1, 2):
        follower.wake()
        assert happened.acquire(timeout=60)
        done = found[number]
        assert isinstance(done, Replayed)
        assert done.through == changing_origin.published.index.serial
        changing_origin.publish()
        mirror.run()


def test_other_journal_of_the_same_index_is_not_mixed_in(
    origin: Origin, changing_origin: Origin, mirrors: Mirrors, catalog: Catalog
) -> None:
    mirror = mirrors.of(origin.storage.url)
    mirror.run()
    Past(mirror.storage, catalog).catch_up()
    changing_origin.publish()
    list(write_missing(changing_origin.published.catalog, changing_origin.storage))
    with pytest.raises(ReplayError):
        replay(changing_origin.storage, catalog)
