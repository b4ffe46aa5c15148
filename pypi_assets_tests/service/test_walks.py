"""Searches are bounded: how many there are at once, and how long one takes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.service.answering import MOST_WALKS, counted_chunks, counted_walk, time_limit
from pypi_assets.service.problems import ProblemError
from pypi_assets_tests.small_catalog import small_catalog


def chunks() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


def test_there_are_few_at_once_until_they_are_closed():
    walks = [counted_chunks(chunks()) for _ in range(MOST_WALKS + 1)]
    assert [next(walk) for walk in walks[:MOST_WALKS]] == [b"one"] * MOST_WALKS
    with pytest.raises(ProblemError) as raised:
        next(walks[-1])
    assert (raised.value.problem.status, raised.value.headers) == (503, (("Retry-After", "1"),))
    with pytest.raises(ProblemError), counted_walk():
        pass
    walks[0].close()
    assert list(counted_chunks(chunks())) == [b"one", b"two"]
    with counted_walk(), pytest.raises(ProblemError):
        next(counted_chunks(chunks()))
    walks[1].close()


def test_one_that_never_began_or_failed_does_not_count():
    unused = [counted_chunks(chunks()) for _ in range(MOST_WALKS + 1)]
    for _ in range(MOST_WALKS + 1):
        with pytest.raises(KeyError), counted_walk():
            raise KeyError
    assert [list(one) for one in unused] == [[b"one", b"two"]] * (MOST_WALKS + 1)


def test_a_search_that_takes_too_long_ends(tmp_path: Path):
    small = small_catalog(tmp_path)
    small.add(1, "a", "1", "a-1.zip", requires_dist=("b",))
    timed = CatalogSnapshot(small.catalog, 1, limit=time_limit(60))
    assert (list(timed.requiring("b", "0")), timed.versions("a")) == (["a"], [("1", False)])
    assert [one and one.version for one in timed.newest(["a", "b"])] == ["1", None]
    late = CatalogSnapshot(small.catalog, 1, limit=time_limit(-1))
    for question in (
        late.check,
        lambda: late.requiring("a"),
        lambda: list(late.newest(["a"])),
        lambda: late.versions("a"),
    ):
        with pytest.raises(ProblemError) as raised:
            question()
        assert (raised.value.problem.status, raised.value.problem.type) == (503, "/docs#too-slow")
    small.catalog.close()
