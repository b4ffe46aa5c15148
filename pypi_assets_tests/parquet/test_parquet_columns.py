"""The types of the columns."""

import re
from pathlib import Path

from pypi_assets.parquet.parquet_columns import PARQUET_COLUMNS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "parquet.md").read_text(encoding="utf-8")


def test_every_type_is_documented() -> None:
    assert {column.type for column in PARQUET_COLUMNS.values()} <= set(re.findall(r"`([^`\n]+)`", DOCUMENT))
