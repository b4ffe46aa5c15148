"""How much work something takes, counted and not timed: the same on each run, however busy the machine is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """How many instructions of Python are executed while `work` is done. What one of them does in C is not counted."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 counts none where no frame had it before
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    assert steps, "nothing was counted"
    return steps


def growth(work: Callable[[int], object], size: int, times: int = 4) -> float:
    """By how much the work for a size grows where the size is `times` as large: by `times` where it is linear.

    It is done once before, so that what is kept from the first time is not counted.
    """
    work(size)
    return steps_of(lambda: work(times * size)) / steps_of(lambda: work(size))
