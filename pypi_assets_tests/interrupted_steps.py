"""Run a function repeatedly, and raise SIGINT one step later in each run."""

import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Any


def interrupted_steps(work: Callable[[], object]) -> Iterator[KeyboardInterrupt]:
    """Yield the interrupt of each run while its traceback is alive. Stop at the first run that ends before its step.

    A step is a moment at which Python handles signals: when a function begins, and after a call of a C function. Calls
    that Python makes while it frees an object, and whose errors it ignores, are not steps.
    """
    for step in count():
        interrupt, is_over = _interrupted_at(step, work)
        if is_over:
            return
        if interrupt is not None:
            yield interrupt
        del interrupt


def _interrupted_at(step: int, work: Callable[[], object]) -> tuple[KeyboardInterrupt | None, bool]:
    """Return the interrupt that ended the run, and whether the run ended before the step."""
    left = step

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal left
        if event in {"call", "c_return"}:
            left -= 1
            if left < 0:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    hook, sys.unraisablehook = sys.unraisablehook, lambda _ignored: None
    try:
        sys.setprofile(profile)
        work()
    except KeyboardInterrupt as interrupt:
        return interrupt, False
    finally:
        sys.setprofile(None)
        sys.unraisablehook = hook
    return None, left >= 0
