"""Generated dumps, catalogs and indexes are reproducible, and contain the measured cases."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import text

from benchmarks.filled_catalog import fill_catalog
from benchmarks.generated import (
    SERIAL,
    changed_rows,
    generate_projects,
    project_rows,
    write_full_dump,
    write_range_dump,
)
from benchmarks.impact import BASE, QUERIES, measure, publish, rows
from benchmarks.owners import built, called_like_projects, provided, rank_of, report, wheel_rows
from benchmarks.owners_index import MOST_SHARED, Truth, all_rows, generate, namesakes, read_rivals, read_truths
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.dump_manifest import shard_of
from pypi_assets.dumps.dump_reader import iter_dump, iter_rows
from pypi_assets.dumps.full_dump import full_dump, newest_dump
from pypi_assets.lookup.import_owners import owners
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.builders import make_wheel

ROWS = 2_000


def test_generated_dump_is_readable(tmp_path: Path) -> None:
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


def test_rows_and_seed_change_the_projects() -> None:
    fewer, more = list(generate_projects(ROWS)), list(generate_projects(2 * ROWS))
    assert more[: len(fewer) - 1] == fewer[:-1]
    assert list(generate_projects(ROWS, seed=1)) != fewer


def test_generated_range_has_new_files_and_tombstones(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    projects = list(generate_projects(ROWS))
    serials = SerialRange(40_000_000, 40_001_000)
    manifest = write_range_dump(storage, changed_rows(projects, 100, serials.end), serials, sequence=2)
    rows = list(iter_dump(storage, manifest.directory))
    assert len(rows) == 100
    assert 0 < sum(bool(row["tombstone"]) for row in rows) < 30
    assert {row["live_since"] for row in rows if not row["tombstone"]} == {serials.end}


FILLED_ROWS = 1_000


@pytest.mark.nightly
def test_full_dump_has_the_rows_of_the_filled_catalog(catalog: Catalog, storage: Storage) -> None:
    rows = [as_dumped(row) for project in generate_projects(FILLED_ROWS) for row in project_rows(project)]
    assert fill_catalog(catalog, rows) == FILLED_ROWS
    manifest = full_dump(catalog, storage, 16)
    assert 0 < manifest.serials.end <= SERIAL
    assert sorted(map(repr, iter_dump(storage, manifest.directory))) == sorted(map(repr, rows))
    dump = newest_dump(catalog, manifest.kind)
    assert dump is not None
    assert audit_dump(catalog, storage, dump).ok
    if catalog.is_sqlite:
        with catalog.read() as connection:
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []


def test_rows_have_the_form_of_dumps() -> None:
    keys = [(str(row["normalized"]), str(row["version"]), str(row["filename"])) for row in rows(60)]
    assert all(one < other for one, other in pairwise(keys))
    assert len({name for name, _, _ in keys} - {BASE}) == 60


def test_queries_find_projects(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    publish(storage, 60)
    counts = [measure(storage, query)["count"] for query in QUERIES]
    assert counts[0] == counts[1] + counts[2] == 30  # requirements of the newest release accept or exclude it
    assert 30 < counts[4] <= counts[3] <= 60


def test_truth_is_divided_in_half() -> None:
    truths = read_truths()
    assert len(truths) > 1_000
    assert 0.45 < sum(truth.is_held_out for truth in truths) / len(truths) < 0.55
    by_module = {truth.module: truth for truth in truths}
    assert by_module["yaml"].project == "PyYAML"
    assert "pycrypto" in by_module["Crypto"].right
    assert all(len(truth.right) == 1 for truth in truths if not truth.others)
    assert "Products" not in by_module
    assert MOST_SHARED < 100


def test_generated_index_has_owners_rivals_and_leaked_tests() -> None:
    truths = read_truths()[:100]
    projects = generate(3_000, known=truths)
    assert projects == generate(3_000, known=truths)
    named = {project.normalized: project for project in projects}
    assert len(named) == 3_000
    for truth in truths:
        right = [named[name] for name in truth.right if name in named]
        assert any(truth.module in modules for owner in right for modules in owner.modules)
    rivals = [name for names in read_rivals().values() for name in names]
    assert len(rivals) > 2_000
    rows = list(all_rows(projects))
    assert [row["normalized"] for row in rows] == sorted(str(row["normalized"]) for row in rows)
    assert sum("tests" in row["modules"] for row in rows) > 10


def test_most_owners_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    known = [truth for truth in read_truths() if not truth.is_held_out][-100:]
    truths = [*known, *namesakes(100)]
    with built(list(all_rows(generate(1_500, known=known))), 1_000_000) as snapshot:
        answers = owners(snapshot, [truth.module for truth in truths])
    report("of a test", truths, answers)
    ranks = [rank_of(truth, answer) for truth, answer in zip(truths, answers, strict=True)]
    assert sum(rank == 1 for rank in ranks) > 0.9 * len(ranks)
    shown = capsys.readouterr().out
    assert f"| all | {len(truths)} | {sum(rank == 1 for rank in ranks)} (" in shown
    assert shown.count("miss: ") == sum(rank != 1 for rank in ranks)


def test_index_is_generated_from_wheels(tmp_path: Path) -> None:
    make_wheel(tmp_path, "PyYAML", "6.0", files={"yaml/__init__.py": ""})
    make_wheel(tmp_path, "demo", "1.0", files={"demo/__init__.py": ""}, requires_dist=["pyyaml"])
    (tmp_path / "no-wheel.whl").write_bytes(b"")
    rows = wheel_rows([tmp_path])
    assert [row["normalized"] for row in rows] == ["demo", "pyyaml"]
    truths = [Truth("yaml", "PyYAML", ()), Truth("old", "PyYAML", ()), Truth("x", "unknown", ())]
    assert provided(truths, rows) == (truths[:1], truths[1:2])
    assert [truth.module for truth in called_like_projects(rows)] == ["demo"]
    with built(rows, 1) as snapshot:
        assert [rank_of(truths[0], answer) for answer in owners(snapshot, ["yaml"])] == [1]
