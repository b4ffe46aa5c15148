"""Tells whether pages that keep failing are at fault themselves, or the index is."""

from dataclasses import dataclass, field

MOST_FAILING = 20
"""Distinct projects. If as many fail and no other page comes meanwhile, the index is at fault."""


@dataclass
class PageFailures:
    """What this process has seen of the pages of an index.

    `answered_at` is when a page came last (unix seconds), `failing` are the projects that have failed since.
    """

    answered_at: float = 0.0
    failing: set[int] = field(default_factory=set)

    def note(self, project_id: int, now: float, *, is_answered: bool) -> None:
        """Record that a page came at `now`, or failed. A 404 is an answer."""
        if is_answered:
            self.answered_at = now
            self.failing.clear()
        else:
            self.failing.add(project_id)

    def is_of_page(self, first_failed_at: float) -> bool:
        """Check whether a page that fails since then (unix seconds) is at fault: others came meanwhile, or few fail."""
        return self.answered_at > first_failed_at or len(self.failing) < MOST_FAILING
