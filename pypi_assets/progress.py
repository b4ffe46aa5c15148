"""The progress of a stage. The command line, Dagster and tests display it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stage: `done` of `total`, with `failed` that could not be done yet. `stage` is its display
    name.

    A `total` of 0 means that it is unknown. `wait_s` is the time for which the stage may only wait, and `reason` is the
    error that it waits for.
    """

    stage: str
    done: int
    total: int
    failed: int = 0
    wait_s: float = 0.0
    reason: str = ""

    @property
    def remarks(self) -> str:
        """Return failures and waiting as text to append to `done` and `total`."""
        failed = f", {self.failed} failed" if self.failed else ""
        waiting = f", waiting for up to {self.wait_s:.0f} s" if self.wait_s else ""
        return f"{failed}{waiting}: {self.reason}" if self.reason else f"{failed}{waiting}"
