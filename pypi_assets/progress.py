"""How far a stage of the work is, as the command line, Dagster and the tests are notified of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is: `done` of `total`, of which `failed` could not be done yet. `stage` is what people read.

    A `total` of 0 says that nobody knows it. `wait_s` is for how many seconds nothing may be left to do but to wait.
    """

    stage: str
    done: int
    total: int
    failed: int = 0
    wait_s: float = 0.0

    @property
    def remarks(self) -> str:
        """What is to be said besides."""
        failed = f", {self.failed} failed" if self.failed else ""
        return failed + (f", waiting for up to {self.wait_s:.0f} s" if self.wait_s else "")
