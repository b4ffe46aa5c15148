"""Durations of tests are added up by package and by test."""

import json
from pathlib import Path

import pytest

from pypi_assets_tests.durations import Durations


def test_tables_add_up_the_files_of_all_workers(tmp_path: Path) -> None:
    rows = {
        "gw0": [
            ("pypi_assets_tests/crawl/test_a.py::test_x[1]", 1.5, 0.5),
            ("pypi_assets_tests/test_b.py::test_y", 2, 1),
        ],
        "gw1": [("pypi_assets_tests/crawl/test_a.py::test_x[2]", 0.5, 0.25)],
    }
    for worker, lines in rows.items():
        (tmp_path / f"{worker}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    durations = Durations.read(tmp_path)
    crawl = durations.groups["crawl/test_a.py::test_x"]
    assert (crawl.tests, crawl.wall_s, crawl.processor_s) == (2, 2.0, 0.75)
    lines = durations.tables().splitlines()
    assert lines[2:5] == ["| `(top)` | 1 | 1.0 | 2.0 |", "| `crawl` | 2 | 0.8 | 2.0 |", "| together | 3 | 1.8 | 4.0 |"]
    assert "| `crawl/test_a.py::test_x` | 2 | 0.8 | 2.0 |" in lines


def test_folder_without_durations_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        Durations.read(tmp_path)
