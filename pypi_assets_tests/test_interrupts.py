"""Signals interrupt an `Uninterrupted` block only at its end, once each, and are never lost."""

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from pypi_assets.interrupts import Uninterrupted
from pypi_assets_tests.interrupted_steps import interrupted_steps


class Terminated(BaseException):
    pass


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_signal_waits_for_the_end_of_the_block(number: signal.Signals, raised: type[BaseException]) -> None:
    reached = []

    def block() -> None:
        with Uninterrupted():
            signal.raise_signal(number)
            reached.append("the end")

    with pytest.raises(raised):
        block()
    assert reached == ["the end"]
    with pytest.raises(raised):
        signal.raise_signal(number)


def test_second_signal_does_not_wait() -> None:
    def block() -> None:
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("the second signal has waited")

    with pytest.raises(KeyboardInterrupt):
        block()


def test_signal_in_nested_block_waits_for_the_outer_block() -> None:
    reached = []

    def blocks() -> None:
        with Uninterrupted():
            with Uninterrupted():
                signal.raise_signal(signal.SIGINT)
            reached.append("after the inner block")

    with pytest.raises(KeyboardInterrupt):
        blocks()
    assert reached == ["after the inner block"]


def test_handler_set_by_another_handler_stays() -> None:
    seen = []

    def second(_number: int, _frame: FrameType | None) -> None:
        seen.append("second")

    def first(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, second)
        seen.append("first")

    signal.signal(signal.SIGINT, first)
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert seen == []
        signal.raise_signal(signal.SIGINT)
        assert seen == ["first"]
    assert signal.getsignal(signal.SIGINT) is second


def test_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_block_in_another_thread_delays_no_signal() -> None:
    entered, left = threading.Event(), threading.Event()

    def hold() -> None:
        with Uninterrupted():
            entered.set()
            left.wait(timeout=60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(timeout=60)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    left.set()
    thread.join()


def test_signal_at_any_step_is_raised_exactly_once() -> None:
    def block() -> None:
        with Uninterrupted():
            "".join(["a"])

    steps = 0
    for _ in interrupted_steps(block):
        steps += 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert steps > 10
