"""The rows of a catalog that has followed an index of PyPI's shape for a year, created for some projects at a time.

They equal the rows of a full crawl at the beginning of the year and one visit in each range with changes, with all
files read and nothing pruned. Retries, drift and failures are omitted.
"""

import hashlib
import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import count, groupby
from random import Random

from benchmarks.generated import RELEASES_A_LIST, Project, RealLists, project_lists
from benchmarks.size_filling import PERIODS, BulkFill
from benchmarks.size_pages import MadeFile, Showing
from benchmarks.size_projects import IndexPlan, Shape, Unit
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import project_bucket, project_shard
from pypi_assets.catalog.reads.stored_contents import record_details
from pypi_assets.catalog.reads.stored_json import to_json
from pypi_assets.catalog.work.visit_queue import crawl_workload, range_workload, visit_kind
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionKind, DistributionRecord, ModulesGrade
from pypi_assets.distributions.requirement_names import required_projects
from pypi_assets.index.actions import Action, file_change
from pypi_assets.index.models import ChangelogEvent

YEAR_S = 365 * 86_400
CRAWL = crawl_workload(1)
_FILES_A_PACK = 500
_EXTRACT_BYTES = 900
_MOST_LISTS = 50
"""The most different lists of a project: a project with a release each night does not change its modules each night."""
_IDS_A_PERIOD = 10**8
_NOTHING_ID = 1
"""The id of the list without names, and of the snapshot without files, which many projects share."""


