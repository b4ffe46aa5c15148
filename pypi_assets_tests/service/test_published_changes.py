"""The journal cache and the waiting for changes: one poll serves all waiters, and nothing polls without waiters."""

import asyncio
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.service import published_changes
from pypi_assets.service.published_changes import PublishedChanges
from pypi_assets.service.service import Threads
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.service.drawn_journal import DrawnJournal


@pytest.fixture
def drawn(tmp_path: Path) -> DrawnJournal:
    return DrawnJournal(tmp_path / "home")


def changes_of(drawn: DrawnJournal) -> PublishedChanges:
    return PublishedChanges(lambda: open_storage((drawn.home / "storage").as_uri()))


def test_results_are_cached_until_more_is_published(drawn: DrawnJournal):
    changes, made = changes_of(drawn), []
    with pytest.raises(NoJournalError):
        changes.remembered("key", lambda: made.append(0))
    drawn.add()
    for expected in (1, 1):
        assert changes.remembered("key", lambda: made.append(1) or len(made)) == expected
    assert changes.remembered("other", lambda: made.append(2) or len(made)) == 2
    drawn.add()
    assert changes.remembered("key", lambda: made.append(3) or len(made)) == 3
    for number in range(200):
        changes.remembered(number, lambda: None)
    assert changes.remembered("key", lambda: "again") == "again"


def test_many_waiters_share_one_poll(drawn: DrawnJournal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(published_changes, "LOOK_EVERY_S", 0.02)
    drawn.add()
    changes, looks = changes_of(drawn), []
    journal = changes.journal
    object.__setattr__(changes.tail(), "journal", _Counting(journal, looks))

    async def run() -> list[bool]:
        threads, loop = Threads(), asyncio.get_running_loop()
        ended = loop.create_future()
        ends_at = loop.time() + 60
        waiting = [
            asyncio.ensure_future(changes.wait_beyond(threads.run, 1, ("index", "content"), ends_at, ended))
            for _ in range(200)
        ]
        while len(looks) < 4:
            await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
        drawn.add()
        found = list(await asyncio.gather(*waiting))
        while len(asyncio.all_tasks()) > 1:  # until the poll ends, since no request waits
            await asyncio.sleep(0.01)
        threads.close()
        return found

    assert asyncio.run(run()) == [True] * 200
    assert all(later - earlier > 0.015 for earlier, later in pairwise(looks))


class _Counting:
    def __init__(self, journal: object, looks: list[float]) -> None:
        self._journal, self._looks = journal, looks

    def heads(self, streams: tuple[str, ...]) -> object:
        self._looks.append(time.monotonic())
        return self._journal.heads(streams)


def test_waiting_ends_at_its_limit_and_with_its_client(drawn: DrawnJournal):
    drawn.add()
    changes = changes_of(drawn)

    async def run() -> list[tuple[bool, bool]]:
        threads, loop = Threads(), asyncio.get_running_loop()
        ended, found = loop.create_future(), []
        for after, until in ((None, 0.1), (0.1, 600)):
            began = loop.time()
            if after is not None:
                loop.call_later(after, ended.cancel)
            is_beyond = await changes.wait_beyond(threads.run, 1, ("index",), began + until, ended)
            found.append((is_beyond, loop.time() - began < 60))
        assert await changes.wait_beyond(threads.run, 0, ("index",), loop.time() + 60, loop.create_future())
        threads.close()
        return found

    assert asyncio.run(run()) == [(False, True), (False, True)]


def test_long_reading_streams_do_not_block_waiting_requests(drawn: DrawnJournal):
    drawn.add()
    changes, is_over = changes_of(drawn), threading.Event()

    async def run() -> bool:
        threads, loop = Threads(), asyncio.get_running_loop()
        reading = [asyncio.ensure_future(threads.run_part(is_over.wait, 60)) for _ in range(100)]
        await asyncio.sleep(0)  # so that all have begun
        found = await changes.wait_beyond(threads.run, 0, ("index",), loop.time() + 60, loop.create_future())
        is_over.set()
        await asyncio.gather(*reading)
        threads.close()
        return found

    assert asyncio.run(run())


def test_waiting_without_journal_ends_at_its_limit(drawn: DrawnJournal):
    changes = changes_of(drawn)

    async def run() -> bool:
        threads, loop = Threads(), asyncio.get_running_loop()
        found = await changes.wait_beyond(threads.run, 0, ("index",), loop.time() + 0.1, loop.create_future())
        threads.close()
        return found

    assert not asyncio.run(run())
