"""Releases and their requirements as resolvers query them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.reports.moments import InexactSerialError
from pypi_assets.lookup.latest import open_latest
from pypi_assets.resolve.blame import CatalogHistory, OutcomeHistory, all_changes, blame
from pypi_assets.resolve.candidates import Row
from pypi_assets.resolve.questions import ReleaseRequirements, Wanted
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import resolve
from pypi_assets.resolve.solver_data import SolverProvider
from pypi_assets_tests.lookup.conftest import publisher  # noqa: F401 - a fixture
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.resolve.made_index import LINUX, MadeIndex, question
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

COLUMNS = ("version", "filename", "kind", "sha256", "uploaded_at", "requires_python", "yanked", "requires_dist")


def files(index: ReleaseIndex, project: str) -> list[Row]:
    releases = index.releases(project)
    files = [{name: file[name] for name in COLUMNS} for release in releases.names for file in releases.files(release)]
    return sorted(files, key=lambda file: file["filename"])


def test_published_and_past_indexes_have_the_same_files(publisher: Publisher):  # noqa: F811
    publisher.publish()
    with open_latest("depgraph", publisher.storage) as depgraph:
        published = ReleaseIndex(depgraph.serial, depgraph.releases)
        past = past_index(publisher.small.catalog, published.serial)
        for project in ("demo", "demo-b", "other", "nothing"):
            assert files(past, project) == files(published, project)
        assert files(published, "other")
        assert not files(past_index(publisher.small.catalog, 100), "other")
        questions = question("other")
        assert resolve(published, questions).pins == resolve(past, questions).pins == {"other": "1"}
        assert published.absence("nothing") is None
        assert past.absence("other") is None


def test_cache_is_cleared_when_large(monkeypatch):
    monkeypatch.setattr("pypi_assets.resolve.releases._REMEMBERED_RELEASES", 7)
    index = MadeIndex({name: {"1": [], "2": []} for name in "abc"})
    questions = [question(name) for name in "abc"]
    for asked in (*questions, questions[2], questions[1], questions[0]):
        resolve(index, asked)
    assert index.reads == ["a", "b", "c", "a"]


COMPARISONS = st.sampled_from(
    [
        *("extra == 'a'", "'A' == extra", "extra == 'b_C'", "extra != 'a'", "extra in 'a b-c'", "os_name == 'extra'"),
        *("python_version > '3'", "python_version < '3'", "'b-c' != extra"),
    ]
)
MARKERS = st.recursive(
    COMPARISONS,
    lambda some: st.tuples(some, st.sampled_from(["and", "or"]), some).map(lambda one: f"({' '.join(one)})"),
)


def holds(wanted: Wanted, extra: str) -> bool:
    return wanted.marker is None or LINUX.with_extra(extra).holds(str(wanted.marker)) is not False


@given(
    markers=st.lists(MARKERS, max_size=6), extras=st.lists(st.sampled_from(["a", "b-c", "d"]), max_size=3, unique=True)
)
def test_requirements_are_filtered_by_markers(markers, extras):
    texts = ["plain", "not a requirement", *(f"p{place}; {marker}" for place, marker in enumerate(markers))]
    requirements = ReleaseRequirements(texts, holds)
    every = requirements.held_with(["a", "b-c", "d", "e"])
    [error] = requirements.errors
    assert mentions(str(error), "not a requirement")
    parsed = {wanted.text: wanted for wanted in [*every, *requirements.held]}
    given = [parsed[text] for text in texts if text in parsed]
    assert list(requirements.held) == [wanted for wanted in given if holds(wanted, "")]
    assert requirements.held_with(extras) == [
        wanted for wanted in given if any(holds(wanted, each) for each in extras or [""])
    ]
    for extra in ("a", "b-c", "d"):
        assert requirements.added(extra) == [
            wanted for wanted in given if holds(wanted, extra) and not holds(wanted, "")
        ]


def test_thousands_of_extras_are_fast():
    texts = [f"p{number}; extra == 'e{number}'" for number in range(2_000)]
    began = time.process_time()
    requirements = ReleaseRequirements(texts, holds)
    assert all(
        [wanted.project for wanted in requirements.added(f"e{number}")] == [f"p{number}"] for number in range(2_000)
    )
    assert time.process_time() - began < 10


@pytest.fixture
def small(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallCatalog]:
    monkeypatch.setattr("pypi_assets.catalog.reports.moments.has_baseline", lambda _: True)
    small = small_catalog(tmp_path, database_url)
    small.add(2, "app", "1", "app-1-py3-none-any.whl", requires_dist=("Lib>=1",))
    small.add(4, "Lib", "1", "lib-1-py3-none-any.whl")
    small.add(6, "other", "1", "other-1-py3-none-any.whl")
    small.add(8, "Lib", "2", "lib-2-py3-none-any.whl", requires_dist=("six>=2",))
    small.yank(10, "lib-2-py3-none-any.whl")
    small.complete(12)
    yield small
    small.catalog.close()


def test_blame_finds_changes_in_the_catalog(small: SmallCatalog):
    history = CatalogHistory(small.catalog)
    blamed = blame(OutcomeHistory(history, question("app")), 4, 9)
    assert blamed.change is None  # lib 2 is not installable, so lib 1 is still used
    blamed = blame(OutcomeHistory(history, question("app", "lib>1")), 4, 12)
    assert blamed.change is None
    blamed = blame(OutcomeHistory(history, question("app")), 0, 4)
    assert blamed.change is not None
    assert (blamed.change.serial, blamed.change.projects) == (4, ("lib",))
    [(project, entry)] = history.entries(blamed.change)
    assert (project, entry.serial, entry.live) == ("Lib", 4, ("lib-1-py3-none-any.whl",))
    assert list(all_changes(OutcomeHistory(history, question("six")), 0, 12)) == []
    assert [change.serial for change in all_changes(OutcomeHistory(history, question("other")), 0, 12)] == [6]


def test_serial_without_answer_is_rejected(small: SmallCatalog):
    with pytest.raises(InexactSerialError, match=naming(99, 0, 12)):
        blame(OutcomeHistory(CatalogHistory(small.catalog), question("app")), 4, 99)


def test_extra_requires_its_project_and_its_additions():
    projects = {"app": {"1": ["a", "b; extra == 'x'", "c<2; extra == 'x'", "c; extra == 'x'"]}}
    provider = SolverProvider(MadeIndex(projects), question("app"), {})
    assert set(provider.known("app", 0).sets) == {"a"}
    assert set(provider.known("app[x]", 0).sets) == {"app", "b", "c"}
    assert [wanted.text for wanted in provider.known("app[x]", 0).wanted["c"]] == [
        "c<2; extra == 'x'",
        "c; extra == 'x'",
    ]
