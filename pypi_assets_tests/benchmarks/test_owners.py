"""The truth is divided once and for all, the index is the same each time, and misses are counted."""

from pathlib import Path

import pytest

from benchmarks.owners import built, called_like_projects, provided, rank_of, report, wheel_rows
from benchmarks.owners_index import MOST_SHARED, Truth, all_rows, generate, namesakes, read_rivals, read_truths
from pypi_assets.lookup.owners import owners
from pypi_assets_tests.builders import make_wheel


def test_the_truth_is_divided_in_half() -> None:
    truths = read_truths()
    assert len(truths) > 1_000
    assert 0.45 < sum(truth.is_held_out for truth in truths) / len(truths) < 0.55
    by_module = {truth.module: truth for truth in truths}
    assert by_module["yaml"].project == "PyYAML"
    assert "pycrypto" in by_module["Crypto"].right
    assert all(len(truth.right) == 1 for truth in truths if not truth.others)
    assert "Products" not in by_module
    assert MOST_SHARED < 100


def test_an_index_has_owners_rivals_and_leaked_tests() -> None:
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


def test_owners_are_mostly_found(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_wheels_are_an_index_too(tmp_path: Path) -> None:
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
