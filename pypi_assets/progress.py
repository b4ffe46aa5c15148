"""How far a stage of the work is, as stages report it. The command line, Dagster and tests display it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is: `done` of `total`, of which `failed` could not be done yet. `stage` is its displayed name.

    A `total` of 0 means that it is unknown. `wait_s` is for how many seconds there may be nothing to do but wait,
    and `reason` the last error, which is waited for.
    """

    stage: str
    done: int
    total: int
    failed: int = 0
    wait_s: float = 0.0
    reason: str = ""

    @property
    def remarks(self) -> str:
        """Failures and waiting as text, to be appended to `done` and `total`."""
        failed = f", {self.failed} failed" if self.failed else ""
        waiting = f", waiting for up to {self.wait_s:.0f} s" if self.wait_s else ""
        return f"{failed}{waiting}: {self.reason}" if self.reason else f"{failed}{waiting}"
