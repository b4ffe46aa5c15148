"""Rows are decoded as they were dumped, where a dataset looks, and share their lists."""

import msgspec
import orjson
import pytest
from hypothesis import given

from pypi_assets.dumps.dump_format import Row, as_dumped
from pypi_assets.leveldbs.build.row_decoder import RowDecoder
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.dump_rows import dump_row, histories
from pypi_assets_tests.leveldbs.built_records import FILES, rows_of


@given(history=histories(FILES, rows_of, most=8))
def test_rows_are_decoded_as_they_were_dumped_where_a_dataset_looks(
    history: tuple[list[list[Row]], list[Row]],
) -> None:
    for dataset in DATASETS.values():
        decode = RowDecoder(dataset.columns).decode
        for dump in history[0]:
            for row in map(as_dumped, dump):
                wanted = {name: row[name] for name in row if name in {"normalized", *dataset.columns}}
                assert decode(line_of(row)) == wanted


def line_of(row: Row) -> bytes:
    return orjson.dumps(row)


def test_files_of_a_project_share_their_lists() -> None:
    decode = RowDecoder(DATASETS["modules"].columns).decode
    one, other, third = (
        decode(line_of(dump_row("demo", version, f"demo-{version}.zip", modules=modules)))
        for version, modules in (("1", ["a", "b"]), ("2", ["b"]), ("3", ["a", "b"]))
    )
    assert one["modules"] is third["modules"] is not other["modules"]


def test_lists_of_one_project_are_not_kept_for_the_next() -> None:
    decode = RowDecoder(DATASETS["modules"].columns).decode
    one, other = (decode(line_of(dump_row(name, "1", f"{name}-1.zip", modules=["a"]))) for name in ("demo", "other"))
    assert one["modules"] == other["modules"] == ["a"]
    assert [row["project"] for row in (one, other)] == ["demo", "other"]


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b'{"project": "demo"'])
def test_a_line_that_is_not_a_row_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        RowDecoder(DATASETS["modules"].columns).decode(line)
