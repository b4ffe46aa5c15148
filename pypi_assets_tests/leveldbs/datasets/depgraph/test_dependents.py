"""Dependents of a project by version and condition."""

from pathlib import Path

from pypi_assets_tests.dump_rows import dump_row, tombstone_of
from pypi_assets_tests.leveldbs.built_records import build, content, decoded


def test_project_has_its_dependents(tmp_path: Path) -> None:
    rows = [
        dump_row("demo", "1.9", "demo-1.9.tar.gz", requires_dist=["a", "B_c>1"]),
        dump_row("demo", "1.10", "demo-1.10.tar.gz", requires_dist=["a; python_version<'3'", "b.c"]),
        dump_row("demo", "1.10", "demo-1.10-py3-none-any.whl", requires_dist=["a[x]>=1", "b-c", "t; extra == 't'"]),
        dump_row("demo", "1.10", "demo-1.10.zip", requires_dist=None),
        dump_row("demo", "2", "demo-2.zip", requires_dist=["a; extra=='t'", "no requirement", "demo[all]"]),
        dump_row("other", "1", "other-1.zip", requires_dist=["a"]),
    ]
    records = decoded(build(tmp_path / "db", "depgraph", [rows]), b"r")
    assert records == {
        ("a", "demo"): {"always": ["1.9", "1.10"], "extra": ["2"]},
        ("a", "other"): {"always": ["1"]},
        ("b-c", "demo"): {"always": ["1.9", "1.10"]},
        ("demo", "demo"): {"always": ["2"]},
        ("t", "demo"): {"extra": ["1.10"]},
    }
    records = decoded(build(tmp_path / "db", "depgraph", [[tombstone_of(rows[2])]], create=False), b"r")
    assert records["a", "demo"] == {"always": ["1.9"], "marker": ["1.10"], "extra": ["2"]}
    assert records["b-c", "demo"] == {"always": ["1.9", "1.10"]}  # as the other file of the release requires
    assert ("t", "demo") not in records
    moved = [rows[0] | {"version": "1.8"}, rows[5] | {"requires_dist": ["b-c"]}]
    records = decoded(build(tmp_path / "db", "depgraph", [moved], create=False), b"r")
    assert records["b-c", "demo"] == {"always": ["1.8", "1.10"]}
    assert ("a", "other") not in records
    assert content(build(tmp_path / "db", "depgraph", [[tombstone_of(row) for row in rows]], create=False)) == {}
