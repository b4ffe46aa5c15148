"""docs/formats.md describes what the code does."""

import re
from pathlib import Path

from pypi_assets.catalog.publications.dump_facts import COLUMNS, COLUMNS_VERSION
from pypi_assets.leveldbs.datasets.depgraph.records import FEW_FILES, FORMAT, OWN_FIELDS, SHARED_FIELDS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_every_column_is_documented_in_order() -> None:
    section = DOCUMENT.split(f"### The columns, version {COLUMNS_VERSION}\n")[1].split("\n### ")[0]
    described = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert described == [(name, column.type) for name, column in COLUMNS.items()]


def test_the_fields_of_distributions_are_documented() -> None:
    section = DOCUMENT.split(f"### `depgraph`, format {FORMAT}\n")[1].split("\n## ")[0]
    named = re.findall(r"`(\w+)`", section)
    for fields in (OWN_FIELDS, SHARED_FIELDS):
        start = named.index(fields[0], named.index("build") if fields is SHARED_FIELDS else 0)
        assert tuple(named[start : start + len(fields)]) == fields
    assert f"up to {FEW_FILES} files" in section
