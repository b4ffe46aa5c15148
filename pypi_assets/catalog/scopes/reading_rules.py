"""Apply the rules of scopes to the reading of files: which files are skipped, and which are read first.

If several scopes lead to a project, a file is skipped only if the rules of every one of them skip it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, true, update

from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.observed.followed import follows_all, newest_version
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.scopes.stored_scopes import StoredRuleset
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    projects,
    read_queue,
    scope_projects,
    scope_rulesets,
    scopes,
)
from pypi_assets.catalog.work.finished_workloads import queue_done
from pypi_assets.catalog.work.read_queue import queue_reads, remove_reads
from pypi_assets.scopes.closure import OPEN_END, Spans, intersection
from pypi_assets.scopes.ruleset import RuledFile, ScopeFile, selected_spans

_NOW: Spans = ((OPEN_END - 1, OPEN_END),)


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """The rules in force for one project. If the whole index is followed, `skips` is False, and no file is skipped."""

    nice: int
    rulesets: Sequence[StoredRuleset]
    skips: bool

    def skipped(self, project: str, files: Sequence[RuledFile]) -> dict[str, str]:
        """Return the files of the project that are not read, each with the reason as a sentence, by filename."""
        if not self.skips:
            return {}
        of_each = [stored.ruleset.skipped(project, files) for stored in self.rulesets]
        first, *others = of_each
        return {name: reason for name, reason in first.items() if all(name in one for one in others)}

    def read_first(self, files: Mapping[str, ScopeFile]) -> set[str]:
        """Return the files whose requirements a scope follows now. They are read first to speed up discovery."""
        names = list(files)
        found: set[str] = set()
        for rules in {stored.ruleset.requirements for stored in self.rulesets}:
            selected = selected_spans([files[name] for name in names], rules)
            found |= {name for name, spans in zip(names, selected, strict=True) if intersection(spans, _NOW)}
        return found


def reading_rules(connection: Connection, project_ids: Iterable[int]) -> dict[int, ReadingRules]:
    """Return the rules in force for each of these projects that a scope leads to; empty if there are no scopes."""
    query = (
        select(scope_projects.c.project_id, scope_projects.c.nice, scope_rulesets)
        .join(scopes, scopes.c.id == scope_projects.c.scope_id)
        .join(scope_rulesets, scope_rulesets.c.scope_id == scopes.c.id)
        .where(scope_projects.c.is_beyond.is_(False), scope_rulesets.c.version == newest_version())
        .order_by(scope_projects.c.project_id, scopes.c.id)
    )
    found: dict[int, list[tuple[int, StoredRuleset]]] = {}
    for ids in at_a_time(sorted(set(project_ids))):
        for row in connection.execute(query.where(scope_projects.c.project_id.in_(ids))):
            stored = StoredRuleset(row.version, row.from_serial, row.created_at, row.content)
            found.setdefault(row.project_id, []).append((row.nice, stored))
    skips = bool(found) and not follows_all(connection)
    return {
        project_id: ReadingRules(
            min(nice for nice, _ in of_it),
            [stored for _, stored in of_it],
            skips,
        )
        for project_id, of_it in found.items()
    }


def uploaded_time(uploaded_at: str | None) -> float | None:
    """Return the upload time that a page shows, in unix seconds; None if it is missing or invalid."""
    try:
        return None if uploaded_at is None else datetime.fromisoformat(uploaded_at).timestamp()
    except ValueError:
        return None


def projects_to_rule(connection: Connection, scope_id: int) -> list[int]:
    """Return, in order, the ids of the scope's projects that have pending or skipped files."""
    c, left = scope_projects.c, (ReadOutcome.PENDING, ReadOutcome.SKIPPED)
    query = (
        select(c.project_id)
        .join(distributions, distributions.c.project_id == c.project_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(c.scope_id == scope_id, c.is_beyond.is_(False), distribution_data.c.outcome.in_(left))
        .distinct()
        .order_by(c.project_id)
    )
    return list(connection.scalars(query))


def queue_lifted(connection: Connection, project_ids: Sequence[int], workload: str) -> None:
    """Queue the projects among these whose skipped files must now be read, since no rule skips them any longer.

    They are entered into `workload`, and `apply_rules` then queues their files. The caller runs it in a transaction
    before `apply_rules`, because the queue of reads must be locked before the rows that count visits.
    """
    rules = reading_rules(connection, project_ids)
    lifted = [id_ for id_ in sorted(rules) if _differences(connection, id_, rules[id_])[0]]
    query = select(projects.c.id, projects.c.shard).where(projects.c.id.in_(lifted)).order_by(projects.c.id)
    queue_done(connection, workload, [(project_id, shard, 0) for project_id, shard in connection.execute(query)])


def apply_rules(connection: Connection, project_ids: Sequence[int]) -> None:
    """Update the pending and skipped files of these projects to match the rules in force.

    Files that were read stay read. Files that a worker has claimed are left to it.
    """
    rules = reading_rules(connection, project_ids)
    lifted: dict[int, int] = {}
    skipped: dict[int, str] = {}
    for project_id in sorted(rules):
        more, fewer = _differences(connection, project_id, rules[project_id])
        lifted |= dict.fromkeys(more, project_id)
        skipped |= fewer
    for project_id in sorted(set(lifted.values())):
        reads = [(id_, project_id) for id_, its_project in lifted.items() if its_project == project_id]
        queue_reads(connection, reads, nice=rules[project_id].nice)
    free = _take_out(connection, sorted(skipped), only_free=True)
    with counting_files(connection, sorted([*lifted, *free])):
        for chunk in at_a_time(sorted(lifted)):
            of_these = (
                distribution_data.c.distribution_id.in_(chunk),
                distribution_data.c.outcome == ReadOutcome.SKIPPED,
            )
            values = {"outcome": ReadOutcome.PENDING, "error_text": None}
            connection.execute(update(distribution_data).where(*of_these).values(values))
        _note_skipped(connection, {id_: skipped[id_] for id_ in free})


def _differences(connection: Connection, project_id: int, rules: ReadingRules) -> tuple[list[int], dict[int, str]]:
    """Return a project's live files whose outcome contradicts the rules, by distribution id.

    The list has skipped files that should be read; the mapping has pending files that should be skipped, with the
    reasons.
    """
    query = (
        select(
            distributions.c.id,
            distributions.c.filename,
            distributions.c.kind,
            distributions.c.uploaded_at,
            projects.c.normalized,
            distribution_data.c.outcome,
        )
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .join(live_intervals, live_intervals.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == project_id, live_intervals.c.end.is_(None))
        .where(distributions.c.url.is_not(None))
        .order_by(distributions.c.id)
    )
    rows = connection.execute(query).all()
    files = [RuledFile(row.filename, row.kind, uploaded_time(row.uploaded_at)) for row in rows]
    reasons = rules.skipped(rows[0].normalized, files) if rows else {}
    lifted = [row.id for row in rows if row.outcome == ReadOutcome.SKIPPED and row.filename not in reasons]
    pending = [row for row in rows if row.outcome == ReadOutcome.PENDING and row.filename in reasons]
    return lifted, {row.id: reasons[row.filename] for row in pending}


def skip(connection: Connection, reasons: Mapping[int, str]) -> None:
    """Remove distributions from the queue of reads, and record for each the sentence why it is skipped.

    The caller counts them (`counting_files`).
    """
    _take_out(connection, sorted(reasons))
    _note_skipped(connection, reasons, only_pending=False)


def _take_out(connection: Connection, distribution_ids: Sequence[int], *, only_free: bool = False) -> list[int]:
    """Remove distributions from the queue of reads, with `only_free` only those that no worker has claimed.

    Return the ids that are not in the queue afterwards.
    """
    out: list[int] = []
    for ids in at_a_time(distribution_ids):
        of_these = read_queue.c.distribution_id.in_(ids)
        lock_rows(connection, read_queue, of_these)
        remove_reads(connection, of_these, read_queue.c.claimed_by.is_(None) if only_free else true())
        left = set(connection.scalars(select(read_queue.c.distribution_id).where(of_these)))
        out += [id_ for id_ in ids if id_ not in left]
    return out


def _note_skipped(connection: Connection, reasons: Mapping[int, str], *, only_pending: bool = True) -> None:
    """Record why distributions are skipped. With `only_pending`, change only distributions that are pending."""
    if not reasons:
        return
    is_pending = distribution_data.c.outcome == ReadOutcome.PENDING if only_pending else true()
    connection.execute(
        update(distribution_data)
        .where(distribution_data.c.distribution_id == bindparam("of_id"), is_pending)
        .values(outcome=ReadOutcome.SKIPPED, error_text=bindparam("why")),
        [{"of_id": id_, "why": why} for id_, why in sorted(reasons.items())],
    )
