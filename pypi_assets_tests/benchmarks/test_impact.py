"""The generated index has what the measurement is about, and each query finds it."""

from itertools import pairwise
from pathlib import Path

from benchmarks.impact import BASE, QUERIES, measure, publish, rows
from pypi_assets.storage.store import open_storage


def test_rows_come_as_dumps_have_them() -> None:
    keys = [(str(row["normalized"]), str(row["version"]), str(row["filename"])) for row in rows(60)]
    assert all(one < other for one, other in pairwise(keys))
    assert len({name for name, _, _ in keys} - {BASE}) == 60


def test_each_query_finds_projects(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    publish(storage, 60)
    counts = [measure(storage, query)["count"] for query in QUERIES]
    assert counts[0] == counts[1] + counts[2] == 30  # requirements of the newest release accept or exclude
    assert 30 < counts[4] <= counts[3] <= 60
