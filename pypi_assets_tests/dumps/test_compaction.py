"""Compactions of real dumps: their rows, the ranges they join, and the state after a race or a kill."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select, update

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpFile, DumpKind, Leaves, all_leaves
from pypi_assets.catalog.publications.dump_registry import (
    Dump,
    DumpDroppedError,
    DumpState,
    begin_commit,
    committed_dumps,
    committing_dumps,
    known_dumps,
    mark_committed,
    open_compaction,
    open_full_dump,
    read_known_dumps,
    recorded_files,
)
from pypi_assets.catalog.tables import distributions, projects, releases
from pypi_assets.dumps.compaction import GROWTH, compact, join, joined_rows, next_join, run_to_join
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_format import DumpDamagedError, Row
from pypi_assets.dumps.dump_manifest import DumpManifest, committed_directories, file_path, manifest_path, read_manifest
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import (
    commit,
    commit_pending_dumps,
    missing_ranges,
    write_file,
    write_range,
    write_shard,
)
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.demo_catalog import add_range, dumped_storage
from pypi_assets_tests.fewer_columns import FEWER_COLUMNS, cut, cut_dumps
from pypi_assets_tests.kills import killed_at
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    small.add(1, "Demo.Pkg", "1.0", "demo_pkg-1.0.tar.gz")
    small.add(2, "other", "2", "other-2.tar.gz")
    small.complete(100)
    yield small
    small.catalog.close()


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path) -> Storage:
    """Return a storage folder with a full dump up to serial 100."""
    return dumped_storage(small, tmp_path)


def add_ranges(small: SmallCatalog, storage: Storage, *starts: int) -> list[Dump]:
    for start in starts:
        add_range(small, storage, start, serials=10)
    return list(cover(small.catalog).dumps[1:])


def live(small: SmallCatalog, storage: Storage) -> dict[tuple[object, object], Row]:
    """Return the live rows of the cover, after applying its rows and tombstones in order."""
    found: dict[tuple[object, object], Row] = {}
    for directory in cover(small.catalog).directories:
        for row in iter_dump(storage, directory):
            found[row["normalized"], row["filename"]] = row
    return {key: row for key, row in found.items() if not row["tombstone"]}


def test_ranges_are_joined_once_it_pays_off(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110, 120)
    before = live(small, storage)
    assert list(compact(small.catalog, storage)) == []
    joined = add_ranges(small, storage, 130)
    [manifest] = compact(small.catalog, storage)
    assert (manifest.directory, manifest.kind, manifest.rows) == ("100-140", DumpKind.COMPACTED, 8)
    assert manifest.inputs == ("100-110", "110-120", "120-130", "130-140")
    assert manifest.joined == Leaves.of(manifest.inputs) == all_leaves(dump.leaves for dump in joined)
    assert manifest.sequence == min(dump.sequence for dump in joined)
    assert read_manifest(storage, "100-140") == manifest
    assert cover(small.catalog).directories == ("0-100", "100-140")
    assert live(small, storage).keys() == before.keys() | {("new", "new-130.tar.gz")}
    assert list(compact(small.catalog, storage)) == []
    assert missing_ranges(small.catalog) == []
    assert audit_dump(small.catalog, storage, cover(small.catalog).dumps[1]).ok
    # a compaction of compactions counts the original ranges
    add_ranges(small, storage, 140, 150)
    assert [one.directory for one in compact(small.catalog, storage, growth=1)] == ["100-160"]
    assert cover(small.catalog).dumps[1].inputs == ("100-140", "140-150", "150-160")
    assert cover(small.catalog).dumps[1].leaves == Leaves.of(f"{start}-{start + 10}" for start in range(100, 160, 10))
    assert audit_dump(small.catalog, storage, cover(small.catalog).dumps[1]).ok


def test_documented_reading_gives_the_live_rows(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110)
    small.remove(122, "other-2.tar.gz")
    add_ranges(small, storage, 120)
    list(compact(small.catalog, storage, growth=1))
    assert len(committed_directories(storage)) == 5
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    [example] = re.findall(r"## Read dumps from Python\n\n```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example.replace("file:///srv/pypi-assets", storage.url).replace("0-1200", "0-100"), names)
    assert names["live"] == live(small, storage)
    assert ("other", "other-2.tar.gz") not in names["live"]
    assert list(names["frame"].columns) == ["project", "filename"]


def test_range_held_by_a_compaction_is_not_written_again(small: SmallCatalog, storage: Storage) -> None:
    first, *_ = add_ranges(small, storage, 100, 110)
    [manifest] = compact(small.catalog, storage, growth=1)
    storage.delete(file_path(first.directory, recorded_files(small.catalog, first)[0].name))
    assert write_range(small.catalog, storage, SerialRange(100, 110)) == manifest


def test_file_that_moves_to_another_release_stays_one_file(small: SmallCatalog, storage: Storage) -> None:
    add_range(small, storage, 100, serials=10)
    small.yank(112, "new-100.tar.gz")
    with small.catalog.write() as connection:
        project = connection.scalar(select(projects.c.id).where(projects.c.normalized == "new"))
        connection.execute(insert(releases).values(id=99, project_id=project, version="0-early"))
        connection.execute(
            update(distributions).where(distributions.c.filename == "new-100.tar.gz").values(release_id=99)
        )
    write_range(small.catalog, storage, small.complete(120))
    [manifest] = compact(small.catalog, storage, growth=1)
    rows = list(iter_dump(storage, manifest.directory))
    assert [(row["version"], row["filename"], row["tombstone"]) for row in rows] == [
        ("0-early", "new-100.tar.gz", False),
        ("100", "new-100.zip", True),
    ]


def test_dumps_with_other_columns_are_not_joined(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110, 120, 130, 140)
    before = live(small, storage)
    cut_dumps(small.catalog, storage, "0-100", "100-110", "110-120")
    manifests = list(compact(small.catalog, storage, growth=1))
    assert [manifest.directory for manifest in manifests] == ["100-120", "120-150"]
    assert [manifest.columns for manifest in manifests] == [FEWER_COLUMNS, tuple(COLUMNS)]
    assert [read_manifest(storage, manifest.directory) for manifest in manifests] == manifests
    assert cover(small.catalog).directories == ("0-100", "100-120", "120-150")
    assert {key: cut(row) for key, row in live(small, storage).items()} == {
        key: cut(row) for key, row in before.items()
    }
    assert cover(small.catalog).columns == FEWER_COLUMNS


def test_corrupt_input_is_detected_and_nothing_is_written(small: SmallCatalog, storage: Storage) -> None:
    first, *_ = add_ranges(small, storage, 100, 110)
    path = file_path(first.directory, recorded_files(small.catalog, first)[0].name)
    whole = storage.get(path)
    storage.put(path, storage.get(file_path("110-120", "python_distribution_data0000.json.gz")))
    with pytest.raises(DumpDamagedError, match="100-110"):
        list(compact(small.catalog, storage, growth=1))
    assert cover(small.catalog).directories == ("0-100", "100-110", "110-120")
    storage.put(path, whole)
    assert [manifest.directory for manifest in compact(small.catalog, storage, growth=1)] == ["100-120.2"]


def test_one_process_at_a_time_compacts(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110)
    with lease(small.catalog, "compact dumps"), pytest.raises(LeaseTakenError):
        list(compact(small.catalog, storage, growth=1))
    # a process that lost its lease and resumes commits nothing twice
    joined = cover(small.catalog).dumps[1:]
    stalled = open_compaction(small.catalog, joined)
    write_file(small.catalog, storage, stalled, 0, joined_rows(storage, joined))
    [manifest] = compact(small.catalog, storage, growth=1)
    assert manifest.directory == "100-120.2"
    with pytest.raises(DumpDroppedError, match=naming("100-120")):
        commit(small.catalog, storage, stalled)
    assert committed_directories(storage) == ["0-100", "100-110", "100-120.2", "110-120"]


def test_compaction_overtaken_by_another_is_dropped(small: SmallCatalog, storage: Storage) -> None:
    joined = add_ranges(small, storage, 100, 110)
    slow = open_compaction(small.catalog, joined)
    write_file(small.catalog, storage, slow, 0, joined_rows(storage, joined))
    join(small.catalog, storage, joined)
    with pytest.raises(DumpDroppedError):
        commit(small.catalog, storage, slow)


def test_no_compaction_crosses_the_end_of_an_open_full_dump(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110)
    opened = open_full_dump(small.catalog, 1)
    assert opened.serials.end == 120
    joined = add_ranges(small, storage, 120, 130)
    with pytest.raises(DumpDroppedError):
        join(small.catalog, storage, joined)
    assert [manifest.directory for manifest in compact(small.catalog, storage, growth=1)] == ["100-120", "120-140"]
    full_dump(small.catalog, storage, 1)
    assert cover(small.catalog).directories == ("0-120", "120-140")


def test_full_dump_committed_meanwhile_drops_a_compaction(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110)

    def dumped(_rows: int) -> None:
        if len(cover(small.catalog).dumps) > 1:
            full_dump(small.catalog, storage, 1)

    assert list(compact(small.catalog, storage, growth=1, progress=dumped)) == []
    assert cover(small.catalog).directories == ("0-120",)


@pytest.mark.parametrize("written", [False, True])
def test_compaction_stopped_before_a_full_dump_is_dropped(small: SmallCatalog, storage: Storage, written: bool) -> None:
    """The compaction was in the commit phase, with or without its manifest."""
    joined = add_ranges(small, storage, 100, 110)
    frozen = open_compaction(small.catalog, joined)
    write_file(small.catalog, storage, frozen, 0, joined_rows(storage, joined))
    files = begin_commit(small.catalog, frozen)
    if written:
        storage.put(manifest_path(frozen.directory), _manifest(frozen, files).encode())
    dump = open_full_dump(small.catalog, 1)
    write_shard(small.catalog, storage, dump, 0)
    commit(small.catalog, storage, dump)
    assert commit_pending_dumps(small.catalog, storage) == committing_dumps(small.catalog) == []
    assert frozen.directory not in committed_directories(storage)
    with pytest.raises(DumpDroppedError):
        mark_committed(small.catalog, frozen)
    assert cover(small.catalog).directories == ("0-120",)


def test_compaction_committed_by_two_processes_is_committed(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process notes the manifest while the other checks whether the compaction may be committed."""
    small, storage = small_catalog(tmp_path, database_url), open_storage((tmp_path / "storage").as_uri())
    small.complete(100)
    full_dump(small.catalog, storage, 1)
    joined = add_ranges(small, storage, 100, 110)
    frozen = open_compaction(small.catalog, joined)
    write_file(small.catalog, storage, frozen, 0, joined_rows(storage, joined))
    storage.put(manifest_path(frozen.directory), _manifest(frozen, begin_commit(small.catalog, frozen)).encode())
    noting = Thread(target=mark_committed, args=(small.catalog, frozen))

    def known(connection: Connection) -> list[Dump]:
        if noting.ident is None:
            noting.start()
            noting.join(0.5)  # it must wait for the check
        return read_known_dumps(connection)

    monkeypatch.setattr("pypi_assets.catalog.publications.dump_registry.read_known_dumps", known)
    commit_pending_dumps(small.catalog, storage)
    noting.join()
    assert cover(small.catalog).directories == ("0-100", "100-120")
    assert frozen.directory in committed_directories(storage)
    small.catalog.close()


