"""The states of a scope: the meaning of each, the transitions between them, and their causes.

Commands, Dagster, `status` and docs/scopes.md all use this declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ScopeState(StrEnum):
    """The state of a scope. `STATES` has the meaning of each state."""

    ACTIVE = "active"
    DRAINING = "draining"
    FINISHED = "finished"
    PAUSED = "paused"
    ABORTED = "aborted"


class Cause(StrEnum):
    """The cause of a transition between states.

    A cause is that workers claim, finish or lose work; that events, rules or roots bring new work; or one of three
    commands.
    """

    WORKERS = "workers"
    NEW_WORK = "new work"
    SET = "scope set"
    ABORT = "scope abort"
    RESUME = "scope resume"


@dataclass(frozen=True, slots=True)
class StateRule:
    """The meaning of a state, and the causes of each transition from it to another state.

    If workers take no work from a scope in this state, `remedy` says how to continue the scope; otherwise it is empty.
    """

    meaning: str
    following: Mapping[ScopeState, frozenset[Cause]]
    remedy: str = ""


_WORK, _NEW, _SET, _ABORT, _RESUME = (frozenset({cause}) for cause in Cause)


def _next(**causes: frozenset[Cause]) -> Mapping[ScopeState, frozenset[Cause]]:
    return {ScopeState(state): some for state, some in causes.items()}


STATES: Mapping[ScopeState, StateRule] = {
    ScopeState.ACTIVE: StateRule(
        "there are projects to visit or files to read",
        _next(draining=_WORK, finished=_WORK, paused=_SET, aborted=_ABORT),
    ),
    ScopeState.DRAINING: StateRule(
        "workers have claimed all remaining work",
        _next(active=_WORK | _NEW, finished=_WORK, paused=_SET, aborted=_ABORT),
    ),
    ScopeState.FINISHED: StateRule(
        "no work is left; an event can bring new work",
        _next(active=_NEW, paused=_NEW, aborted=_ABORT),
    ),
    ScopeState.PAUSED: StateRule(
        "its concurrency is 0",
        _next(active=_SET, draining=_SET, finished=_WORK, aborted=_ABORT),
        remedy="its concurrency is 0; continue it with `pypi-assets scope set {name} --concurrency N`",
    ),
    ScopeState.ABORTED: StateRule(
        "it is stopped until `scope resume`",
        _next(active=_RESUME, draining=_RESUME, paused=_RESUME),
        remedy="continue it with `pypi-assets scope resume {name}`",
    ),
}


def state_of(*, is_aborted: bool, is_paused: bool, is_completed: bool, left: int, free: int) -> ScopeState:
    """Return the state of a scope with `left` pending visits and reads, `free` of which no worker has claimed.

    `is_completed`: a run has completed the scope, and nothing was queued since.
    """
    if is_aborted:
        return ScopeState.ABORTED
    if is_completed and not left:
        return ScopeState.FINISHED
    if is_paused:
        return ScopeState.PAUSED
    return ScopeState.DRAINING if left and not free else ScopeState.ACTIVE
