"""An index without serials: rounds poll it, and answers come from memory."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.index.errors import (
    LeadsElsewhereError,
    NotOnIndexError,
    PackageIndexError,
    RefusedError,
    TransientError,
)
from pypi_assets.index.models import IndexFile, NotModified, ProjectPage
from pypi_assets.index.observing.observed_index import ObservedIndex
from pypi_assets.index.observing.round_state import PollingPolicy
from pypi_assets.index.observing.shown_pages import ShownFile, ShownList, ShownPage, ShownProject, Validators
from pypi_assets_tests.naming import mentions, naming

URL = "https://pages.example.org/simple/"
POLICY = PollingPolicy(requests=10, shortest_s=100.0, longest_s=800.0, confirm_after_s=50.0)


def shown(project: str, *names: str) -> ShownPage:
    files = (IndexFile(name, f"{URL}{name}", None, None, None, None, False, None, False, None) for name in names)
    return ShownPage(project, tuple(map(ShownFile, files)))


@dataclass
class Source:
    """Pages by project, or errors to raise. `looks` lists the polled projects in order."""

    pages: dict[str, ShownPage | PackageIndexError] = field(default_factory=dict)
    unlisted: set[str] = field(default_factory=set)
    listing: PackageIndexError | None = None
    looks: list[str] = field(default_factory=list)
    lists: int = 0

    def list_of_projects(self, known: Validators) -> ShownList | None:
        self.lists += 1
        if self.listing is not None:
            raise self.listing
        return ShownList([ShownProject(name) for name in self.pages if name not in self.unlisted])

    def page(self, project: str, url: str | None, known: Validators) -> ShownPage | None:
        self.looks.append(project)
        page = self.pages.get(project, NotOnIndexError("HTTP 404", URL))
        if isinstance(page, PackageIndexError):
            raise page
        return page


class Client:
    index_url = URL
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Time:
    now: float = 1_000.0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def source() -> Source:
    return Source({"demo": shown("demo", "demo-1.0.tar.gz"), "other": shown("other", "other-1.0.tar.gz")})


@pytest.fixture
def make(catalog: Catalog, source: Source, time: Time) -> Callable[..., ObservedIndex]:
    memory = Observations(replace(catalog, clock=lambda: time.now), URL)

    def made(projects: frozenset[str] = frozenset(), **options: object) -> ObservedIndex:
        return ObservedIndex(Client(), source, memory, POLICY, projects, **options)  # type: ignore[arg-type]

    return made


def nothing(*_: int) -> None: ...


def page_of(index: ObservedIndex, project: str) -> ProjectPage:
    page = index.project_page(project)
    assert not isinstance(page, NotModified)
    return page


def test_round_produces_serials_a_list_events_and_pages(make: Callable[..., ObservedIndex], source: Source) -> None:
    index = make()
    assert index.last_serial() == 0
    report = index.observe(nothing)
    assert (report.looked_at, report.failed, report.events, report.waiting, report.messages) == (2, 0, 4, 0, ())
    assert index.last_serial() == 4
    assert [event.action for event in index.changelog_page(0)] == [
        "create",
        "add source file demo-1.0.tar.gz",
        "create",
        "add source file other-1.0.tar.gz",
    ]
    assert [len(page) for page in index.changelog(1, 4)] == [3]
    with index.iter_listing() as (serial, projects):
        assert (serial, [(project.name, project.last_serial) for project in projects]) == (
            4,
            [("demo", 2), ("other", 4)],
        )
    assert page_of(index, "Demo").last_serial == 2
    assert [file.filename for file in page_of(index, "other").files] == ["other-1.0.tar.gz"]
    assert source.looks == ["demo", "other"]  # pages are answered from memory


def test_round_polls_due_projects_up_to_its_budget(
    make: Callable[..., ObservedIndex], source: Source, time: Time
) -> None:
    source.pages = {f"p{number:02}": shown(f"p{number:02}") for number in range(25)}
    index = make()
    assert [index.observe(nothing).looked_at for _ in range(4)] == [10, 10, 5, 0]
    assert len(set(source.looks)) == 25
    time.now += POLICY.longest_s
    assert index.observe(nothing).waiting == 15
    assert index.observe(nothing, everything=True).looked_at == 15  # the others were polled at the same time


def test_progress_counts_polled_projects(make: Callable[..., ObservedIndex], source: Source, time: Time) -> None:
    source.pages = {f"p{number:02}": shown(f"p{number:02}") for number in range(25)}
    index = make()
    reported: list[tuple[int, int]] = []
    for everything in (False, True, False):
        index.observe(lambda done, total: reported.append((done, total)), everything=everything)
    assert reported[-1][0] == 15
    assert [total for _, total in reported] == [10, *[15] * (len(reported) - 1)]
    time.now += POLICY.longest_s
    source.pages = {f"p{number:02}": shown(f"p{number:02}") for number in range(3)}
    reported.clear()
    make({"p00", "p01", "p02"}).observe(lambda done, total: reported.append((done, total)))
    assert reported == [(3, 3)]


@pytest.mark.nightly
def test_changing_projects_are_polled_often(make: Callable[..., ObservedIndex], source: Source, time: Time) -> None:
    index = make()
    for number in range(40):
        source.pages["demo"] = shown("demo", *(f"demo-{one}.tar.gz" for one in range(number + 1)))
        index.observe(nothing)
        time.now += POLICY.shortest_s
    looks = {name: source.looks.count(name) for name in ("demo", "other")}
    assert looks["demo"] == 40
    assert 40 * POLICY.shortest_s / POLICY.longest_s <= looks["other"] <= 12


def test_round_with_named_projects_needs_no_list(make: Callable[..., ObservedIndex], source: Source) -> None:
    index = make(frozenset({"demo", "missing"}))
    index.observe(nothing)
    assert source.lists == 0
    assert set(source.looks) == {"demo", "missing"}
    with index.iter_listing() as (_, projects):
        assert [project.name for project in projects] == ["demo"]
    with pytest.raises(NotOnIndexError):
        index.project_page("missing")


def test_index_without_list_needs_named_projects(make: Callable[..., ObservedIndex], source: Source) -> None:
    source.listing = NotOnIndexError("HTTP 404", URL)
    with pytest.raises(RefusedError, match=naming("PYPI_ASSETS_PROJECTS")):
        make().observe(nothing)


def test_unseen_project_is_polled_when_its_page_is_requested(
    make: Callable[..., ObservedIndex], source: Source
) -> None:
    index = make()
    assert page_of(index, "demo").last_serial == 2
    assert source.lists == 0
    source.pages["other"] = TransientError("HTTP 503", URL)
    with pytest.raises(TransientError):
        index.project_page("other")
    with pytest.raises(NotOnIndexError):
        index.project_page("missing")
    source.pages["other"] = shown("other")
    assert page_of(index, "other").last_serial == 3
    index.observe(nothing)
    assert source.looks == ["demo", "other", "missing", "other"]


def test_failed_project_keeps_its_known_page(make: Callable[..., ObservedIndex], source: Source, time: Time) -> None:
    index = make()
    index.observe(nothing)
    source.pages["demo"] = RefusedError("a page with a form", URL)
    time.now += POLICY.longest_s
    report = index.observe(nothing)
    assert (report.looked_at, report.failed, report.events) == (2, 1, 0)
    [message] = report.messages
    assert mentions(message, 1, 2, "demo", "a page with a form")
    assert len(page_of(index, "demo").files) == 1


def test_failed_index_ends_the_round_with_its_error(make: Callable[..., ObservedIndex], source: Source) -> None:
    source.pages = {f"p{number}": TransientError("HTTP 503", f"{URL}{number}/") for number in range(30)}
    with pytest.raises(TransientError, match=naming(503)):
        make().observe(nothing, everything=True)
    source.listing = TransientError("HTTP 502", URL)
    with pytest.raises(TransientError, match=naming(502)):
        make().observe(nothing, everything=True)


def test_project_missing_from_the_list_is_polled_soon(
    make: Callable[..., ObservedIndex], source: Source, time: Time
) -> None:
    index = make()
    for _ in range(5):
        index.observe(nothing, everything=True)
        time.now += POLICY.shortest_s
    del source.pages["demo"]
    source.looks.clear()
    index.observe(nothing)
    assert source.looks[:1] == ["demo"]
    time.now += POLICY.confirm_after_s
    assert index.observe(nothing).events == 1
    with pytest.raises(NotOnIndexError):
        index.project_page("demo")


def test_page_redirected_to_another_host_is_removed_if_unlisted(
    make: Callable[..., ObservedIndex], source: Source, time: Time
) -> None:
    index = make()
    index.observe(nothing, everything=True)
    away = LeadsElsewhereError("no such host is allowed", URL, "https://other.example.org/simple/demo/")
    source.pages["demo"] = away
    time.now += POLICY.longest_s
    report = index.observe(nothing, everything=True)
    assert (report.failed, report.events) == (1, 0)
    [message] = report.messages
    assert mentions(message, away.target)
    assert "no such host is allowed" not in message
    source.unlisted.add("demo")
    for confirmed in (0, 1):
        source.lists = 0
        time.now += POLICY.confirm_after_s
        report = index.observe(nothing, everything=True)
        assert (report.failed, report.events) == (0, confirmed)
        assert source.lists == 2  # once per round, and once more for the page
    with pytest.raises(NotOnIndexError):
        index.project_page("demo")
    source.pages["never-there"] = away
    source.unlisted.add("never-there")
    with pytest.raises(NotOnIndexError):
        index.project_page("never-there")


def test_page_redirected_to_another_host_stays_if_the_list_fails(
    make: Callable[..., ObservedIndex], source: Source, time: Time
) -> None:
    index = make(projects=frozenset({"demo"}))
    index.observe(nothing)
    source.pages["demo"] = LeadsElsewhereError("no", URL, "https://other.example.org/")
    for listing, error in (
        (TransientError("HTTP 502", URL), TransientError),
        (NotOnIndexError("HTTP 404", URL), RefusedError),
    ):
        source.listing = listing
        for _ in range(3):
            time.now += POLICY.longest_s
            with pytest.raises(error):
                index.observe(nothing, everything=True)
        assert len(page_of(index, "demo").files) == 1


def test_round_starts_no_poll_after_its_time_limit(make: Callable[..., ObservedIndex], source: Source) -> None:
    index = make(round_s=0.0)
    assert index.observe(nothing).looked_at == 0
    assert source.lists == 1


def test_index_serials_are_reported_once(make: Callable[..., ObservedIndex], source: Source) -> None:
    index = make()
    source.pages["demo"] = replace(shown("demo"), serial=7)
    assert len(index.observe(nothing, everything=True).messages) == 1
    assert index.observe(nothing, everything=True).messages == ()


def test_closing_closes_the_client(make: Callable[..., ObservedIndex]) -> None:
    with make() as index:
        client = index._client
    assert client.is_closed  # type: ignore[attr-defined]
