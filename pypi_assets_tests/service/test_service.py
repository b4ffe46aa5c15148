"""State that all routes share: one set of datasets of one serial, which newer sets replace safely."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets.service import service as service_module
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.service import Threads, open_service
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.service.published import Published


def test_request_keeps_its_set_while_newer_ones_are_published(changing: Published):
    with changing.service() as service:
        before = service.datasets()
        changing.add("wheel", "third", "1.0", files={"yaml/__init__.py": ""})
        serial = changing.publish()
        assert service.datasets() is before
        service.follow()
        now = service.datasets()
        assert before.serial < now.serial == serial == changing.index.serial
        assert len(before.reader(ModulesReader).module("yaml").results) == 2
        assert len(now.reader(ModulesReader).module("yaml").results) == 3
        assert service.named_set(before.id) is before
        assert service.named_set(now.id) is now
        assert service.named_set("7-unknown") is None
    with changing.service() as other:  # this service was started later and has never read the first set
        named = other.named_set(before.id)
        assert named is not None
        assert named.published == before.published
        assert other.named_set(before.id) is named


def test_service_waits_for_the_first_published_set(published: Published, tmp_path, monkeypatch):
    clear_settings(monkeypatch)
    service = open_service(published.settings(home=tmp_path / "empty"))
    with pytest.raises(ProblemError) as raised:
        service.datasets()
    assert raised.value.problem.status == 503
    with pytest.raises(ProblemError) as raised:
        service.require_catalog()
    assert raised.value.problem.status == 503
    assert service.problems.keys() == {"storage", "catalog"}
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "storage").symlink_to(published.home / "storage")
    service.follow()
    assert service.datasets().serial == published.index.serial
    assert service.problems.keys() == {"catalog"}
    service.close()


def test_private_copy_is_deleted_after_its_last_use(changing: Published):
    folders = changing.home / "storage" / ".private"
    with changing.service() as service:
        held = service.datasets()
        count = len([path for path in folders.iterdir() if path.is_dir()])
        assert count == len(held.readers)
    assert held.reader(ModulesReader).module("yaml").results
    del held
    assert not [path for path in folders.iterdir() if path.is_dir()]


def test_failed_poll_is_reported_and_the_next_poll_succeeds(changing: Published, monkeypatch):
    with changing.service() as service:
        before = service.serial
        changing.add("wheel", "third", "1.0")
        serial = changing.publish()
        with monkeypatch.context() as patched:
            patched.setattr(PublishedSets, "open_newest", lambda *_: [][0])
            service.follow()
        assert service.serial == before
        assert service.problems.keys() == {"storage"}
        service.follow()
        assert (service.serial, service.problems) == (serial, {})


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Yield an event that slow work waits for. It is always set at the end."""
    event = threading.Event()
    yield event
    event.set()


def test_slow_call_blocks_no_other_and_times_out(gate: threading.Event):
    async def run() -> None:
        own, begun = Threads(timeout_s=3.0), threading.Event()
        slow = asyncio.ensure_future(own.run(lambda: (begun.set(), gate.wait())))
        assert await own.run(lambda: "quick") == "quick"
        assert await own.run_part(max, 3, 4) == 4
        assert begun.wait(60)
        assert own.waiting == 1
        with pytest.raises(TimeoutError):
            await slow
        with pytest.raises(ZeroDivisionError):
            await own.run(lambda: 1 // 0)
        assert own.waiting == 0
        own.close()

    asyncio.run(run())


def test_timed_out_calls_hold_their_threads_and_expired_waiters_do_not_run(gate: threading.Event):
    count, begun = service_module._THREADS, []

    async def run() -> None:
        own = Threads(timeout_s=3.0)
        slow = [own.run(lambda: (begun.append(1), gate.wait())) for _ in range(count)]
        for result in await asyncio.gather(*slow, own.run(lambda: begun.append(2)), return_exceptions=True):
            assert isinstance(result, TimeoutError)
        gate.set()
        assert await own.run(lambda: "next") == "next"
        own.close()

    asyncio.run(run())
    assert begun == [1] * count
