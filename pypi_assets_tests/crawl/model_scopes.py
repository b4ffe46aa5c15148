"""Follows random requirement graphs with scopes: `python -m pypi_assets_tests.crawl.model_scopes --graphs 5000`.

Each graph and its changes are determined by a seed, which a failure prints. After each piece of work, the scope members
are compared with a breadth-first search at each serial over the files read by then, and the answers are compared with
the index.
"""

# ruff: noqa: T201 - it prints failures

import argparse
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest
from packaging.version import Version
from sqlalchemy import Connection, Table, func, select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial, ledger
from pypi_assets.catalog.reports.catalog_status import count_differences, ledger_faults
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.scopes.members import prune_scope, remove_scope
from pypi_assets.catalog.scopes.stored_scopes import Scope, StoredRuleset, all_scopes, rulesets_of, set_aborted
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    followed_intervals,
    live_intervals,
    projects,
    releases,
    visit_queue,
    yanked_intervals,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.crawl.scope_crawl import discover_all, run_ready_scopes
from pypi_assets.index.errors import TransientError
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.crawl.model_dumps import DumpReader
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.crawl.model_steps import file_of
from pypi_assets_tests.databases import prepare_catalogs, sqlite_database
from pypi_assets_tests.kills import KilledError
from pypi_assets_tests.model_truth import Spans
from pypi_assets_tests.scoped_index import SDIST, WHEEL, ScopedFollower, ScopedIndex

PROJECTS = [f"p{number}" for number in range(8)]
VERSIONS = ("1.0", "1.0", "2.0", "3.0", "2.5rc1")
RULES = (
    "",
    "",
    'requirements = { releases = "all" }',
    "requirements = { extras = true }",
    'requirements = { kinds = ["wheel"] }',
    '[[rule]]\nprojects = ["p[3-5]"]\naccept = false',
    '[[rule]]\nkinds = ["sdist"]\nskip = true',
    "[[rule]]\nmax_files = 1",
)
CHANGES = ("yank", "unyank", "remove-file", "remove-release", "remove-project", "quarantine", "unquarantine")
EXTRA = " ; extra == 'more'"
FOREVER = 2**62


@dataclass(frozen=True)
class Reached:
    first: int
    depth: int


