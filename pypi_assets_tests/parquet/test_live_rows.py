"""What is live after all ranges are applied to a full dump."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet import export as export_module
from pypi_assets.parquet import parquet_writer
from pypi_assets.parquet.export import export_parquet
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.dump_rows import dump_row, histories, in_order, write_dump
from pypi_assets_tests.examples import examples
from pypi_assets_tests.parquet.exports import exported, rows_of
from pypi_assets_tests.small_catalog import small_catalog

_FILES = [
    (project, version, f"{project}-{number}.zip") for project in "ab" for version in ("1", "1.0") for number in (1, 2)
]


@st.composite
def drawn_rows(draw: st.DrawFn, file: tuple[str, str, str], serial: int) -> Row:
    return dump_row(
        *file,
        modules=draw(st.none() | st.lists(st.sampled_from(["m", "m.n", "é\0"]), max_size=2)),
        uploaded_at=draw(st.sampled_from([None, "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05+02:00"])),
        size=draw(st.none() | st.integers(0, 2**40)),
        yanked_reason=draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
        live_since=serial,
    )


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(
    history=histories(_FILES, drawn_rows, most=4),
    shards=st.sampled_from([1, 16]),
    group=st.integers(1, 3),
    together=st.sampled_from([-1, 1, 3, 1_000]),
)
def test_the_rows_are_those_of_the_dumps_after_their_tombstones(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[list[list[Row]], list[Row]],
    shards: int,
    group: int,
    together: int,
) -> None:
    dumps, live = history
    folder = tmp_path_factory.mktemp("history")
    storage = open_storage((folder / "storage").as_uri())
    for number, rows in enumerate(dumps):
        write_dump(storage, SerialRange(number * 10, number * 10 + 10), rows, shards=1 if number else shards)
    small = small_catalog(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_writer, "ROW_GROUP_ROWS", group)
        patch.setattr(parquet_writer, "_BATCH_ROWS", group)
        patch.setattr(export_module, "ROWS_OF_SEVERAL_SHARDS", together)
        restore_index(small.catalog, storage)
        export = export_parquet(small.catalog, storage).export
    found = rows_of(storage, export)
    assert in_order(found) == [exported(row) for row in in_order(live)]
    small.catalog.close()
