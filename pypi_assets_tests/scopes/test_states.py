"""The state table has each transition that commands, workers and new work can cause, and no other."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from pypi_assets.scopes.states import STATES, Cause, ScopeState, state_of

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Facts:
    """The facts that determine the state of a scope."""

    is_aborted: bool
    is_paused: bool
    is_completed: bool
    left: int
    free: int

    @property
    def state(self) -> ScopeState:
        return state_of(**vars(self))

    @property
    def is_possible(self) -> bool:
        return self.free <= self.left and not (self.is_completed and self.left)


_F = (False, True)
POSSIBLE = [facts for values in product(_F, _F, _F, (0, 1), (0, 1)) if (facts := Facts(*values)).is_possible]
WORKED = [(False, 0, 0), (False, 1, 0), (False, 1, 1), (True, 0, 0)]
"""What workers lead to: whether the scope is completed, what is left, and what of that no worker has claimed."""


def after(facts: Facts, cause: Cause) -> list[Facts]:
    """Return the possible facts after a cause."""
    match cause:
        case Cause.WORKERS:  # a worker active when a scope is paused finishes its claims
            return [replace(facts, is_completed=done, left=left, free=free) for done, left, free in WORKED]
        case Cause.NEW_WORK:
            return [replace(facts, is_completed=False, left=1, free=1)]
        case Cause.SET:
            return [replace(facts, is_paused=not facts.is_paused)]
        case Cause.ABORT:
            return [replace(facts, is_aborted=True)]
        case Cause.RESUME:
            return [replace(facts, is_aborted=False, is_completed=False)]


def is_applicable(facts: Facts, cause: Cause) -> bool:
    if cause is Cause.WORKERS:  # workers work on the remaining items
        return bool(facts.left) or not facts.is_completed
    return cause is not Cause.RESUME or facts.is_aborted


def test_state_table_has_exactly_the_possible_transitions() -> None:
    found: dict[ScopeState, dict[ScopeState, set[Cause]]] = {state: {} for state in ScopeState}
    for facts in POSSIBLE:
        for cause in Cause:
            for changed in after(facts, cause) if is_applicable(facts, cause) else ():
                if changed.is_possible and changed.state is not facts.state:
                    found[facts.state].setdefault(changed.state, set()).add(cause)
    assert found == {
        state: {one: set(causes) for one, causes in rule.following.items()} for state, rule in STATES.items()
    }


def test_state_without_claimable_work_has_a_remedy() -> None:
    assert {state for state, rule in STATES.items() if rule.remedy} == {ScopeState.PAUSED, ScopeState.ABORTED}


def test_docs_contain_the_state_table() -> None:
    text = (ROOT / "docs" / "scopes.md").read_text()
    rows = [
        f"| `{state}` | {rule.meaning} | "
        + ", ".join(f"`{one}` ({', '.join(sorted(causes))})" for one, causes in rule.following.items())
        + " |"
        for state, rule in STATES.items()
    ]
    assert [row for row in rows if row not in text] == []