class Graph:
    """An index and scopes that follow it, determined by `seed`. A small graph has few changes."""

    def __init__(self, catalog: Catalog, seed: int, *, is_small: bool = False) -> None:
        self.is_small = is_small
        self.random = Random(seed)
        empty_catalog(catalog)
        self.follower = ScopedFollower(ScopedIndex(random=Random(seed)), catalog)
        self.index = self.follower.index
        self.reader = DumpReader()
        self.kept: dict[int, dict[str, int]] = {}
        self.before: dict[int, set[str]] = {}
        self.steps: list[str] = []
        self.names = 0

    @property
    def catalog(self) -> Catalog:
        return self.follower.catalog

    @property
    def crawler(self) -> Crawler:
        return self.follower.crawler

    def follow(self) -> None:
        """Run the graph. Raise AssertionError if the catalog is wrong."""
        self.happen(self.random.randrange(4, 16 if self.is_small else 24))
        self.create()
        self.work(self.run)
        steps = [
            (8, lambda: self.happen(self.random.randint(1, 6))),
            (5, lambda: self.work(self.crawl_some)),
            (3, lambda: self.work(crawl_incremental)),
            (2, lambda: self.work(self.run)),
            (2, self.change_rules),
            (1, self.create),
            (1, self.prune),
            (1, self.rest_or_go_on),
            (1, self.break_files),
            (1, lambda: self.work(retry)),
        ]
        for _ in range(self.random.choice([1, 2, 3] if self.is_small else [3, 5, 8, 12])):
            self.random.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()
        self.end()

    # Operations on the index and the scopes

    def note(self, text: str) -> None:
        self.steps.append(text)

    def happen(self, count: int) -> None:
        for _ in range(count):
            self.change()

    def change(self) -> None:
        random, index = self.random, self.index
        project, version = random.choice(PROJECTS), random.choice(VERSIONS)
        kind = "add" if random.random() < 0.7 else random.choice(CHANGES)
        filename = None
        if kind in {"add", "remove-file"}:
            filename = file_of(project, version, random.choice([WHEEL, WHEEL, SDIST]))
        count = random.choice([0, 1, 1, 2, 3])
        required = tuple(random.choice(PROJECTS) + (EXTRA if random.random() < 0.2 else "") for _ in range(count))
        if filename is not None and kind == "add":
            index.requirements.setdefault(filename, required)
        of_release = version if kind in {"add", "remove-file", "yank", "unyank", "remove-release"} else None
        if index.do(kind, project, of_release, filename):
            leads_on = required if kind == "add" else ""
            self.note(f"{index.serial}: {kind} {filename or f'{project} {of_release}'} {leads_on}")

    def break_files(self) -> None:
        names = sorted(self.index.requirements)
        self.index.unreadable = set(self.random.sample(names, min(len(names), self.random.randrange(4))))
        self.note(f"unreadable: {sorted(self.index.unreadable)}")

    # Work of the catalog

    def create(self) -> None:
        self.names += 1
        name, random = f"scope{self.names}", self.random
        roots = [root + random.choice(["", "", "[more]"]) for root in random.sample(PROJECTS, random.choice([1, 1, 2]))]
        depth, rules = random.choice([None, None, 0, 1, 2, 3]), random.choice(RULES)
        self.note(f"create {name} {roots} depth {depth} {rules!r}")
        self.follower.create(*roots, name=name, most_depth=depth, rules=rules)

    def change_rules(self) -> None:
        scope = self.random.choice(self.scopes())
        rules = self.random.choice(RULES)
        self.note(f"rules of {scope.name}: {rules!r}")
        self.follower.set_rules(rules, scope.name)

    def prune(self) -> None:
        scope = self.random.choice(self.scopes())
        is_removed = self.random.random() < 0.3 and len(self.scopes()) > 1
        self.note(f"{'remove' if is_removed else 'prune'} {scope.name}")
        discover_all(self.crawler)
        with self.crawler.catalog.write() as connection:
            if is_removed:
                remove_scope(connection, scope)
                self.before.pop(scope.id, None)  # SQLite reuses its id for the next scope
                self.kept.pop(scope.id, None)
                return
            prune_scope(connection, scope, self.follower.now)
        members = self.follower.members(scope.name)
        self.kept[scope.id] = {name: first for name, (_, is_beyond, first, _) in members.items() if not is_beyond}
        self.before.pop(scope.id, None)
        self.require_closures()

    def rest_or_go_on(self) -> None:
        scope = self.random.choice(self.scopes())
        self.note(f"{'resume' if scope.is_aborted else 'abort'} {scope.name}")
        with self.catalog.write() as connection:
            set_aborted(connection, scope, is_aborted=not scope.is_aborted)

    def run(self, crawler: Crawler) -> None:
        run_ready_scopes(crawler)

    def crawl_some(self, crawler: Crawler) -> None:
        """Allocate ranges, and work on a random part of all ranges in any order."""
        if not self.has_baseline():
            return
        allocate_next_ranges(replace(crawler, range_events=self.random.choice([1, 2, 4, 500, 500])))
        with self.catalog.read() as connection:
            ranges = [entry.serials for entry in ledger(connection) if entry.lister is not None]
        for serials in self.random.sample(ranges, min(len(ranges), self.random.randint(1, 3))):
            self.note(f"  {serials}")
            crawl_range(crawler, serials)

    def work(self, work: Callable[[Crawler], object]) -> None:
        """Run `work` while the index changes and sometimes fails. The process may be killed."""
        random, index = self.random, self.index
        if work in (crawl_incremental, retry) and not self.has_baseline():
            return
        lifetime = random.randrange(40) if random.random() < 0.2 else FOREVER
        moves = random.randrange(4) if random.random() < 0.3 else 0
        index.failing = random.choice([0.0, 0.0, 0.1])
        self.note(f"{getattr(work, '__name__', work)}, killed after {lifetime}, failing {index.failing}")

        def before_answer() -> None:
            nonlocal lifetime, moves
            self.require_no_more()
            lifetime -= 1
            if lifetime < 0:
                raise KilledError
            if moves and random.random() < 0.15:
                moves -= 1
                self.change()

        index.before_answer = before_answer
        with draining_in_place(), suppress(KilledError, TransientError):
            work(self.crawler)
        index.before_answer, index.failing = lambda: None, 0.0
        self.require_right()

    def end(self) -> None:
        """Check that no work is left once the index answers and all scopes are resumed."""
        self.index.unreadable = set()
        self.index.before_answer = self.require_no_more
        for scope in self.scopes():
            if scope.is_aborted:
                with self.catalog.write() as connection:
                    set_aborted(connection, scope, is_aborted=False)
        self.note("end")
        with draining_in_place():
            run_ready_scopes(self.crawler)
            if self.scopes():
                crawl_incremental(self.crawler)
                retry(self.crawler)
                run_ready_scopes(self.crawler)
        self.require_right()
        with self.catalog.read() as connection:
            assert [scope.name for scope in all_scopes(connection) if scope.completed_at is None] == []
            interval = followed_intervals.c
            assert (
                connection.scalar(select(func.count()).where(interval.end.is_(None), interval.exact_from.is_(None)))
                == 0
            )
            left = connection.execute(select(visit_queue).where(visit_queue.c.state != "done")).all()
            assert left == [], f"left in the queue: {left}"
            differences = count_differences(connection)
            assert not differences, f"wrong counts: {differences}"
            assert complete_serial(connection) == self.index.serial

    # Invariants

    def scopes(self) -> list[Scope]:
        with self.catalog.read() as connection:
            return all_scopes(connection)

    def has_baseline(self) -> bool:
        with self.catalog.read() as connection:
            first = next((entry for entry in ledger(connection) if entry.lister is None), None)
        return first is None or first.completed_at is not None

    def require_right(self) -> None:
        discover_all(self.crawler)
        self.require_closures()
        if self.has_baseline():
            with self.catalog.read() as connection:
                assert not ledger_faults(connection)
            self.require_answers()
            if self.random.random() < 0.3 and self.reader.go_on(self.crawler.catalog):
                shown = {file.filename for file in live_files(self.catalog, self.reader.serial)}
                assert set(self.reader.rows) == shown, "dumps"

    def require_closures(self) -> None:
        """Check that each scope has the members that a breadth-first search finds, with the same first serials and
        depths.
        """
        for scope, expected in self.require_no_more(is_thorough=True):
            found = self.follower.members(scope.name)
            within = {name for name, (_, is_beyond, _, _) in found.items() if not is_beyond}
            assert set(expected) <= within, f"{scope.name}: {sorted(within)}, and should be {sorted(expected)}"
            kept = self.kept.get(scope.id, {})
            for name, reached in expected.items():
                depth, _, first, _ = found[name]
                assert depth == reached.depth, f"{scope.name}: {name} at depth {depth}, and should be {reached.depth}"
                since = kept.get(name, reached.first)
                assert first == since, f"{scope.name}: {name} since {first}, and should be since {since}"

    def require_no_more(self, *, is_thorough: bool = False) -> list[tuple[Scope, dict[str, Reached]]]:
        """Check that each member of a scope is found by the search now, or was found when it entered.

        Later knowledge may show that nothing led to a member, so this check runs before each request. Return what the
        search finds now for each scope that is not aborted. Scopes with unchanged members are skipped unless
        `is_thorough`.
        """
        searched = []
        for scope in self.scopes():
            found = self.follower.members(scope.name)
            within = {name for name, (_, is_beyond, _, _) in found.items() if not is_beyond}
            before = self.before.get(scope.id, set()) | set(self.kept.get(scope.id, {}))
            assert before <= within, f"{scope.name} lost {sorted(before - within)}"
            if within == before and not is_thorough:
                continue
            with self.catalog.read() as connection:
                expected = search(
                    scope, rulesets_of(connection, scope.id), known_files(connection), self.index.requirements
                )
            more = within - before - set(expected)
            assert not more, f"{scope.name}: {sorted(more)} more than {sorted(expected)}"
            self.before[scope.id] = within
            if not scope.is_aborted:
                searched.append((scope, expected))
        return searched

    def require_answers(self) -> None:
        """Check that from each project's exact serial on, its files equal those that the index showed."""
        interval = followed_intervals.c
        query = select(projects.c.normalized, interval.exact_from, interval.end).join(
            projects, projects.c.id == interval.project_id
        )
        with self.catalog.read() as connection:
            complete = complete_serial(connection)
            followed = connection.execute(query.where(interval.exact_from.is_not(None))).all()
        first = min(scope.created_serial for scope in self.scopes()) if self.scopes() else complete
        for serial in {complete, *range(first, complete, 3)}:
            names = {name for name, since, end in followed if since <= serial and (end is None or serial < end)}
            expected = {pair for pair in self.index.truth.at(serial) if pair[0].partition("-")[0] in names}
            assert self.follower.live(serial) == expected, f"at serial {serial}"


