"""Follow one drawn history with a scope by each lister, and compare all answers with the index.

The scope's closure grows and shrinks while the index changes, also during crawls. One catalog follows the changelog,
one the list of projects, and one the changelog as long as it works. At each serial with answers, each catalog must have
the files that the index showed for the projects that it answers about, and it must never lose a project that it
answered about. `python -m pypi_assets_tests.crawl.compared_listers --histories 500` compares many.
"""

# ruff: noqa: T201 - it prints failures

import argparse
import random as global_random
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC, complete_serial, inexact_spans
from pypi_assets.catalog.reports.moments import first_exact_serial
from pypi_assets.catalog.scopes.stored_scopes import rulesets_of
from pypi_assets.catalog.tables import distributions, followed_intervals, live_intervals, projects, yanked_intervals
from pypi_assets.crawl.listers import AUTO
from pypi_assets.index.errors import TransientError
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets_tests.crawl.followers import BUSY, REFUSED, empty_catalog
from pypi_assets_tests.crawl.model_scopes import Reached, holds, known_files, scratch_catalog, search, spans_of
from pypi_assets_tests.crawl.model_steps import file_of
from pypi_assets_tests.scoped_index import SDIST, WHEEL, ScopedFollower, ScopedIndex

LISTERS = (XMLRPC, SIMPLE, AUTO)
LIST_PAUSE_S = 2_000.0
"""More than the time between two lists."""
_PROJECTS = [f"p{number}" for number in range(8)]
_WEIGHTS = {
    "add": 8,
    "remove-file": 3,
    "remove-release": 2,
    "remove-project": 2,
    "yank": 2,
    "unyank": 2,
    "quarantine": 2,
    "unquarantine": 3,
    "quarantine-release": 1,
    "unquarantine-release": 1,
}
_OF_PROJECT = {"remove-project", "quarantine", "unquarantine"}
Operation = tuple[str, str, str | None, str | None, tuple[str, ...]]
"""What the index does: kind, project, version, filename, and the requirements of the file."""


def _first(random: Random) -> Operation:
    """Draw an upload that mostly requires nothing, so that most projects enter the scope later."""
    project, version = random.choice(_PROJECTS), random.choice(["1.0", "2.0", "3.0"])
    required = (random.choice(_PROJECTS),) if random.random() < 0.2 else ()
    return "add", project, version, file_of(project, version, random.choice([WHEEL, SDIST])), required


def _link(random: Random) -> Operation:
    """Draw an upload that lets a project enter the scope, possibly after its files have changed."""
    project, version = random.choice(_PROJECTS[:2]), f"{random.randrange(4, 40)}.0"
    return "add", project, version, file_of(project, version, WHEEL), (random.choice(_PROJECTS),)


def _drawn(random: Random) -> Operation:
    if random.random() < 0.25:
        return _link(random)
    [kind] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    project, version = random.choice(_PROJECTS), random.choice(["1.0", "2.0", "3.0"])
    ending = random.choice([WHEEL, WHEEL, SDIST])
    required = tuple(random.choice(_PROJECTS) for _ in range(random.choice([0, 1, 1, 2])))
    filename = file_of(project, version, ending) if kind in {"add", "remove-file"} else None
    return kind, project, None if kind in _OF_PROJECT else version, filename, required


@dataclass(frozen=True)
class Step:
    """Operations before a crawl and during it, whether the scope is run too, and the changelog's trouble for AUTO."""

    before: list[Operation]
    during: list[Operation]
    is_run: bool
    trouble: TransientError | None


@dataclass(frozen=True)
class History:
    """What happens before the scope is created, the scope, and the steps after it."""

    first: list[Operation]
    roots: tuple[str, ...]
    depth: int | None
    steps: list[Step]

    @classmethod
    def drawn(cls, random: Random) -> "History":
        first = [_first(random) for _ in range(random.randrange(4, 12))]
        first.append(("add", "p0", "0.1", file_of("p0", "0.1", WHEEL), ("p1",)))
        steps = [
            Step(
                [_drawn(random) for _ in range(random.randrange(1, 6))],
                [_drawn(random) for _ in range(random.choice([0, 0, 1, 2]))],
                random.random() < 0.7,
                random.choice([None, BUSY, REFUSED]),
            )
            for _ in range(random.randrange(1, 4))
        ]
        roots = random.choice([("p0",), ("p0",), ("p0", "p1")])
        return cls(first, roots, random.choice([None, None, None, 1, 2]), steps)


