"""Measure work by counting Python instructions. The count is the same in each run, however busy the machine is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """Return the number of Python instructions that `work` executes. Work inside a C function is not counted."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # else Python 3.12 counts nothing
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    assert steps, "no instruction was counted"
    return steps


def growth(work: Callable[[int], object], size: int, times: int = 4) -> float:
    """Return the factor by which the work grows from `size` to `times * size`. Linear work grows by `times`.

    The work runs once beforehand, so that filling caches is not counted.
    """
    work(size)
    return steps_of(lambda: work(times * size)) / steps_of(lambda: work(size))