@dataclass(frozen=True)
class KnownFile:
    filename: str
    version: str
    kind: str
    is_read: bool
    live: Spans
    yanked: Spans


def known_files(connection: Connection) -> dict[str, list[KnownFile]]:
    """Return the files that the catalog knows, by project."""
    live, yanked = spans_of(connection, live_intervals), spans_of(connection, yanked_intervals)
    query = (
        select(
            projects.c.normalized,
            distributions.c.id,
            distributions.c.filename,
            releases.c.version,
            distributions.c.kind,
            distribution_data.c.outcome,
        )
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
    )
    found: dict[str, list[KnownFile]] = {}
    for project, id_, filename, version, kind, outcome in connection.execute(query):
        file = KnownFile(filename, version, kind, outcome == "data", live.get(id_, []), yanked.get(id_, []))
        found.setdefault(project, []).append(file)
    return found


def spans_of(connection: Connection, table: Table) -> dict[int, Spans]:
    found: dict[int, Spans] = {}
    for id_, start, end in connection.execute(select(table.c.distribution_id, table.c.start, table.c.end)):
        found.setdefault(id_, []).append((start, FOREVER if end is None else end))
    return found


def search(
    scope: Scope,
    rulesets: list[StoredRuleset],
    files: Mapping[str, list[KnownFile]],
    requirements: Mapping[str, tuple[str, ...]],
) -> dict[str, Reached]:
    """Search breadth first from the roots, at each serial where the result may differ."""
    serials = {scope.since, *(stored.from_serial for stored in rulesets)}
    for of_project in files.values():
        for file in of_project:
            serials |= {serial for span in (*file.live, *file.yanked) for serial in span if serial < FOREVER}
    found: dict[str, Reached] = {}
    for serial in sorted(serial for serial in serials if serial >= scope.since):
        in_force = [stored for stored in rulesets if stored.from_serial <= serial][-1].ruleset
        level = {root for root in scope.roots if in_force.accepts(root)}
        seen: set[str] = set()
        depth = 0
        while level and (scope.most_depth is None or depth <= scope.most_depth):
            seen |= level
            for name in level:
                before = found.get(name, Reached(serial, depth))
                found[name] = Reached(before.first, min(before.depth, depth))
            following = set()
            for name in level:
                extras = scope.roots.get(name, frozenset()) | ({"more"} if in_force.requirements.extras else set())
                for filename in selected(files.get(name, []), serial, in_force.requirements):
                    for required in requirements.get(filename, ()):
                        if not required.endswith(EXTRA) or "more" in extras:
                            following.add(required.removesuffix(EXTRA))
            level = {name for name in following - seen if in_force.accepts(name)}
            depth += 1
    return found


