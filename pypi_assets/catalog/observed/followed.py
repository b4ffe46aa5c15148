"""The projects that a catalog follows: all projects of its index, or the projects that its scopes lead to.

Live intervals do not depend on scopes: they only depend on pages and events. Dumps, counts and answers join them with
the intervals in which projects are followed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from pypi_assets.catalog.database import at_a_time, insert_missing
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.tables import (
    catalog_state,
    distributions,
    followed_intervals,
    projects,
    scope_marks,
    scope_projects,
    scope_rulesets,
    scopes,
)

FOLLOWED = "followed"
UNFOLLOWED = "unfollowed"
"""The causes of changes that dumps publish when a project begins or ceases to be followed."""


def follows_all(connection: Connection) -> bool:
    """Check whether the whole index is followed, as it is without scopes."""
    return bool(connection.scalar(select(catalog_state.c.follows_all)) is not False)


def answered_at(
    connection: Connection, project_id: Column[int], serial: int | ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that the project is followed at `serial`, and its files are exactly known at that serial."""
    if follows_all(connection):
        return true()
    return exists().where(followed_intervals.c.project_id == project_id, _has_answers(serial))


def _has_answers(serial: int | ColumnElement[int]) -> ColumnElement[bool]:
    c = followed_intervals.c
    return and_(c.exact_from <= serial, or_(c.end.is_(None), c.end > serial))


def is_followed(connection: Connection, project_id: Column[int]) -> ColumnElement[bool]:
    """Return the condition that the project is followed now, including entering projects without answers yet."""
    if follows_all(connection):
        return true()
    return exists().where(followed_intervals.c.project_id == project_id, followed_intervals.c.end.is_(None))


def followed_of(connection: Connection, project_ids: Sequence[int]) -> set[int]:
    """Return the subset of these projects that is followed now."""
    if follows_all(connection):
        return set(project_ids)
    c = followed_intervals.c
    return {
        id_
        for ids in at_a_time(project_ids)
        for id_ in connection.scalars(select(c.project_id).where(c.project_id.in_(ids), c.end.is_(None)))
    }


def count_answered(connection: Connection, serial: int) -> int | None:
    """Return how many projects are followed and exactly known at `serial`; None if the whole index is followed."""
    if follows_all(connection):
        return None
    query = select(func.count()).select_from(followed_intervals).where(_has_answers(serial))
    return int(connection.scalar(query) or 0)


def follow(connection: Connection, project_ids: Collection[int]) -> None:
    """Follow projects that are not followed now. They are entering until they are settled."""
    start = complete_serial(connection) + 1
    c = followed_intervals.c
    for ids in at_a_time(sorted(project_ids)):
        again = (c.project_id.in_(ids), c.start == start)
        connection.execute(update(followed_intervals).where(*again).values(end=None, exact_from=None))
        insert_missing(connection, followed_intervals, [{"project_id": id_, "start": start} for id_ in ids])


def unfollowed_at(connection: Connection) -> int:
    """Return the serial at which a project that is unfollowed now ceases to be followed: after the complete serial."""
    return complete_serial(connection) + 1


def unfollow(connection: Connection, project_ids: Collection[int]) -> None:
    """Stop following these projects after the complete serial. Intervals of entering projects are deleted."""
    end = unfollowed_at(connection)
    c = followed_intervals.c
    for ids in at_a_time(sorted(project_ids)):
        are_open = and_(c.project_id.in_(ids), c.end.is_(None))
        connection.execute(delete(followed_intervals).where(are_open, or_(c.exact_from.is_(None), c.exact_from >= end)))
        connection.execute(update(followed_intervals).where(are_open).values(end=end))


def end_entering(connection: Connection, exact_from: Mapping[int, int]) -> None:
    """End the entering of projects. `exact_from` maps project ids to the first serial with answers."""
    if not exact_from:
        return
    c = followed_intervals.c
    matches = (c.project_id == bindparam("of_project"), c.end.is_(None), c.exact_from.is_(None))
    connection.execute(
        update(followed_intervals).where(*matches).values(exact_from=bindparam("since")),
        [{"of_project": project_id, "since": serial} for project_id, serial in sorted(exact_from.items())],
    )


def mark_projects(connection: Connection, project_ids: Iterable[int]) -> None:
    """Mark these projects for discovery in scopes, since their requirements may have changed.

    Projects that are in no scope are marked too, since they may enter one at the same time. Without scopes, nothing is
    marked.
    """
    for ids in at_a_time(sorted(set(project_ids))):
        _mark(connection, select(projects.c.id).where(projects.c.id.in_(ids)))


def mark_projects_of(connection: Connection, distribution_ids: Iterable[int]) -> None:
    """Mark the projects of these distributions, like `mark_projects`."""
    c = distributions.c
    for ids in at_a_time(sorted(distribution_ids)):
        _mark(connection, select(c.project_id).where(c.id.in_(ids)).distinct())


def _mark(connection: Connection, found: Select[tuple[int]]) -> None:
    is_any = exists(select(scopes.c.id))
    connection.execute(insert(scope_marks).from_select(["project_id"], found.where(is_any)))


def newest_version() -> ScalarSelect[int]:
    """Return the version of the rules in force for each row of `scopes` that the query joins."""
    versions = scope_rulesets.alias()
    of_scope = versions.c.scope_id == scopes.c.id
    return select(func.max(versions.c.version)).where(of_scope).correlate(scopes).scalar_subquery()


def versions_in_force(connection: Connection, project_ids: Iterable[int]) -> dict[int, str]:
    """Return the rules in force for each of these projects that a scope leads to.

    The rules are a comma-separated text of `SCOPE:VERSION`, such as `1:3,2:1`.
    """
    query = (
        select(scope_projects.c.project_id, scopes.c.id, newest_version())
        .join(scopes, scopes.c.id == scope_projects.c.scope_id)
        .where(scope_projects.c.is_beyond.is_(False))
        .order_by(scope_projects.c.project_id, scopes.c.id)
    )
    found: dict[int, list[str]] = {}
    for ids in at_a_time(sorted(set(project_ids))):
        for project_id, scope_id, version in connection.execute(query.where(scope_projects.c.project_id.in_(ids))):
            found.setdefault(project_id, []).append(f"{scope_id}:{version}")
    return {project_id: ",".join(of_it) for project_id, of_it in found.items()}
