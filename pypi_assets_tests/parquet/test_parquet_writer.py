"""Parquet files: what is held in memory is bounded."""

import io

import pyarrow.parquet
import pytest

from pypi_assets.parquet import parquet_writer
from pypi_assets_tests.dump_rows import dump_row


def test_row_groups_are_bounded_by_rows_and_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 5_000)
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_BYTES", 2_000_000)
    many = (dump_row("a", "1", f"a-{number:05}.zip") for number in range(12_000))
    great = (dump_row("b", "1", f"b-{number:05}.zip", modules=["m" * 50_000] * 10) for number in range(12))
    counts: list[int] = []
    for rows, groups in ((many, [4_000, 4_000, 4_000]), (great, [12])):
        buffer = io.BytesIO()
        parquet_writer.write_rows(buffer, rows, counts.append)
        metadata = pyarrow.parquet.read_metadata(buffer)
        assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == groups
    assert counts[-1] == 12
