from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.resolve.blame import OutcomeHistory, ResolutionOutcome, all_changes, blame
from pypi_assets.resolve.questions import Semantics
from pypi_assets.resolve.solver_data import ResolutionLimitError
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.resolve.made_index import MadeIndex, question

Event = tuple[str, str, object]
"""A project, a version, and the event: an upload with these requirements, `yank`, `unyank` or `gone`."""


@dataclass
class MadeHistory:
    """An index in which event N happens at serial N."""

    events: Sequence[Event]
    indexes: list[int] = field(default_factory=list)

    def index_at(self, serial: int) -> MadeIndex:
        self.indexes.append(serial)
        projects: dict[str, dict[str, dict[str, object]]] = {}
        for project, version, what in self.events[:serial]:
            releases = projects.setdefault(project, {})
            if isinstance(what, list):
                releases[version] = {"requires_dist": what}
            elif what == "gone":
                releases.pop(version, None)
            elif version in releases:
                releases[version] = {**releases[version], "yanked": what == "yank"}
        return MadeIndex(projects)

    def changed_serials(self, project: str, after: int, through: int) -> Sequence[int]:
        return [serial for serial in range(after + 1, through + 1) if self.events[serial - 1][0] == project]


STORY: list[Event] = [
    ("app", "1", ["lib>=1"]),
    ("lib", "1", []),
    ("other", "1", []),
    ("lib", "2", ["six>=2"]),
    ("other", "2", []),
    ("six", "1", []),
    ("lib", "1", "gone"),
    ("other", "3", []),
]


def outcomes(events: Sequence[Event], *requirements: str, **options: object) -> OutcomeHistory:
    return OutcomeHistory(MadeHistory(events), question(*(requirements or ("app",)), **options))


def test_blame_names_the_breaking_change():
    blamed = blame(outcomes(STORY), 2, 8)
    assert blamed.good.pins == {"app": "1", "lib": "1"}
    assert blamed.bad.pins is None
    assert blamed.change is not None
    assert (blamed.change.serial, blamed.change.projects) == (7, ("lib",))
    assert blamed.change.pins == {"app": ("1", None), "lib": ("1", None)}
    assert mentions(str(blamed.change.after.failure), "six", ">=2")
    assert blamed.change.before.pins == {"app": "1", "lib": "1"}


def test_blame_names_the_change_that_removed_the_solution():
    events: list[Event] = [*STORY[:2], ("lib", "3", []), *STORY[3:6], ("lib", "1", "gone"), ("lib", "3", "gone")]
    assert blame(outcomes(events), 2, 8).good.pins == {"app": "1", "lib": "1"}
    blamed = blame(outcomes(events), 2, 8, ResolutionOutcome.ends_like)
    assert blamed.change is not None
    assert blamed.change.serial == 8
    assert blamed.change.before.pins == {"app": "1", "lib": "3"}
    assert blame(outcomes(events), 2, 7, ResolutionOutcome.ends_like).change is None


def test_resolution_over_its_limits_ends_the_search():
    tried = OutcomeHistory(MadeHistory(STORY), question("app"), most_steps=1)
    with pytest.raises(ResolutionLimitError, match=naming(1)):
        blame(tried, 2, 8)


def test_equal_outcomes_have_no_change():
    events = [*STORY[:3], ("lib", "2", []), ("lib", "2", "yank")]
    blamed = blame(outcomes(events), 3, 5)
    assert blamed.change is None
    assert (blamed.resolutions, blamed.candidates) == (2, 2)
    changes = list(all_changes(outcomes(events), 3, 5))
    assert [(change.serial, change.pins) for change in changes] == [(4, {"lib": ("1", "2")}), (5, {"lib": ("2", "1")})]


def test_unrelated_changes_need_no_resolution():
    events = [*STORY[:2], *[("other", str(number), []) for number in range(1_000)], ("lib", "0", [])]
    tried = outcomes(events)
    assert list(all_changes(tried, 2, len(events))) == []
    assert tried.count == 2


@pytest.mark.parametrize("changes", [10, 1_000, 10_000])
def test_bisection_takes_few_resolutions(changes):
    events: list[Event] = [("app", "1", ["lib"]), ("lib", "5", [])]
    events += [("lib", "1", "yank" if number % 2 else "unyank") for number in range(changes // 3)]
    events += [("lib", "6", [])]
    events += [("lib", "1", []) for _ in range(changes - changes // 3)]
    tried = outcomes(events)
    blamed = blame(tried, 2, len(events))
    assert blamed.change is not None
    assert blamed.change.serial == 3 + changes // 3
    assert blamed.candidates == len(events) - 2
    assert tried.count <= 3 + changes.bit_length()


WHAT = st.one_of(
    st.lists(st.sampled_from(["b", "b>1", "c", "c<2", "c==3"]), max_size=2), st.sampled_from(["yank", "unyank", "gone"])
)
EVENTS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("123"), WHAT), min_size=2, max_size=25)


@settings(max_examples=examples(150), deadline=None)
@given(events=EVENTS, semantics=st.sampled_from(Semantics))
def test_changes_match_resolutions_at_each_serial(events, semantics):
    def fresh() -> OutcomeHistory:
        return outcomes(events, "a", "b", semantics=semantics)

    everything = fresh()
    pins = [everything.at(serial).pins for serial in range(len(events) + 1)]
    expected = [serial for serial in range(1, len(events) + 1) if pins[serial] != pins[serial - 1]]
    assert [change.serial for change in all_changes(fresh(), 0, len(events))] == expected
    blamed = blame(fresh(), 0, len(events))
    if pins[0] == pins[-1]:
        assert blamed.change is None
    else:
        assert blamed.change is not None
        assert blamed.change.serial in expected
        assert blamed.change.before.pins == pins[blamed.change.serial - 1]
        assert blamed.change.after.pins == pins[blamed.change.serial]
        assert blamed.change.projects == (events[blamed.change.serial - 1][0],)
    ended = blame(fresh(), 0, len(events), ResolutionOutcome.ends_like)
    assert (ended.change is None) == (pins[-1] is None)
    if ended.change is not None:
        assert pins[ended.change.serial - 1] is None
        assert pins[ended.change.serial] is not None
