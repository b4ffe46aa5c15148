"""Follow drawn histories by the list of projects alone, and count how the catalog differs from the truth, by kind.

`python -m pypi_assets_tests.crawl.listed_truth --histories 500` prints the counts, and `--index FOLDER` those of a
recorded history, in the folder of a devindex. A difference of another kind than the docs name (docs/indexes.md) raises
AssertionError with its history.
"""

# ruff: noqa: T201 - it prints counts

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random

from packaging.utils import canonicalize_name

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.derived.file_history import LISTED
from pypi_assets.catalog.ledger.range_ledger import SIMPLE
from pypi_assets.catalog.observed.looks import LIST_AGE_S
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.moments import serial_of
from pypi_assets.catalog.reports.project_history import HistoryItem, read_history
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.devindex.index_state import IndexOperation
from pypi_assets.index.actions import Action
from pypi_assets.index.models import ListedProject
from pypi_assets_tests.crawl.followers import REFUSED, Follower, SilentIndex, follower
from pypi_assets_tests.crawl.model_steps import ENDINGS, file_of

Operation = tuple[str, str, str | None, str | None]
"""What the index does: kind, project, version and filename."""
PROJECTS = ("Alpha", "beta.pkg", "gamma")
VERSIONS = ("1.0", "2.0")
EXACT = "change at its own serial"
LATER = "change at a later serial, within the two times"
CAUSE = "cause among the possible ones"
SEVERAL = "cause unknown, since several changes came between two looks"
SHORT = "short-lived change, not seen"
STATES = "state at the serial of a list, exact"
TIMES = "answer at a time, not from its future"
KINDS = (EXACT, LATER, CAUSE, SEVERAL, SHORT, STATES, TIMES)
_WEIGHTS = {
    "add": 10,
    "remove-file": 4,
    "remove-release": 2,
    "yank": 3,
    "unyank": 2,
    "quarantine-release": 1,
    "unquarantine-release": 2,
    "remove-project": 1,
    "quarantine": 1,
    "unquarantine": 2,
    "docupdate": 2,
}
_OF_PROJECT = {"remove-project", "quarantine", "unquarantine", "docupdate"}
_ACTIONS = {
    "add": Action.ADD_FILE,
    "remove-file": Action.REMOVE_FILE,
    "remove-release": Action.REMOVE_RELEASE,
    "remove-project": Action.REMOVE_PROJECT,
    "yank": Action.YANK_RELEASE,
    "unyank": Action.UNYANK_RELEASE,
    "quarantine": Action.QUARANTINE_PROJECT,
    "unquarantine": Action.UNQUARANTINE_PROJECT,
    "quarantine-release": Action.QUARANTINE_RELEASE,
    "unquarantine-release": Action.UNQUARANTINE_RELEASE,
}


@dataclass(frozen=True, slots=True)
class TrueChange:
    """What an operation did to one file, at `serial` and the time `at`: its state is whether it is yanked, or None."""

    serial: int
    at: float
    action: Action
    before: bool | None
    after: bool | None


@dataclass
class ListedIndex(SilentIndex):
    """An index without a changelog, whose list comes from a cache of up to 35 minutes. It records each true change."""

    times: list[tuple[int, float]] = field(default_factory=list)
    true_changes: dict[str, dict[str, list[TrueChange]]] = field(default_factory=dict)
    operations: list[tuple[int, float, str]] = field(default_factory=list)

    def apply(self, kind: str, project: str, version: str | None, filename: str | None) -> None:
        """Apply an operation, and record the files that it changes."""
        normalized = canonicalize_name(project)
        before, serial = dict(self.shown[self.serial]), self.serial
        if kind == "docupdate":
            self.record_event(project, None, kind)
        else:
            self.do(kind, project, version, filename)
        self.times.append((self.serial, self.clock()))
        if self.serial > serial and kind != "docupdate":
            self.operations.append((self.serial, self.clock(), normalized))
        after = dict(self.shown[self.serial])
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            if was != now:
                change = TrueChange(self.serial, self.clock(), _ACTIONS[kind], was, now)
                self.true_changes.setdefault(normalized, {}).setdefault(name, []).append(change)

    def serial_at(self, moment: float) -> int:
        return max((serial for serial, at in self.times if at <= moment), default=0)

    @contextmanager
    def iter_listing(self, *, newer_than: int | None = None) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        self._answer()
        age = self.random.choice([0.0, self.random.uniform(0.0, LIST_AGE_S)])
        serial = self.serial_at(self.clock() - age)
        then = [[one for one in entries if one.since <= serial][-1:] for entries in self._listed.values()]
        listed = [one for found in then for one in found]
        yield serial, (ListedProject(one.name, one.serial) for one in listed if one.serial is not None)