class ListedScope:
    """A catalog that follows a scope by one lister, and the projects that it answered about at each serial."""

    def __init__(self, catalog: Catalog, lister: str, seed: int) -> None:
        empty_catalog(catalog)
        self.lister, self.random = lister, Random(seed)
        trouble = REFUSED if lister == SIMPLE else None
        index = ScopedIndex(trouble=trouble, is_listed=lister != XMLRPC, random=Random(seed))
        self.follower = ScopedFollower(index, catalog, lister)
        self.answered: dict[int, set[str]] = {}
        self.counts: Counter[str] = Counter()

    def follow(self, history: History) -> None:
        """Follow the history. Raises AssertionError at a wrong answer."""
        follower, index = self.follower, self.follower.index
        self._apply(history.first)
        follower.start(*history.roots, most_depth=history.depth)
        start = index.serial
        self._compare()
        self._compare_members()
        for step in history.steps:
            self._apply(step.before)
            self._crawl(step)
            self._compare()
        if self.lister == AUTO or self.random.random() < 0.5:
            self._return_to_changelog()
            self._compare()
            assert self._exact_serials() >= set(range(start, follower.complete + 1))
        else:
            self._crawl(Step([], [], is_run=True, trouble=None))
            self._compare()
        self._compare_members()

    def _apply(self, operations: list[Operation]) -> None:
        for kind, project, version, filename, required in operations:
            if kind == "add" and filename is not None:
                self.follower.index.requirements.setdefault(filename, required)
            self.follower.index.do(kind, project, version, filename)

    def _crawl(self, step: Step) -> None:
        follower, left = self.follower, list(step.during)
        if self.lister == AUTO:
            follower.index.trouble = step.trouble

        def change() -> None:
            if left and self.random.random() < 0.3:
                self._apply([left.pop()])

        follower.now += LIST_PAUSE_S
        follower.index.before_answer = change
        with suppress(TransientError):  # BUSY
            follower.crawl()
            if step.is_run:
                follower.run()
        follower.index.before_answer = lambda: None
        self._apply(left)

    def _return_to_changelog(self) -> None:
        self.follower.lister, self.follower.index.trouble = XMLRPC, None
        again: Operation = ("add", "p0", "9.0", file_of("p0", "9.0", WHEEL), ("p1",))
        self._apply([("unquarantine", "p0", None, None, ()), again])
        self._crawl(Step([], [], is_run=True, trouble=None))

    def _exact_serials(self) -> set[int]:
        with self.follower.catalog.read() as connection:
            first, complete = first_exact_serial(connection), complete_serial(connection)
            spans = inexact_spans(connection)
        assert first is not None
        serials = range(first, complete + 1)
        return {serial for serial in serials if not any(span.start < serial < span.end for span in spans)}

    def _compare(self) -> None:
        """Compare the answers at all serials, computed from the tables at once, and at two serials as people ask."""
        follower, c = self.follower, followed_intervals.c
        of_file = select(distributions.c.id, distributions.c.filename, projects.c.normalized).join(projects)
        of_project = select(projects.c.normalized, c.exact_from, c.end).join(projects, projects.c.id == c.project_id)
        with follower.catalog.read() as connection:
            live, yanked = spans_of(connection, live_intervals), spans_of(connection, yanked_intervals)
            files = {id_: (filename, project) for id_, filename, project in connection.execute(of_file)}
            followed = connection.execute(of_project.where(c.exact_from.is_not(None))).all()
        exact = sorted(self._exact_serials())
        asked = {follower.complete, self.random.choice(exact)}
        for serial in exact:
            names = {name for name, since, end in followed if since <= serial and (end is None or serial < end)}
            shown = {pair for pair in follower.index.shown[serial] if pair[0].partition("-")[0] in names}
            found = {
                (files[id_][0], holds(yanked.get(id_, []), serial))
                for id_, spans in live.items()
                if files[id_][1] in names and holds(spans, serial)
            }
            assert found == shown, f"{self.lister}, serial {serial}"
            lost = self.answered.get(serial, set()) - names
            assert not lost, f"{self.lister} has lost {sorted(lost)} at serial {serial}"
            self.answered[serial] = names
            self.counts["serials"] += 1
            self.counts["files"] += len(found)
            if serial in asked:
                self._ask(serial, names, shown)

    def _ask(self, serial: int, names: set[str], shown: set[tuple[str, bool]]) -> None:
        assert self.follower.answerable(serial)
        assert self.follower.live(serial) == shown, f"{self.lister}, files at serial {serial}"
        for name in self.random.sample(sorted(names), min(len(names), 1)):
            results = CatalogSnapshot(self.follower.catalog, serial).live_files(name).results
            found = {(file["filename"], file["yanked"]) for file in results}
            expected = {pair for pair in shown if pair[0].partition("-")[0] == name}
            assert found == expected, f"{self.lister}, lookup of {name} at serial {serial}"
            self.counts["lookups"] += 1

    def _compare_members(self) -> None:
        """Compare the scope with a search over the files that the catalog knows. All members have answers."""
        follower, c = self.follower, followed_intervals.c
        scope = follower.scope()
        with follower.catalog.read() as connection:
            files = known_files(connection)
            expected = search(scope, rulesets_of(connection, scope.id), files, follower.index.requirements)
            entering = connection.scalars(select(c.project_id).where(c.end.is_(None), c.exact_from.is_(None))).all()
        assert not entering, f"{self.lister}: {entering} have no answers"
        found = {name: Reached(row[2], row[0]) for name, row in follower.members().items() if not row[1]}
        assert expected.keys() <= found.keys(), f"{self.lister} lacks {sorted(expected.keys() - found.keys())}"
        if self.lister == XMLRPC:
            assert {name: found[name] for name in expected} == expected
        self.counts["members"] += len(found)


def compare_listers(catalog: Catalog, seed: int) -> Counter[str]:
    """Follow the history of a seed by each lister, and return the number of compared facts of all.

    Raises AssertionError at a wrong answer.
    """
    counts: Counter[str] = Counter()
    for lister in LISTERS:
        global_random.seed(0)  # for the pauses between attempts
        scope = ListedScope(catalog, lister, seed)
        scope.follow(History.drawn(Random(seed)))
        counts += scope.counts
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    started, failed, counts = time.monotonic(), 0, Counter[str]()
    with scratch_catalog() as catalog:
        for seed in range(options.first, options.first + options.histories):
            try:
                counts += compare_listers(catalog, seed)
            except Exception:  # noqa: BLE001 - each failure is reported
                failed += 1
                print(f"seed {seed}: {traceback.format_exc()}", flush=True)
    print(f"{options.histories} histories in {time.monotonic() - started:.0f} s: {failed} failed; {dict(counts)}")
    raise SystemExit(min(failed, 1))


if __name__ == "__main__":
    main()
