"""When a project of an observed index is looked at next: what changes often is looked at often, all within a time."""

from dataclasses import dataclass

_FASTER = 0.5
_SLOWER = 1.5
_LONGEST_FAILURE_S = 3600.0


@dataclass(frozen=True, slots=True)
class PollingPolicy:
    """Seconds between two looks at a project, the most requests of a round, and how long something must be shown before
    it is believed again; see PYPI_ASSETS_POLL_... in docs/operations.md."""

    requests: int = 1_000
    shortest_s: float = 300.0
    longest_s: float = 86_400.0
    confirm_after_s: float = 300.0


@dataclass(frozen=True, slots=True)
class NextLook:
    """When a project is due (unix seconds), and the pause that this follows from, in seconds."""

    due_at: float
    pause_s: float


def next_look(policy: PollingPolicy, pause_s: float, now: float, *, has_changed: bool, is_waiting: bool) -> NextLook:
    """When to look again at a project that was looked at `pause_s` seconds after the time before.

    The pause is halved where it has changed, and half as long again where not. What waits to be confirmed is looked at
    as soon as that can be.
    """
    pause_s = pause_s * (_FASTER if has_changed or is_waiting else _SLOWER)
    pause_s = min(max(pause_s, policy.shortest_s), policy.longest_s)
    return NextLook(now + (min(policy.confirm_after_s, pause_s) if is_waiting else pause_s), pause_s)


def look_after_failure(policy: PollingPolicy, failures: int, now: float, requested_pause_s: float = 0.0) -> float:
    """When to look again at a project that could not be looked at, for the `failures`th time in a row."""
    pause_s = max(policy.shortest_s, 1.0) * 2.0 ** min(failures - 1, 20)
    return now + min(max(pause_s, requested_pause_s), max(_LONGEST_FAILURE_S, policy.shortest_s), policy.longest_s)
