"""The states of a scope: what each means, which one follows which, and what changes it.

Commands, Dagster, `status` and docs/scopes.md use this one declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ScopeState(StrEnum):
    """How a scope stands; `STATES` has what each state means."""

    ACTIVE = "active"
    DRAINING = "draining"
    FINISHED = "finished"
    PAUSED = "paused"
    ABORTED = "aborted"


class Cause(StrEnum):
    """What changes the state of a scope: its workers, who claim, finish or lose work; new work, by events, rules or
    roots; or one of three commands."""

    WORKERS = "workers"
    NEW_WORK = "new work"
    SET = "scope set"
    ABORT = "scope abort"
    RESUME = "scope resume"


@dataclass(frozen=True, slots=True)
class StateRule:
    """What a state means, and by what which states follow. `remedy`: what lets a scope go on of which no worker takes
    work, "" if workers do."""

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
        remedy="its concurrency is 0: `pypi-assets scope set {name} --concurrency N` lets it go on",
    ),
    ScopeState.ABORTED: StateRule(
        "it is stopped until `scope resume`",
        _next(active=_RESUME, draining=_RESUME, paused=_RESUME),
        remedy="`pypi-assets scope resume {name}` lets it go on",
    ),
}


def state_of(*, is_aborted: bool, is_paused: bool, is_completed: bool, left: int, free: int) -> ScopeState:
    """Return the state of a scope with `left` visits and reads, of which no worker has claimed `free`.

    `is_completed`: a run has ended it, and nothing was queued since.
    """
    if is_aborted:
        return ScopeState.ABORTED
    if is_completed and not left:
        return ScopeState.FINISHED
    if is_paused:
        return ScopeState.PAUSED
    return ScopeState.DRAINING if left and not free else ScopeState.ACTIVE