class CatalogRows:
    """Creates the rows of one `worker`'s share.

    `ended_at` is the end of the year, in unix seconds. `first` is the number of the first project: 0 is the largest.
    """

    def __init__(
        self, fill: BulkFill, plan: IndexPlan, worker: int, workers: int, ended_at: float, *, first: int = 0
    ) -> None:
        self._plan = plan
        self._worker, self._workers = worker, workers
        self._ended_at = ended_at
        self._first = first
        self._ids: dict[tuple[str, int], Iterator[int]] = {}
        self.packs: list[str] = []
        self._packed = 0
        self._pack_id = 0
        table = fill.table
        self.projects = table(
            "projects",
            "id",
            "normalized",
            "name",
            "bucket",
            "shard",
            "known_since",
            "page_serial",
            "named_at",
            status="active",
        )
        self.events = table("events", "serial", "project_id", "name", "version", "timestamp", "action", "kind")
        self.releases = table("releases", "id", "project_id", "version")
        self.files = table(
            "distributions",
            *("id", "project_id", "release_id", "filename", "kind", "url", "sha256", "size", "uploaded_at"),
            *("requires_python", "yanked_reason", "core_metadata", "core_metadata_sha256", "page_serial"),
        )
        self.live = table("live_intervals", "distribution_id", "start", "end")
        self.yanked = table("yanked_intervals", "distribution_id", "start", "end")
        self.changes = table("changes", "id", "distribution_id", "serial", "cause", "logged_serial")
        self.lists = table("name_lists", "id", "sha256", "length", "content", "has_roots", "has_required")
        self.roots = table("module_roots", "name", "list_id")
        self.required = table("required_names", "name", "list_id", "condition")
        self.shared = table("shared_details", "id", "sha256", "content")
        self.data = table(
            "distribution_data",
            *("distribution_id", "outcome", "error_kind", "read_at", "record_digest", "metadata_version"),
            *("requires_python", "requires_dist_id", "modules_id", "details", "shared_details_id", "pack_id"),
            *("pack_offset", "pack_length"),
            extractor_version=EXTRACTOR_VERSION,
            bytes_fetched=47_000,
            requests=2,
            seconds=0.2,
        )
        self.pack_rows = table("extract_packs", "id", "name", "size")
        self.attempts = table(
            "read_attempts",
            *("id", "distribution_id", "started_at", "outcome", "error_kind"),
            attempt=1,
            worker="worker",
            seconds=0.2,
            bytes_fetched=47_000,
            requests=2,
        )
        self.snapshots = table("snapshots", "id", "sha256", "content", "base_id", "number", "files")
        self.sightings = table(
            "sightings",
            *("id", "project_id", "visit_id", "at", "page_serial", "seen_through", "snapshot_id"),
            page_status="active",
        )
        self.visits = table("visits", "id", "project_id", "visit", "kind", "workload", "started_at")
        self.statuses = table(
            "visit_statuses",
            *("id", "visit_id", "at", "status", "page_serial", "seen_through", "snapshot_id", "page_status"),
            "logged_serial",
        )
        self.statistics = table(
            "visit_statistics",
            *("project_id", "last_seen_at", "last_visited_at", "last_successful_at", "successive_outcomes"),
            last_outcome="full",
        )

    def make(self) -> None:
        """Create all rows."""
        if self._worker == 0:
            self._enter_nothing()
        for number in range(self._first, self._plan.projects):
            if (number + number // self._workers) % self._workers == self._worker:  # large projects are evenly spaced
                _ProjectRows(self, self._plan, self._plan.shape(number)).make()

    def id(self, table: str, period: int) -> int:
        """Return a new id, greater than the ids of earlier periods, and of workers with smaller numbers."""
        if (table, period) not in self._ids:
            before = period * _IDS_A_PERIOD + self._worker * _IDS_A_PERIOD // self._workers
            self._ids[table, period] = count(before + 1)
        return next(self._ids[table, period])

    def period_at(self, serial: int) -> int:
        start, end = self._plan.start, self._plan.end
        return 0 if serial <= start else 1 + (serial - start - 1) * PERIODS // (end - start)

    def time_at(self, serial: int) -> float:
        """Return the time when the index was at `serial`, in unix seconds."""
        start, end = self._plan.start, self._plan.end
        return self._ended_at - YEAR_S + max(serial - start, 0) * YEAR_S // (end - start)

    def _enter_nothing(self) -> None:
        """Insert the list and the snapshot that many projects share. Only the first worker does this."""
        digest, packed = hashlib.sha256(b"[]").hexdigest(), zlib.compress(b"[]")
        id_ = self.id("name_lists", 0)
        self.lists.add(0, id_, digest, 0, packed, True, True)
        assert id_ == self.id("snapshots", 0) == _NOTHING_ID
        self.snapshots.add(0, id_, digest, packed, None, 0, 0)

    def _list(self, period: int, names: tuple[str, ...], *, is_modules: bool) -> int:
        id_ = self.id("name_lists", period)
        content = to_json(names)
        packed = zlib.compress(content)
        self.lists.add(period, id_, hashlib.sha256(content).hexdigest(), len(names), packed, is_modules, not is_modules)
        return id_

    def modules(self, period: int, names: tuple[str, ...]) -> int:
        id_ = self._list(period, names, is_modules=True)
        for root in {name.partition(".")[0] for name in names}:
            self.roots.add(period, root, id_)
        return id_

    def requirements(self, period: int, names: tuple[str, ...]) -> int:
        if not names:
            return _NOTHING_ID
        id_ = self._list(period, names, is_modules=False)
        for name, condition in required_projects(names).items():
            self.required.add(period, name, id_, int(condition))
        return id_

    def place_in_pack(self) -> tuple[int, int, int]:
        """Return a pack, and the offset and the length of an extract in it."""
        if self._packed % _FILES_A_PACK == 0:
            self._pack_id = self.id("extract_packs", 0)
            name = hashlib.sha256(f"pack {self._pack_id}".encode()).hexdigest()
            self.packs.append(name)
            # it contains files of all periods
            self.pack_rows.add(0, self._pack_id, name, _FILES_A_PACK * _EXTRACT_BYTES)
        place = self._packed % _FILES_A_PACK * _EXTRACT_BYTES
        self._packed += 1
        return self._pack_id, place, _EXTRACT_BYTES


class _ProjectRows:
    """Creates the rows of one project, in chronological order."""

    def __init__(self, rows: CatalogRows, plan: IndexPlan, shape: Shape) -> None:
        self._rows, self._plan, self._shape = rows, plan, shape
        self._project = Project(plan.seed, shape.number, shape.releases, shape.suffixes, shape.files)
        self._name = self._project.name
        self._normalized = self._project.normalized
        self._stem = self._normalized.replace("-", "_")
        self._draw = Random(plan.seed * 7_000_003 + shape.number)
        self._id = shape.number + 1
        self._units = plan.units(shape)
        self._showing = Showing()
        self._files: dict[int, list[MadeFile]] = {}
        self._ends: dict[int, int] = {}
        self._visits = 0
        self._newest_page = 0
        self._lists_of: tuple[int, tuple[int, int], RealLists] | None = None
        self._module_lists: dict[tuple[str, ...], int] = {}
        self._shared_ids: dict[bytes, int] = {}
        self._snapshot_ids: dict[bytes, int] = {}

    def make(self) -> None:
        plan, shape, rows = self._plan, self._shape, self._rows
        by_range = list(self._by_range())
        pages = [units[-1].last for _, units in by_range if any(unit.kind != "remark" for unit in units)]
        page_serial = 0 if shape.is_born else 1 + int(self._draw.random() * (plan.start - 1))
        self._newest_page = pages[-1] if pages else page_serial
        if not shape.is_born:
            yanked = {r for r in range(shape.releases - shape.new) if self._draw.random() < 0.01}
            for release in range(shape.releases - shape.new):
                self._enter_release(release, plan.start, is_yanked=release in yanked)
            self._visit(CRAWL, page_serial, plan.start)
        for number, units in by_range:
            serials = SerialRange(plan.range_end(number - 1), plan.range_end(number))
            for unit in units:
                self._happen(unit)
            if any(unit.kind != "remark" for unit in units):
                self._visit(range_workload(serials), units[-1].last, serials.end)
        self._enter_project(rows.period_at(self._units[0].serial) if shape.is_born else 0)

    def _by_range(self) -> Iterator[tuple[int, list[Unit]]]:
        """Yield the units by the number of the range with their last event."""
        for number, units in groupby(self._units, lambda unit: self._plan.range_of(unit.last)):
            yield number, list(units)

    def _happen(self, unit: Unit) -> None:
        version = _version(unit.release)
        match unit.kind:
            case "new":
                self._add_release(unit, version)
            case "yank":
                self._event(unit.serial, version, "yank release")
                for file in self._files[unit.release]:
                    self._showing.show(file, yanked=True)
                    period = self._rows.period_at(unit.serial)
                    self._rows.yanked.add(period, file.id, unit.serial, None)
                    self._change(file, unit.serial, Action.YANK_RELEASE)
            case "remove":
                self._event(unit.serial, version, "remove release")
                for file in self._files[unit.release]:
                    self._showing.hide(file)
                    self._ends[file.id] = unit.serial
                    self._change(file, unit.serial, Action.REMOVE_RELEASE)
            case _:
                self._event(unit.serial, None, "add Maintainer another")

    def _add_release(self, unit: Unit, version: str) -> None:
        serial = unit.serial
        if self._shape.is_born and unit.release == self._shape.releases - self._shape.new:
            self._event(serial, None, "create")
            serial += 1
        self._event(serial, version, "new release")
        self._enter_release(unit.release, serial + 1)
        for file in self._files[unit.release]:
            kind = "source" if file.filename.endswith(".tar.gz") else "py3"
            self._event(file.start, version, f"add {kind} file {file.filename}")

    def _event(self, serial: int, version: str | None, action: str) -> None:
        rows, timestamp = self._rows, int(self._rows.time_at(serial))
        kind = file_change(ChangelogEvent(self._name, version, timestamp, action, serial)).action
        rows.events.add(rows.period_at(serial), serial, self._id, self._name, version, timestamp, action, kind.value)

    def _change(self, file: MadeFile, serial: int, cause: Action | str) -> None:
        rows = self._rows
        period = rows.period_at(serial)
        rows.changes.add(period, rows.id("changes", period), file.id, serial, str(cause), serial)

    def _enter_release(self, release: int, start: int, *, is_yanked: bool = False) -> None:
        """Insert a release of the full crawl, or of the year. Its files have consecutive serials from `start` on."""
        rows = self._rows
        period = rows.period_at(start)
        is_known = period == 0
        release_id = rows.id("releases", period)
        rows.releases.add(period, release_id, self._id, _version(release))
        list_ids, lists = self._lists(release, period)
        seed = Random(f"{self._normalized}/{release}").randbytes(8)
        files = self._files[release] = []
        for at in range(self._shape.files_of(release)):
            filename = f"{self._stem}-{_version(release)}{self._shape.suffixes[at]}"
            sha256 = hashlib.sha256(seed + filename.encode()).hexdigest()
            file = MadeFile(
                rows.id("distributions", period), filename, sha256, release, start + at * (not is_known), period
            )
            files.append(file)
            self._showing.show(file, yanked=is_yanked)
            self._change(file, file.start, "baseline" if is_known else Action.ADD_FILE)
            if is_yanked:
                rows.yanked.add(period, file.id, start, None)
            self._enter_file(file, release_id, lists, list_ids, is_yanked=is_yanked)

    def _enter_file(
        self, file: MadeFile, release_id: int, lists: RealLists, list_ids: tuple[int, int], *, is_yanked: bool
    ) -> None:
        rows, digest, is_wheel = self._rows, file.sha256, file.filename.endswith(".whl")
        version, period = _version(file.release), file.period
        kind = DistributionKind.WHEEL if is_wheel else DistributionKind.SDIST
        rows.files.add(
            period,
            *(file.id, self._id, release_id, file.filename, kind.value),
            f"https://files.example.org/packages/{digest[:2]}/{digest[2:4]}/{digest[4:]}/{file.filename}",
            *(digest, int(digest[:5], 16) + 1_000),
            f"20{10 + file.release % 16:02}-{1 + file.id % 12:02}-{1 + file.id % 28:02}T12:34:56.{file.id % 10**6:06}Z",
            *(lists.requires_python, "broken" if is_yanked else None, is_wheel, digest[::-1] if is_wheel else None),
            self._newest_page,
        )
        is_broken = digest[:2] in {"00", "01", "02", "03", "04"}  # 2 % of the files
        record = self._record(file, kind, version, lists)
        details = record_details(record)
        read_at = rows.time_at(file.start)
        rows.data.add(
            period,
            *(file.id, "error" if is_broken else "data", "corrupt archive" if is_broken else None, read_at),
            *(digest[:32], None if is_broken else "2.1", lists.requires_python),
            *(
                (None, None, None, None)
                if is_broken
                else (*list_ids, details.own, self._shared(period, details.shared))
            ),
            *((None, None, None) if is_broken else rows.place_in_pack()),
        )
        if period:
            error = "corrupt archive" if is_broken else None
            rows.attempts.add(
                period, rows.id("read_attempts", period), file.id, read_at, "error" if error else "data", error
            )

    def _record(self, file: MadeFile, kind: DistributionKind, version: str, lists: RealLists) -> DistributionRecord:
        described = _described(self._project, self._name, self._normalized)
        is_wheel = kind == DistributionKind.WHEEL
        return DistributionRecord(
            file.filename,
            kind,
            self._name,
            version,
            provides_extra=lists.provides_extra,
            modules_by="archive" if is_wheel else "package_dir",
            modules_grade=ModulesGrade.EXACT,
            requires_by="METADATA" if is_wheel else "PKG-INFO",
            declared=(self._stem,),
            **described,
        )

    def _lists(self, release: int, period: int) -> tuple[tuple[int, int], RealLists]:
        epoch = release // max(RELEASES_A_LIST, -(-self._shape.releases // _MOST_LISTS))
        if self._lists_of is None or self._lists_of[0] != epoch:
            lists = project_lists(self._project, epoch * RELEASES_A_LIST)
            ids = (
                self._rows.requirements(period, self._own_requirements(lists.requires_dist, epoch)),
                self._modules(period, lists.modules),
            )
            self._lists_of = (epoch, ids, lists)
        return self._lists_of[1:]

    def _own_requirements(self, requires_dist: tuple[str, ...], epoch: int) -> tuple[str, ...]:
        """Return the requirements with a unique version in the first one, or none if there are none."""
        if not requires_dist:
            return ()
        first, *rest = requires_dist
        name, semicolon, marker = first.partition(";")
        name = re.split(r"[<>=!~ (]", name, maxsplit=1)[0]
        return (f"{name}>={epoch}.{self._shape.number}{semicolon}{marker}", *rest)

    def _modules(self, period: int, modules: tuple[str, ...]) -> int:
        """Return the id of a list that no other project has, because it contains the project's own package."""
        names = tuple(sorted({*modules, self._stem}))
        if names not in self._module_lists:
            self._module_lists[names] = self._rows.modules(period, names)
        return self._module_lists[names]

    def _shared(self, period: int, content: bytes | None) -> int | None:
        if content is None:
            return None
        if content not in self._shared_ids:
            id_ = self._shared_ids[content] = self._rows.id("shared_details", period)
            self._rows.shared.add(period, id_, hashlib.sha256(content).hexdigest(), zlib.compress(content))
        return self._shared_ids[content]

    def _visit(self, workload: str, page_serial: int, through: int) -> None:
        rows = self._rows
        period, at = rows.period_at(through), rows.time_at(through) + 60
        self._visits += 1
        visit_id = rows.id("visits", period)
        rows.visits.add(period, visit_id, self._id, self._visits, visit_kind(workload), workload, at)
        snapshot_id = self._snapshot(period)
        nothing = (None, None, None, None, None)
        rows.statuses.add(period, rows.id("visit_statuses", period), visit_id, at, "ongoing", *nothing)
        rows.statuses.add(
            period,
            rows.id("visit_statuses", period),
            visit_id,
            at + 1,
            "full",
            page_serial,
            through,
            snapshot_id,
            "active",
            through,
        )
        rows.sightings.add(
            period, rows.id("sightings", period), self._id, visit_id, at + 1, page_serial, through, snapshot_id
        )

    def _snapshot(self, period: int) -> int:
        if not self._showing.entries:
            return _NOTHING_ID
        content = self._showing.content
        digest = hashlib.sha256(content)
        known = self._snapshot_ids.get(digest.digest())
        if known is None:
            known = self._snapshot_ids[digest.digest()] = self._rows.id("snapshots", period)
            made = self._showing.store(known, content)
            packed = zlib.compress(made.content)
            files = len(self._showing.ordered)
            self._rows.snapshots.add(period, known, digest.hexdigest(), packed, made.base, made.number, files)
        return known

    def _enter_project(self, period: int) -> None:
        rows, start = self._rows, self._plan.start
        for files in self._files.values():
            for file in files:
                rows.live.add(file.period, file.id, file.start, self._ends.get(file.id))
        last = self._units[-1].serial if self._units else start
        at = rows.time_at(last) + 61
        known_since = self._units[0].serial - 1 if self._shape.is_born else start
        rows.projects.add(
            period,
            *(
                self._id,
                self._normalized,
                self._name,
                project_bucket(self._normalized),
                project_shard(self._normalized),
            ),
            *(known_since, self._newest_page, last),
        )
        rows.statistics.add(period, self._id, at, at, at, self._visits)


@lru_cache(maxsize=4)
def _described(project: Project, name: str, normalized: str) -> dict[str, object]:
    """Return the common fields of the records of a project's files."""
    draw = Random(f"{project.seed}/{project.number}/described")
    stem = normalized.replace("-", "_")
    commands = [normalized, f"{normalized}-admin"][: draw.randint(1, 2)] if draw.random() < 0.25 else []
    home = f"https://example.org/{normalized}"
    return {
        "summary": f"The {name} package: {' '.join(draw.choices(('fast', 'small', 'typed', 'modern', 'simple'), k=8))}",
        "license_expression": "MIT",
        "project_urls": (f"Homepage, {home}", f"Source, {home}/source"),
        "entry_points": {"console_scripts": dict.fromkeys(commands, f"{stem}.cli:main")} if commands else {},
    }


def _version(release: int) -> str:
    return f"{release // 50}.{release // 5 % 10}.{release % 5}"
