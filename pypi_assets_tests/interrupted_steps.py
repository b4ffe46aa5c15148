"""Runs a function again and again, with SIGINT each time one step later."""

import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Any


def interrupted_steps(work: Callable[[], object]) -> Iterator[KeyboardInterrupt]:
    """Yields what each run ends with, while its traceback lives. Ends with the first run that is over before its step.

    A step is where Python looks for signals: as a function begins, and after the call of one in C. One that Python
    itself calls as it frees an object, and whose errors it ignores, is none.
    """
    for step in count():
        interrupt, is_over = _interrupted_at(step, work)
        if is_over:
            return
        if interrupt is not None:
            yield interrupt
        del interrupt


def _interrupted_at(step: int, work: Callable[[], object]) -> tuple[KeyboardInterrupt | None, bool]:
    """What the run ended with, and whether it was over before its step."""
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
