"""The RateLimit headers of an index: what each form asks for, and that hostile values do no harm."""

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.coordination.rates import SharedRate
from pypi_assets.catalog.database import Catalog
from pypi_assets.index.rate import Rates
from pypi_assets.index.rate_headers import LONGEST_RESET_S, RateAllowance, allowances, pause_of
from pypi_assets.index.transport import LONGEST_PAUSE_S, Retries
from pypi_assets_tests.examples import examples
from pypi_assets_tests.index.clients import XML, client_of, events
from pypi_assets_tests.index.loopback import Answer, answering

NAMES = ("RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Limit")


def test_each_form_of_the_headers_is_read() -> None:
    hour = {"RateLimit-Policy": '"hour";q=3600;w=3600'}
    for headers, found in (
        ({}, []),
        ({"RateLimit": '"hour";r=12;t=600', **hour}, [RateAllowance(12, 600, 3600)]),
        ({"RateLimit": '"hour"; r=12; t=600'}, [RateAllowance(12, 600)]),
        ({"RateLimit": '"burst";r=9;t=1, "hour";r=3;t=50', **hour}, [RateAllowance(9, 1), RateAllowance(3, 50, 3600)]),
        ({"RateLimit": "limit=100, remaining=50, reset=30"}, [RateAllowance(50, 30, 100)]),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "8"}, [RateAllowance(0, 8)]),
        (
            {"RateLimit-Remaining": "0", "RateLimit-Reset": "8", "RateLimit-Limit": "9, 9;w=60"},
            [RateAllowance(0, 8, 9)],
        ),
        ({"RateLimit": '"hour";r=1;t=2', "RateLimit-Remaining": "0", "RateLimit-Reset": "8"}, [RateAllowance(1, 2)]),
        ({"RateLimit-Remaining": "0"}, []),
        ({"RateLimit-Remaining": "-1", "RateLimit-Reset": "8"}, []),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "1764324000"}, []),  # the time of day
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "9" * 5000}, []),
        ({"RateLimit": '"hour";r=1e3;t=\u0663'}, []),
        ({"RateLimit": ",;=,;;==" * 500}, []),
    ):
        assert allowances(headers) == found, headers


def test_calls_pause_only_once_the_quota_is_scarce() -> None:
    for allowance, pause_s in (
        (RateAllowance(0, 30, 3600), 30.0),
        (RateAllowance(1, 30, 3600), 15.0),
        (RateAllowance(359, 3600, 3600), 10.0),
        (RateAllowance(360, 3600, 3600), 0.0),
        (RateAllowance(9, 60), 6.0),
        (RateAllowance(10, 60), 0.0),
        (RateAllowance(1, 60, 5), 0.0),
    ):
        assert allowance.pause_s == pause_s, allowance
    assert pause_of({"RateLimit": '"burst";r=0;t=1, "hour";r=2;t=60'}) == 20.0


_TEXTS = st.one_of(
    st.text(max_size=60),
    st.integers().map(str),
    st.from_regex(r'"?[a-z]{0,3}"?;r=-?[0-9e.]{0,20};t=-?[0-9e.]{0,20}', fullmatch=True),
)


@settings(max_examples=examples(300), deadline=None)
@given(headers=st.dictionaries(st.sampled_from(NAMES), _TEXTS))
@example(headers={"RateLimit": '"a";r=nan;t=inf'})
def test_any_headers_ask_for_a_finite_pause_of_at_most_a_day(headers: dict[str, str]) -> None:
    pause_s = pause_of(headers)
    assert math.isfinite(pause_s)
    assert 0 <= pause_s <= LONGEST_RESET_S


class Holds:
    """A shared rate that records its pauses."""

    def __init__(self) -> None:
        self.held: list[float] = []

    def wait(self) -> None:
        """Return immediately."""

    def hold(self, seconds: float) -> None:
        self.held.append(seconds)


def _last_serial(serial: int, headers: dict[str, str]) -> Answer:
    answer = events(serial)
    return Answer(200, answer.body, {**XML, **headers})


def test_changelog_answers_pause_the_rate_of_changelog_calls() -> None:
    pages, changelog = Holds(), Holds()
    answers = [
        _last_serial(1, {"RateLimit": '"hour";r=3000;t=3000', "RateLimit-Policy": '"hour";q=3600;w=3600'}),
        _last_serial(2, {"RateLimit": '"hour";r=1;t=40', "RateLimit-Policy": '"hour";q=3600;w=3600'}),
        _last_serial(3, {"RateLimit-Remaining": "0", "RateLimit-Reset": "3000"}),
        _last_serial(4, {"RateLimit-Remaining": "0", "RateLimit-Reset": "-3000"}),
        _last_serial(5, {"RateLimit": "?" * 9_000}),
    ]
    with answering(*answers) as loopback, client_of(loopback, rates=Rates(pages, changelog)) as client:
        assert [client.last_serial() for _ in answers] == [1, 2, 3, 4, 5]
    assert (pages.held, changelog.held) == ([], [20.0, LONGEST_PAUSE_S])


def test_429_without_retry_after_pauses_until_the_reset() -> None:
    pages = Holds()
    busy = Answer(429, headers={"RateLimit": '"hour";r=0;t=9'})
    with (
        answering(busy, _last_serial(7, {})) as loopback,
        client_of(loopback, rates=Rates(pages, Holds()), retries=Retries(2)) as client,
    ):
        assert client.last_serial() == 7
    assert pages.held == [9.0]


def test_scarce_quota_pauses_the_workers_of_a_catalog(catalog: Catalog) -> None:
    slept: list[float] = []
    rates = [SharedRate(catalog, "changelog", 1000, sleep=slept.append) for _ in range(2)]
    answer = _last_serial(7, {"RateLimit-Remaining": "0", "RateLimit-Reset": "90"})
    with answering(answer) as loopback, client_of(loopback, rates=Rates(Holds(), rates[0])) as client:
        assert client.last_serial() == 7
    rates[1].wait()
    assert 80 < slept[-1] <= 91
