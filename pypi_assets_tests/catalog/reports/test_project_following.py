"""Answers about a project exist only for the intervals in which it is followed."""

import re
from functools import partial

import pytest
from sqlalchemy import Connection, insert, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import enter_projects, project_ids
from pypi_assets.catalog.reports.project_following import (
    Following,
    following_at,
    require_answered,
    unpublished_sentence,
)
from pypi_assets.catalog.scopes.stored_scopes import create_scope
from pypi_assets.catalog.tables import catalog_state, followed_intervals
from pypi_assets.errors import NotAnsweredError
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets_tests.naming import naming

Intervals = list[tuple[int, int | None, int | None]]


def follow(catalog: Catalog, intervals: Intervals) -> None:
    """Make the catalog complete up to serial 100. It follows the project `demo` in the `(start, exact_from, end)`
    intervals.
    """

    plan = ScopePlan("mine", {"demo": frozenset()})
    catalog.transact(partial(create_scope, plan=plan, serial=100, index_url="http://index/", now=0.0))
    catalog.transact(partial(complete_range, serials=SerialRange(0, 100), now=0.0))
    catalog.transact(partial(enter_projects, names=[("Demo", 0)]))

    def enter(connection: Connection) -> None:
        [project_id] = project_ids(connection, ["demo"]).values()
        for start, exact_from, end in intervals:
            row = {"project_id": project_id, "start": start, "exact_from": exact_from, "end": end}
            connection.execute(insert(followed_intervals).values(row))

    catalog.transact(enter)


@pytest.mark.parametrize(
    ("intervals", "serial", "state", "values"),
    [
        ([], 90, Following.NEVER, ("demo", "pypi-assets scope create")),
        ([(50, None, None)], 90, Following.ENTERING, ("demo",)),
        ([(50, 40, None)], 40, Following.ANSWERED, None),
        ([(50, 40, None)], 39, Following.EARLIER, ("demo", 39, 40)),
        ([(50, 40, 60)], 59, Following.ANSWERED, None),
        ([(50, 40, 60)], 60, Following.ENDED, ("demo", 60)),
        ([(50, 40, 60), (70, 65, None)], 62, Following.EARLIER, ("demo", 62, 65)),
        ([(50, 40, 60), (70, 65, None)], 70, Following.ANSWERED, None),
        ([(50, 40, 60), (70, None, None)], 70, Following.ENTERING, ("demo",)),
        ([(50, 40, 60), (70, None, None)], 50, Following.ANSWERED, None),
    ],
)
def test_known_serials_follow_from_the_intervals(
    catalog: Catalog, intervals: Intervals, serial: int, state: Following, values: tuple[object, ...] | None
) -> None:
    follow(catalog, intervals)
    with catalog.read() as connection:
        found = following_at(connection, "DEMO", serial)
        assert found is not None
        assert (found.name, found.state, found.projects) == ("demo", state, int(state == Following.ANSWERED))
        sentence = found.sentence()
        assert (sentence is None) == (values is None)
        assert sentence is None or re.search(naming(*(values or ())), sentence)
        if state == Following.EARLIER:
            with pytest.raises(NotAnsweredError, match=naming("demo", serial)):
                require_answered(connection, "demo", serial)
        else:
            assert require_answered(connection, "demo", serial) == found


def test_version_lacks_projects_that_entered_later(catalog: Catalog) -> None:
    follow(catalog, [(50, 95, None)])
    with catalog.read() as connection:
        assert "demo" in str(unpublished_sentence(connection, "demo", 90))
        assert unpublished_sentence(connection, "demo", 96) is None
        assert "other" in str(unpublished_sentence(connection, "other", 90))


def test_each_project_has_answers_if_all_are_followed(catalog: Catalog) -> None:
    follow(catalog, [])
    catalog.transact(lambda connection: connection.execute(update(catalog_state).values(follows_all=True)))
    with catalog.read() as connection:
        assert following_at(connection, "demo", 90) is None
        assert require_answered(connection, "nothing", 1) is None
        assert unpublished_sentence(connection, "demo", 90) is None
