"""Threads for what blocks: one for what begins together, and another one for what is held up."""

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator

import pytest

from pypi_assets.service import threads
from pypi_assets.service.threads import Threads

_LONG_S = 20.0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What slow work waits for; it is opened at the end in any case."""
    event = threading.Event()
    yield event
    event.set()


def run(steps: Callable[[Threads], Awaitable[None]], timeout_s: float = _LONG_S) -> None:
    async def main() -> None:
        own = Threads(timeout_s)
        try:
            async with asyncio.timeout(_LONG_S):
                await steps(own)
        finally:
            own.close()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_it_returns_what_work_returns_and_raises_what_it_raises():
    def fail() -> None:
        raise IndexError("of the work")

    async def steps(own: Threads) -> None:
        found = await asyncio.gather(own.run(lambda: 1), own.run(fail), own.run(lambda: 2), return_exceptions=True)
        assert found[::2] == [1, 2]
        assert str(found[1]) == "of the work"
        assert own.waiting == 0
        assert await own.run_alone(max, 3, 4) == 4

    run(steps)


def test_what_begins_in_one_turn_shares_a_thread_which_is_not_that_of_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "_MOMENT_S", _LONG_S)

    async def steps(own: Threads) -> None:
        used = await asyncio.gather(*(own.run(threading.get_ident) for _ in range(50)))
        assert len(set(used)) == 1
        assert threading.get_ident() not in used

    run(steps)


def test_what_is_slow_holds_up_nothing_else(gate: threading.Event):
    async def steps(own: Threads) -> None:
        slow = own.run(gate.wait)
        together = [own.run(lambda: "quick") for _ in range(3)]
        assert await asyncio.gather(*together) == ["quick"] * 3
        assert await own.run(lambda: "later") == "later"
        assert not slow.done()
        assert own.waiting == 1
        gate.set()
        assert await slow
        assert own.waiting == 0

    run(steps)


def test_a_thread_that_was_left_begins_nothing_more():
    async def steps(own: Threads) -> None:
        loop, turn = asyncio.get_running_loop(), threads._Turn()
        result = own.run(lambda: "done")
        assert not turn.has_ended_within(0)
        own._left_turns += 1
        own._drain(turn, loop)
        assert len(own._work) == 1
        assert await result == "done"
        await until(lambda: own._left_turns == 0)

    run(steps)


def test_when_all_threads_are_taken_the_rest_waits_for_the_first_that_is_free(gate: threading.Event):
    async def steps(own: Threads) -> None:
        begun: list[int] = []
        slow = [own.run(lambda: (begun.append(1), gate.wait())) for _ in range(threads._THREADS)]
        await until(lambda: len(begun) == threads._THREADS)
        waits = [own.run(lambda: "at last") for _ in range(5)]
        await asyncio.sleep(0.05)
        assert not any(result.done() for result in waits)
        gate.set()
        assert await asyncio.gather(*waits) == ["at last"] * 5
        await asyncio.gather(*slow)
        assert own.waiting == 0

    run(steps)


def test_what_takes_too_long_is_an_error_and_what_then_waits_is_not_done(gate: threading.Event):
    async def steps(own: Threads) -> None:
        begun: list[int] = []
        slow = [own.run(lambda: (begun.append(1), gate.wait())) for _ in range(threads._THREADS)]
        await until(lambda: len(begun) == threads._THREADS)
        waits = own.run(lambda: begun.append(2))
        for result in (*slow, waits):
            with pytest.raises(TimeoutError):
                await result
        assert own.waiting == threads._THREADS + 1
        gate.set()
        await until(lambda: own.waiting == 0)
        assert 2 not in begun
        assert await own.run(lambda: "next") == "next"

    run(steps, timeout_s=1.0)


def test_the_end_of_a_turn_is_in_time_or_left_and_never_both():
    for waits_s in (0.0, _LONG_S):
        for _ in range(200):
            turn, ended = threads._Turn(), []
            thread = threading.Thread(target=lambda turn=turn, ended=ended: ended.append(turn.end()))
            thread.start()
            in_time = turn.has_ended_within(waits_s)
            thread.join()
            assert ended == [in_time]


@pytest.mark.parametrize("error", [StopIteration(1), GeneratorExit(), asyncio.CancelledError(), SystemExit(1)])
def test_what_no_result_can_raise_is_an_error_of_its_own_work_alone(error: BaseException):
    def fail() -> None:
        raise error

    async def steps(own: Threads) -> None:
        found = await asyncio.gather(own.run(lambda: 1), own.run(fail), own.run(lambda: 2), return_exceptions=True)
        assert found[::2] == [1, 2]
        assert isinstance(found[1], RuntimeError)
        assert found[1].__cause__ is error
        assert (own.waiting, own._left_turns) == (0, 0)

    run(steps)


def test_a_result_that_took_long_is_not_kept_after_it_was_taken(gate: threading.Event):
    class Body:
        pass

    async def steps(own: Threads) -> None:
        slow = own.run(lambda: (gate.wait(), Body())[1])
        await own.run(lambda: None)
        gate.set()
        body = weakref.ref(await slow)
        del slow
        async with asyncio.timeout(_LONG_S / 2):
            await until(lambda: body() is None)

    run(steps)


def test_work_of_a_request_that_was_cancelled_is_not_done_and_holds_up_nothing(gate: threading.Event):
    async def steps(own: Threads) -> None:
        begun: list[int] = []
        slow = [own.run(lambda: (begun.append(1), gate.wait())) for _ in range(threads._THREADS)]
        await until(lambda: len(begun) == threads._THREADS)
        waits = [own.run(lambda number=number: begun.append(number)) for number in (2, 3)]
        for cancelled in (slow[0], waits[0]):
            cancelled.cancel()
        gate.set()
        await asyncio.gather(*slow[1:], waits[1])
        await until(lambda: own.waiting == 0)
        assert begun.count(2) == 0
        assert begun.count(3) == 1

    run(steps)
