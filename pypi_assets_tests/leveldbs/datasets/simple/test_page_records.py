"""Each live file has one record, which depends only on its row."""

from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.distributions.served_metadata import METADATA_COLUMNS, metadata_sha256
from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.datasets.simple.page_records import (
    COLUMNS,
    FileRecord,
    change,
    decode_files,
    file_key,
    project_prefix,
    split_file_key,
)
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, Records, build, content, rows_of

assert set(METADATA_COLUMNS) <= set(COLUMNS)
DEMO = dump_row(
    "demo",
    "1.0",
    "demo-1.0-py3-none-any.whl",
    project="Demo",
    url="https://files.example.org/demo-1.0-py3-none-any.whl",
    requires_python=">=3.9",
    requires_dist=["other>=2"],
    provides_extra=["extra"],
    requires_by="METADATA",
    yanked=True,
    yanked_reason="broken",
    core_metadata_sha256="ef" * 32,
    project_status="archived",
)
PLACE = file_key("demo", "demo-1.0-py3-none-any.whl")


def record_of(row: Row) -> FileRecord:
    return decode_files([change(None, "demo", [row])[1][PLACE]])[0]


def test_record_has_the_page_entry_of_a_file(tmp_path: Path) -> None:
    records = content(build(tmp_path / "db", "simple", [[DEMO]]))
    assert list(records) == [PLACE]
    assert PLACE.startswith(project_prefix("demo"))
    assert split_file_key(PLACE) == ("demo", DEMO["filename"])
    assert decode_files([records[PLACE]])[0] == FileRecord(
        version="1.0",
        kind="wheel",
        url=str(DEMO["url"]),
        sha256="ab" * 32,
        size=10,
        requires_python=">=3.9",
        uploaded_at="2026-01-02T03:04:05Z",
        yanked="broken",
        metadata_sha256=metadata_sha256(DEMO),
        is_rendered=True,
        first_seen_at=None,
        status="archived",
    )


@pytest.mark.parametrize(
    ("columns", "yanked"),
    [
        ({"yanked": False}, False),
        ({"yanked": False, "yanked_reason": None}, False),
        ({"yanked_reason": None}, True),
        ({"yanked_reason": ""}, True),
        ({"yanked_reason": "</a> \0"}, "</a> \0"),
    ],
)
def test_yank_is_a_flag_or_a_reason(columns: Row, yanked: object) -> None:
    assert record_of({**DEMO, **columns}).yanked == yanked


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"outcome": "error"}, ("ef" * 32, False)),
        ({"requires_dist": None, "core_metadata_sha256": None}, (None, False)),
        ({"notes": ["ambiguous archive: two METADATA"]}, ("ef" * 32, False)),
    ],
)
def test_index_metadata_are_used_if_none_are_rendered(columns: Row, expected: object) -> None:
    record = record_of({**DEMO, **columns})
    assert (record.metadata_sha256, record.is_rendered) == expected


def test_removed_or_changed_file_leaves_no_records(tmp_path: Path) -> None:
    build(tmp_path / "db", "simple", [[DEMO]])
    changed = {**DEMO, "version": "1.0.0", "yanked": False}
    built = content(build(tmp_path / "db", "simple", [[changed]], create=False))
    assert decode_files([built[PLACE]])[0].version == "1.0.0"
    assert content(build(tmp_path / "db", "simple", [[tombstone_of(changed)]], create=False)) == {}


def test_last_row_of_a_file_counts() -> None:
    assert (
        change(None, "demo", [DEMO, {**DEMO, "size": 11}])[1][PLACE]
        == change(None, "demo", [{**DEMO, "size": 11}])[1][PLACE]
    )
    assert change(None, "demo", [DEMO, tombstone_of(DEMO)]) == ({}, {})


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8))
def test_records_match_the_live_rows(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]]
) -> None:
    dumps, live = history
    expected: Records = {}
    for row in live:
        expected |= change(None, str(row["normalized"]), [row])[1]
    records = content(build(tmp_path_factory.mktemp("dbs") / "db", "simple", dumps))
    assert records == expected
    assert records.keys() == {file_key(str(row["normalized"]), str(row["filename"])) for row in live}
    assert all(len(orjson.loads(value)) == len(FileRecord._fields) for value in records.values())
    assert all(set(COLUMNS) <= set(row) for row in live)