def selected(files: list[KnownFile], serial: int, rules: object) -> Iterator[str]:
    """Return the files of a project that were read and whose requirements count at a serial."""
    usable = [
        file
        for file in files
        if file.kind in rules.kinds  # type: ignore[attr-defined]
        and holds(file.live, serial)
        and not holds(file.yanked, serial)
    ]
    if rules.releases == "latest" and usable:  # type: ignore[attr-defined]
        newest = max((not Version(file.version).is_prerelease, Version(file.version)) for file in usable)[1]
        usable = [file for file in usable if Version(file.version) == newest]
    return (file.filename for file in usable if file.is_read)


def holds(spans: Spans, serial: int) -> bool:
    return any(start <= serial < end for start, end in spans)


def try_graph(catalog: Catalog, seed: int, *, is_small: bool = False) -> str | None:
    """Run the graph of a seed. Return a description of its failure, or None."""
    graph = Graph(catalog, seed, is_small=is_small)
    try:
        graph.follow()
    except Exception as error:  # noqa: BLE001 - each failure is reported
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {place.name}:{place.lineno}: {str(error)[:1_500]}"
        return f"seed {seed}: {where}\n" + "\n".join(graph.steps)
    return None


@contextmanager
def scratch_catalog() -> Iterator[Catalog]:
    """Yield a catalog in a new SQLite database, in memory if the system supports it."""
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        prepare_catalogs(patch)
        catalog = open_catalog(sqlite_database(Path(folder, "catalog.sqlite")))
        yield catalog
        catalog.close()


def _try_part(seeds: range, *, is_small: bool) -> list[str]:
    with scratch_catalog() as catalog:
        return [failure for seed in seeds if (failure := try_graph(catalog, seed, is_small=is_small))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--small", action="store_true", help="little happens to each, as in the test suite")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    last = options.first + options.graphs
    parts = [range(seed, min(seed + 50, last)) for seed in range(options.first, last, 50)]
    started, failures, done = time.monotonic(), 0, 0
    with get_context("spawn").Pool(options.workers) as pool:
        for found in pool.imap_unordered(partial(_try_part, is_small=options.small), parts):
            failures, done = failures + len(found), done + 1
            for failure in found:
                print(failure, flush=True)
            if done % 10 == 0:
                print(f"{done * 50} graphs in {time.monotonic() - started:.0f} s, {failures} failed", flush=True)
    print(f"{options.graphs} graphs in {time.monotonic() - started:.0f} s: {failures} failed", flush=True)
    raise SystemExit(min(failures, 1))


if __name__ == "__main__":
    main()