@dataclass(frozen=True, slots=True)
class Step:
    """Operations, each after a pause in seconds; then a pause, and a look at the list."""

    operations: list[tuple[float, Operation]]
    pause_s: float


def draw(random: Random) -> Operation:
    [kind] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    project, version = random.choice(PROJECTS), random.choice(VERSIONS)
    filename = file_of(project, version, random.choice(ENDINGS[:3])) if kind in {"add", "remove-file"} else None
    return kind, project, None if kind in _OF_PROJECT else version, filename


def compare_drawn(seed: int) -> Counter[str]:
    """Follow the history of a seed, and return the counts of `compare_history`."""
    random = Random(seed)
    first = [draw(random) for _ in range(random.randrange(8))]
    steps = []
    for _ in range(random.randrange(1, 7)):
        pauses = [random.choice([0.0, 10.0, 600.0, 3_000.0]) for _ in range(random.randrange(6))]
        steps.append(Step([(pause_s, draw(random)) for pause_s in pauses], random.choice([0.0, 60.0, 2_000.0])))
    return compare_history(first, steps, f"seed {seed}", Random(seed))


def compare_recorded(folder: Path, operations_each: int = 2) -> Counter[str]:
    """Follow the history in the folder of a devindex, with a look after each few operations."""
    lines = (folder / "history.jsonl").read_bytes().splitlines()
    recorded = [IndexOperation.from_record(json.loads(line)) for line in lines]
    known: list[tuple[float, Operation]] = []
    now = None
    for one in recorded:
        at = datetime.fromisoformat(one.at).timestamp()
        pause_s = 0.0 if now is None else max(at - now, 0.0)  # times may run backwards
        now = at if now is None else max(at, now)
        filename = one.filename if one.file is None else one.file.filename
        known.append((pause_s, (one.kind.value, one.project, one.version, filename)))
    begun, rest = known[: len(known) // 3], known[len(known) // 3 :]
    steps = [Step(rest[start : start + operations_each], LIST_AGE_S) for start in range(0, len(rest), operations_each)]
    return compare_history([operation for _, operation in begun], steps, str(folder), Random(0))


def compare_history(first: list[Operation], steps: list[Step], seed: str, random: Random) -> Counter[str]:
    """Follow a history by the list, and return the number of facts and differences of each kind.

    Raises AssertionError, which names `seed`, at a difference of no documented kind.
    """
    auto = follower(SIMPLE)
    index = auto.index = ListedIndex(trouble=REFUSED, random=random, clock=lambda: auto.now)
    for operation in first:
        index.apply(*operation)
    auto.now += LIST_AGE_S + 1  # so that the first list is of a time when the index had projects
    crawl_full(auto.crawler)
    found: Counter[str] = Counter()
    answered = {auto.complete: index.shown[auto.complete]}
    moments = [auto.now]
    for step in steps:
        for pause_s, operation in step.operations:
            auto.now += pause_s
            index.apply(*operation)
        auto.now += step.pause_s
        crawl_incremental(auto.crawler)
        moments.append(auto.now + 1)
        answered[auto.complete] = index.shown[auto.complete]
    exact = [serial for serial in answered if auto.answerable(serial)]
    for serial in exact:
        assert auto.live(serial) == answered[serial], f"{seed}: the state at {serial}"
        found[STATES] += 1
    found[TIMES] += _compare_moments(auto, index, moments, seed)
    for project in sorted(index.true_changes):
        found += _compare_project(auto, index, project, min(answered), max(exact), seed)
    return found


def _compare_moments(auto: Follower, index: ListedIndex, moments: list[float], seed: str) -> int:
    count = 0
    auto.now += 1_000
    catalog = replace(auto.catalog, clock=lambda: auto.now)
    for before, after in pairwise(moments):
        for moment in (before, (before + after) / 2):
            try:
                serial = serial_of(catalog, datetime.fromtimestamp(moment, UTC))
            except CatalogError:
                continue  # the page of a span was newer than its list
            assert serial <= index.serial_at(moment), f"{seed}: {moment} means {serial}"
            count += 1
    return count


def _compare_project(
    auto: Follower, index: ListedIndex, project: str, first: int, last: int, seed: str
) -> Counter[str]:
    with auto.catalog.read() as connection:
        known = find_project(connection, project)
        history = [] if known is None else read_history(connection, known)
    found: Counter[str] = Counter()
    listed = [item for item in history if item.kind == LISTED]
    operations = [(serial, at) for serial, at, name in index.operations if name == project]
    for name, true_changes in sorted(index.true_changes[project].items()):
        found += _compare_file(name, true_changes, operations, listed, first, last, seed)
    return found


def _compare_file(
    name: str,
    true_changes: list[TrueChange],
    operations: list[tuple[int, float]],
    listed: list[HistoryItem],
    first: int,
    last: int,
    seed: str,
) -> Counter[str]:
    """Compare the changes of one file with the true ones from serial `first` to the last exact serial, `last`.

    Each is explained by a true change, and each true change is shown or short-lived.
    """
    found: Counter[str] = Counter()
    rest = [change for change in true_changes if change.serial > first]
    before = first
    for item in listed:
        since, before = before, item.serial
        kinds = [kind for kind in ("live", "away", "yanked", "unyanked") if name in getattr(item, kind)]
        if not kinds:
            continue
        upto = [change for change in rest if change.serial <= item.serial]
        rest = rest[len(upto) :]
        text = f"{seed}: {name} {kinds} at serial {item.serial}, between {item.not_before} and {item.at}: {upto}"
        match = next((change for change in reversed(upto) if _is_of(change, kinds[0])), None)
        assert match is not None, text
        assert item.at is not None, text
        assert match.at <= item.at, text
        assert item.not_before is None or match.at > item.not_before, text
        # the page can be newer than the list, so it can also show operations after the serial
        within = [serial for serial, at in operations if since < serial and at <= item.at]
        if len(within) == 1:
            assert match.action in item.possible_kinds, f"{text}: {match.action} is not one of {item.possible_kinds}"
        found[EXACT if match.serial == item.serial else LATER] += 1
        found[CAUSE if match.action in item.possible_kinds else SEVERAL] += 1
        found[SHORT] += len(upto) - 1
    left = [change for change in rest if change.serial <= last]
    if left:
        assert left[0].before == left[-1].after, f"{seed}: {name} changed unseen: {left}"
        found[SHORT] += len(left)
    return found


def _is_of(change: TrueChange, kind: str) -> bool:
    match kind:
        case "live":
            return change.before is None
        case "away":
            return change.after is None
        case "yanked":
            return bool(change.after) and not change.before
        case _:
            return change.before is True and change.after is False


def compare(seeds: range) -> Counter[str]:
    """Return the sum of the counts of these seeds."""
    total: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    for seed in seeds:
        total += compare_drawn(seed)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--index", type=Path, help="the folder of a devindex, whose history is followed instead")
    options = parser.parse_args()
    if options.index is not None:
        total = compare_recorded(options.index)
    else:
        total = compare(range(options.first, options.first + options.histories))
    for kind in KINDS:
        print(f"{total[kind]:8} {kind}")


if __name__ == "__main__":
    main()