def _manifest(dump: Dump, files: Sequence[DumpFile]) -> DumpManifest:
    return DumpManifest(
        dump.kind, dump.serials, dump.directory, dump.sequence, 1, dump.inputs, tuple(files), joined=dump.joined
    )


@pytest.mark.parametrize("step", range(1, 5))
def test_kill_at_any_write_ends_in_the_same_state(small: SmallCatalog, storage: Storage, step: int) -> None:
    add_ranges(small, storage, 100, 110)
    before = live(small, storage)
    with killed_at(step) as reached:
        list(compact(small.catalog, storage, growth=1))
    assert reached
    assert live(small, storage) == before
    list(compact(small.catalog, storage, growth=1))
    assert len(cover(small.catalog).dumps) == 2
    assert live(small, storage) == before
    assert {dump.state for dump in known_dumps(small.catalog)} == {DumpState.COMMITTED}
    assert set(committed_directories(storage)) == {dump.directory for dump in committed_dumps(small.catalog)}


def test_runs_do_not_cross_dumps_in_use_and_newer_ranges_wait(small: SmallCatalog, storage: Storage) -> None:
    add_ranges(small, storage, 100, 110, 120, 130, 140)
    dumps, now = known_dumps(small.catalog), small.catalog.clock()

    def joined(held: Sequence[int], later_s: float = 0.0) -> str:
        found = next_join(dumps, held, now + later_s, growth=1)
        return f"{found[0].serials.start}-{found[-1].serials.end}" if found else ""

    assert joined([]) == "100-150"
    assert joined([120]) == joined([120, 140]) == "100-120"
    assert joined([110, 130]) == ""
    assert joined([110, 130], 25 * 3600) == "110-130"
    assert joined([150, 150]) == "100-150"


