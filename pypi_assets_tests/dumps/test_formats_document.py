"""docs/formats.md says what the code does."""

import re
from pathlib import Path

from pypi_assets.dumps.rows import COLUMNS, COLUMNS_VERSION
from pypi_assets.leveldbs.depgraph import FORMAT, SHARED_FIELDS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_every_column_is_documented_in_order() -> None:
    section = DOCUMENT.split(f"### The columns, version {COLUMNS_VERSION}\n")[1].split("\n### ")[0]
    described = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert described == [(name, column.type) for name, column in COLUMNS.items()]


def test_every_field_that_distributions_share_is_documented() -> None:
    section = DOCUMENT.split(f"### `depgraph`, format {FORMAT}\n")[1]
    assert [name for name in SHARED_FIELDS if f"`{name}`" not in section] == []
