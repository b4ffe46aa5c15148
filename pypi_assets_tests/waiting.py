"""Wait for what another thread or process does."""

import threading
import time
from collections.abc import Callable

_PAUSE_S = 0.02


def until(is_done: Callable[[], object], seconds: float = 180.0) -> None:
    """Return as soon as `is_done` returns a true value. Raise TimeoutError after `seconds`."""
    pause, deadline = threading.Event(), time.monotonic() + seconds  # tests replace time.sleep
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done after {seconds:g} s")
        pause.wait(_PAUSE_S)