def test_year_of_ranges_leaves_few_dumps_and_few_rewrites() -> None:
    """Add one range every ten minutes, with sizes in ranges. Compactions run after each range, or at intervals."""
    for every, count in ((1, 9_000), (6, 52_560), (52_560, 52_560)):
        sizes: list[int] = []
        written: list[int] = []  # the maximum number of rewrites of the rows of each size
        longest = 0
        for number in range(1, count + 1):
            sizes.append(1)
            written.append(0)
            if number % every == 0:
                while (run := run_to_join(sizes))[1]:
                    start, end = run
                    sizes[start:end] = [sum(sizes[start:end])]
                    written[start:end] = [max(written[start:end]) + 1]
                longest = max(longest, len(sizes))
        assert longest <= 2.5 * math.log2(count)
        assert max(written) <= math.log(count, GROWTH)


@given(st.lists(st.integers(1, 100), max_size=40), st.integers(1, 6), st.integers(2, 10))
def test_run_to_join_meets_its_definition_and_is_found(sizes: list[int], growth: int, most: int) -> None:
    def pays(start: int, end: int) -> bool:
        run = sizes[start:end]
        return 2 <= len(run) <= most and sum(run) >= growth * max(run)

    start, end = run_to_join(sizes, growth, most)
    found = [(one, other) for one in range(len(sizes)) for other in range(one, len(sizes) + 1) if pays(one, other)]
    first = min(found, default=(0, 0))[0]
    assert (start, end) == max([one for one in found if one[0] == first], default=(0, 0))
