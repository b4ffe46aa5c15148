"""States of listers: what a run saved is not lost to another run that goes on at the same time."""

from collections.abc import Mapping
from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.index_state import (
    ChangelogTrouble,
    Content,
    ListerState,
    OvertakenError,
    changelog_trouble,
    last_listed,
    read_lister_state,
    save_lister_state,
)

INDEX = "https://index.example.org/simple/"


def greatest(stored: Content, new: Content) -> Content:
    return stored if stored["serial"] > new["serial"] else new


def refuse(_stored: Content, _new: Content) -> Content:
    raise OvertakenError("another run went on")


def save(catalog: Catalog, known: ListerState, content: Mapping[str, Any], reconcile=refuse) -> ListerState:
    with catalog.write() as connection:
        return save_lister_state(connection, known, content, 5.0, reconcile)


def read(catalog: Catalog, instance: str = INDEX) -> ListerState:
    with catalog.read() as connection:
        return read_lister_state(connection, SIMPLE, instance)


def test_a_state_is_read_as_it_was_saved_and_each_index_has_its_own(catalog: Catalog):
    assert read(catalog) == ListerState(SIMPLE, INDEX, {})
    first = save(catalog, read(catalog), {"serial": 7, "seen": ["a", None, 1.5]})
    assert read(catalog) == first
    assert (first.revision, first.updated_at) == (1, 5.0)
    assert save(catalog, first, {"serial": 8}).revision == 2
    assert read(catalog, "https://other.example.org/") == ListerState(SIMPLE, "https://other.example.org/", {})
    with catalog.read() as connection:
        assert last_listed(connection, INDEX) == (8, None)


def test_two_runs_that_save_different_states_are_reconciled(catalog: Catalog):
    before = save(catalog, read(catalog), {"serial": 1})
    save(catalog, before, {"serial": 9})
    with pytest.raises(OvertakenError):
        save(catalog, before, {"serial": 5})
    assert read(catalog).content == {"serial": 9}
    assert save(catalog, before, {"serial": 5}, greatest).content == {"serial": 9}
    assert save(catalog, before, {"serial": 12}, greatest).content == {"serial": 12}
    assert read(catalog).revision == 4


def test_a_run_that_saved_the_same_overtakes_no_other(catalog: Catalog):
    before = save(catalog, read(catalog), {"serial": 1})
    save(catalog, before, {"serial": 1})
    assert save(catalog, before, {"serial": 2}).content == {"serial": 2}


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        ({}, None),
        ({"failing_since": 5.0, "error": "503"}, ChangelogTrouble(5.0, False, "503")),
        ({"failing_since": 5.0, "off_since": 9.0, "error": "gone"}, ChangelogTrouble(5.0, True, "gone")),
    ],
)
def test_trouble_of_the_changelog_is_known_since_its_first_failure(
    catalog: Catalog, content: Content, trouble: ChangelogTrouble | None
):
    with catalog.write() as connection:
        save_lister_state(connection, ListerState(XMLRPC, INDEX, {}), content, 10.0, refuse)
        assert changelog_trouble(connection, INDEX) == trouble
