"""Generated dumps are dumps, and the same each time."""

from collections import Counter
from pathlib import Path

from benchmarks.generated import changed_rows, generate_projects, write_full_dump, write_range_dump
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_manifest import shard_of
from pypi_assets.dumps.dump_reader import iter_dump, iter_rows
from pypi_assets.storage.store import open_storage

ROWS = 2_000


def test_a_generated_dump_reads_like_any_other(tmp_path: Path) -> None:
    projects = list(generate_projects(ROWS))
    written = []
    for name in ("one", "two"):
        storage = open_storage((tmp_path / name).as_uri())
        written.append(write_full_dump(storage, projects, shards=16))
    assert written[0] == written[1]
    assert written[0].rows == ROWS
    for file in written[0].files:
        rows = list(iter_rows(storage, written[0].directory, file))
        assert {shard_of(str(row["normalized"]), 16) for row in rows} <= {file.shard}
    rows = list(iter_dump(storage, written[0].directory))
    sizes = Counter(row["normalized"] for row in rows)
    assert sizes == {project.normalized: project.files for project in projects}
    assert max(sizes.values()) > 5 * ROWS / len(sizes)
    lists = {(row["normalized"], tuple(row["modules"] or ())) for row in rows}  # type: ignore[call-overload]
    assert len(lists) < ROWS / 4


def test_more_rows_are_more_projects_and_other_seeds_other_ones() -> None:
    fewer, more = list(generate_projects(ROWS)), list(generate_projects(2 * ROWS))
    assert more[: len(fewer) - 1] == fewer[:-1]
    assert list(generate_projects(ROWS, seed=1)) != fewer


def test_a_generated_range_has_new_files_and_tombstones_of_removed_ones(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    projects = list(generate_projects(ROWS))
    serials = SerialRange(40_000_000, 40_001_000)
    manifest = write_range_dump(storage, changed_rows(projects, 100, serials.end), serials, sequence=2)
    rows = list(iter_dump(storage, manifest.directory))
    assert len(rows) == 100
    assert 0 < sum(bool(row["tombstone"]) for row in rows) < 30
    assert {row["live_since"] for row in rows if not row["tombstone"]} == {serials.end}
