"""docs/formats.md says what the code does."""

import re
from pathlib import Path

import orjson

from pypi_assets.dumps.rows import COLUMNS, COLUMNS_VERSION
from pypi_assets.leveldbs.depgraph import FORMAT, _value
from pypi_assets_tests.dump_rows import dump_row

DOCUMENT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_every_column_is_documented_in_order() -> None:
    section = DOCUMENT.split(f"### The columns, version {COLUMNS_VERSION}\n")[1].split("\n### ")[0]
    described = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert described == [(name, column.type) for name, column in COLUMNS.items()]


def test_every_field_of_a_distribution_is_documented() -> None:
    section = DOCUMENT.split(f"### `depgraph`, format {FORMAT}\n")[1]
    fields = orjson.loads(_value(dump_row("demo", "1", "demo-1.zip")))
    assert [name for name in fields if f"`{name}`" not in section] == []
