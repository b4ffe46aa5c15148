"""The solution checker finds each kind of fault, and accepts the choices of installers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pypi_assets.devindex.history import History
from pypi_assets.resolve.questions import Semantics
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.resolve.graph_index import ENVIRONMENTS, Place, graph_index
from pypi_assets_tests.resolve.requirement_graphs import RequirementSet
from pypi_assets_tests.resolve.validity import ShownIndex, faults

LINUX = Place.named("3.12 linux")
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def shown(tmp_path: Path) -> ShownIndex:
    history = History(tmp_path / "index")
    wheels: list[tuple[str, str, dict[str, object]]] = [
        ("app", "1.0", {"requires_dist": ["lib>=1,<2", "extra-lib; extra == 'more'", "win; sys_platform == 'win32'"]}),
        ("lib", "1.0", {}),
        ("lib", "1.5", {}),
        ("lib", "1.6rc1", {}),
        ("lib", "2.0", {}),
        ("extra-lib", "1.0", {}),
        ("win", "1.0", {"tag": "py3-none-win_amd64"}),
        ("old", "1.0", {"requires_python": "<3.12"}),
        ("new", "1.0", {"requires_python": ">=3.13"}),
    ]
    for name, version, options in wheels:
        history.add(make_wheel(tmp_path, name, version, **options), at=AT)  # type: ignore[arg-type]
    history.yank("lib", "1.5", at=AT)
    return ShownIndex(history, history.state().last_serial or 0)


def wanted(*requirements: str, constraints: tuple[str, ...] = (), before: datetime | None = None) -> RequirementSet:
    return RequirementSet(requirements, 0, constraints, uploaded_before=before)


APP = {"app": "1.0", "lib": "1.0"}


@pytest.mark.parametrize(
    ("question", "pins"),
    [
        (wanted("app"), APP),
        (wanted("app[more]"), APP | {"extra-lib": "1.0"}),
        (wanted("app[unknown]"), APP),
        (wanted("app", "lib==1.5"), APP | {"lib": "1.5"}),
        (wanted("lib>=1.6rc1,<2"), {"lib": "1.6rc1"}),
        (wanted("lib>1.5,<2"), {"lib": "1.6rc1"}),
        (wanted("win; sys_platform == 'win32'"), {}),
    ],
)
def test_solution_has_no_faults(shown: ShownIndex, question: RequirementSet, pins: Mapping[str, str]) -> None:
    assert faults(shown, question, LINUX.target, Semantics.PIP, pins) == []


def test_faults_are_found(shown: ShownIndex, subtests: pytest.Subtests) -> None:
    cases = [
        (wanted("app"), {"app": "1.0"}, "lib is not pinned"),
        (wanted("app"), {}, "app is not pinned"),
        (wanted("app[more]"), APP, "extra-lib is not pinned"),
        (wanted("app"), APP | {"extra-lib": "1.0"}, "nothing requires extra-lib"),
        (wanted("app"), APP | {"lib": "2.0"}, "lib==2.0 does not meet lib<2,>=1"),
        (wanted("lib", constraints=("lib<1.5",)), {"lib": "2.0"}, "lib==2.0 does not meet lib<1.5"),
        (wanted("lib"), {"lib": "3.0"}, "lib==3.0 has no usable wheel"),
        (wanted("win"), {"win": "1.0"}, "win==1.0 has no usable wheel"),
        (wanted("old"), {"old": "1.0"}, "old==1.0 has no usable wheel"),
        (wanted("lib", before=AT), {"lib": "2.0"}, "lib==2.0 has no usable wheel"),
        (wanted("app"), APP | {"lib": "1.5"}, "lib==1.5 is yanked, and no requirement pins it"),
        (
            wanted("app"),
            APP | {"lib": "1.6rc1"},
            "lib==1.6rc1 is a pre-release, though there is a final release and none is asked for",
        ),
    ]
    for question, pins, fault in cases:
        with subtests.test(question=question, pins=pins):
            assert faults(shown, question, LINUX.target, Semantics.PIP, pins) == [fault]


def test_uv_uses_only_the_lower_bound_of_requires_python(shown: ShownIndex) -> None:
    assert faults(shown, wanted("old"), LINUX.target, Semantics.UV, {"old": "1.0"}) == []
    assert faults(shown, wanted("new"), LINUX.target, Semantics.UV, {"new": "1.0"}) == ["new==1.0 has no usable wheel"]


@pytest.mark.nightly
def test_choices_of_installers_are_valid(tmp_path: Path) -> None:
    solved, pins = 0, 0
    with graph_index(tmp_path, 30, seed=5) as index:
        for number, requirement_set in enumerate(index.draw(12, seed=5)):
            installer = Semantics.PIP if number % 3 == 0 else Semantics.UV
            names = ENVIRONMENTS[installer]
            place = Place.named(names[number % len(names)])
            chosen = index.pins_of(installer, requirement_set, place)
            assert index.faults_of(installer, requirement_set, place, chosen) == []
            solved += chosen is not None
            pins += len(chosen or ())
    assert 4 <= solved < 12
    assert pins > 3 * solved
