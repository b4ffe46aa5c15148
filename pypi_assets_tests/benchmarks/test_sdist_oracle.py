"""When requirements are the same, and which figures of the pairs are good enough."""

import pytest

from benchmarks.sdist_oracle import Pair, canonical, is_good
from pypi_assets.distributions.record import DistributionKind, DistributionRecord, ModulesGrade


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Demo.X[A]>=1", "demo-x[a] >= 1", True),
        (
            "a; (os_name == 'x' and python_version < '3') and extra == 'e'",
            "a; os_name == 'x' and python_version < '3' and extra == 'e'",
            True,
        ),
        ("a; (os_name == 'x' or os_name == 'y') and extra == 'e'", "a; os_name == 'x' or os_name == 'y'", False),
        ("a>=1", "a>=2", False),
        ("not a requirement !", "not a requirement !", True),
    ],
)
def test_requirements_are_compared_by_what_they_mean(one, other, is_same):
    assert (canonical(one) == canonical(other)) is is_same


def pair(modules: tuple[str, ...] | None, built: tuple[str, ...], grade: ModulesGrade = ModulesGrade.DERIVED) -> Pair:
    sdist, wheel = (
        DistributionRecord("demo", kind, "demo", "1", modules=names, modules_grade=grade, requires_dist=())
        for kind, names in ((DistributionKind.SDIST, modules), (DistributionKind.WHEEL, built))
    )
    return Pair("demo 1", "flat", "chosen", sdist, wheel)


SAME = pair(("a",), ("a",))
HALF = pair(("a", "b"), ("a",))
UNKNOWN = pair(None, ("a",))
EXACT = pair(("a", "b"), ("a",), ModulesGrade.EXACT)


@pytest.mark.parametrize(
    ("pairs", "differing", "expected"),
    [
        ([SAME] * 100, 0, True),
        ([SAME] * 100, 1, True),
        ([SAME] * 100, 2, False),
        ([*[SAME] * 98, HALF, HALF], 0, True),
        ([*[SAME] * 96, *[HALF] * 4], 0, False),
        ([*[SAME] * 99, UNKNOWN], 0, True),
        ([*[SAME] * 98, UNKNOWN, UNKNOWN], 0, False),
        ([*[SAME] * 99, EXACT], 0, False),
    ],
)
def test_the_goals(pairs, differing, expected):
    assert is_good(pairs, differing) is expected
