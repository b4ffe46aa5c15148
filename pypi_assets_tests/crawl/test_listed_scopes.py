"""Scopes that are followed by the list of projects alone have true answers at the serial of each list.

Their members can differ from those of the changelog, since requirements and removals between two lists have no order.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.tables import projects
from pypi_assets_tests.crawl.compared_listers import compare_listers
from pypi_assets_tests.crawl.followers import REFUSED, follower
from pypi_assets_tests.crawl.model_scopes import scratch_catalog
from pypi_assets_tests.crawl.model_steps import file_of
from pypi_assets_tests.examples import examples, first_seed
from pypi_assets_tests.scoped_index import WHEEL, ScopedFollower, ScopedIndex

NAMES = ("root", "one", "two", "three")
changes = st.one_of(
    st.tuples(
        st.just("add"), st.sampled_from(NAMES), st.sampled_from(["1.0", "2.0"]), st.lists(st.sampled_from(NAMES[1:]))
    ),
    st.tuples(
        st.sampled_from(["remove-project", "quarantine", "unquarantine"]),
        st.sampled_from(NAMES),
        st.none(),
        st.just([]),
    ),
)


def scoped() -> ScopedFollower:
    index = ScopedIndex(trouble=REFUSED, is_listed=True)
    index.upload("root", "0.1", "one")
    index.upload("one", "0.1")
    return ScopedFollower(index, follower(SIMPLE).catalog, SIMPLE)


def change(index: ScopedIndex, kind: str, project: str, version: str | None, required: list[str]) -> None:
    filename = file_of(project, version, WHEEL) if version is not None else None
    if filename is not None:
        index.requirements.setdefault(filename, tuple(required))
    index.do(kind, project, version, filename)


def require_true_answers(listed: ScopedFollower) -> None:
    for serial in range(listed.complete + 1):
        if listed.answerable(serial):
            with listed.catalog.read() as connection:
                answered = answered_at(connection, projects.c.id, serial)
                names = set(connection.scalars(select(projects.c.normalized).where(answered)))
            shown = {(name, yanked) for name, yanked in listed.index.shown[serial] if name.split("-")[0] in names}
            assert listed.live(serial) == shown, f"at serial {serial}"


@pytest.mark.nightly
@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(batches=st.lists(st.lists(changes, min_size=1, max_size=5), min_size=1, max_size=4))
def test_answers_of_listed_scope_are_true_before_and_after_the_changelog_returns(batches) -> None:
    listed = scoped()
    listed.start("root")
    start = listed.index.serial
    for batch in batches:
        for each in batch:
            change(listed.index, *each)
        listed.crawl()
        listed.run()
        require_true_answers(listed)
    listed.lister, listed.index.trouble = XMLRPC, None
    listed.index.do("unquarantine", "root")
    listed.index.upload("root", "9.0", "one")
    listed.crawl()
    listed.run()
    require_true_answers(listed)
    assert {"root", "one"} <= set(listed.depths())
    assert all(listed.answerable(serial) for serial in range(start, listed.complete + 1))


def compare(first: int, histories: int) -> None:
    with scratch_catalog() as catalog:
        for seed in range(first, first + histories):
            try:
                counts = compare_listers(catalog, seed)
            except AssertionError as error:
                error.add_note(f"python -m pypi_assets_tests.crawl.compared_listers --first {seed} --histories 1")
                raise
            assert min(counts[name] for name in ("serials", "files", "lookups", "members")) > 0


def test_scope_has_true_answers_with_each_lister() -> None:
    compare(25, 1)


@pytest.mark.nightly
def test_scopes_of_drawn_histories_have_true_answers_with_each_lister() -> None:
    compare(first_seed(), examples(40))
