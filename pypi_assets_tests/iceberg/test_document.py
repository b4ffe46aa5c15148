"""The code of docs/formats.md reads the tables with pyiceberg, polars and DuckDB, and gives the catalog's answers."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.iceberg.table_columns import TABLES
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.iceberg.tables import OPTIONS, updated
from pypi_assets_tests.small_catalog import SmallCatalog

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
CODE = re.findall(
    r"```python\n(.*?)```", PAGE.partition("\n## Query Iceberg tables\n")[2].partition("\n## ")[0], re.DOTALL
)
REFERENCE = PAGE.partition("\n## Iceberg tables\n")[2].partition("\n## ")[0]


def test_code_of_the_page_gives_the_answers_of_the_catalog(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # otherwise it warns that a plug-in would be faster
    small.add(110, "PyYAML", "6", "pyyaml-6.zip", modules=("yaml", "yaml.loader"), requires_dist=("Requests>=2",))
    add_range(small, storage, 100)
    updated(small.catalog, storage)
    small.remove(160, "other-2.tar.gz")
    add_range(small, storage, 150)
    updated(small.catalog, storage)
    code = "\n".join(CODE).replace("/srv/pypi-assets", str(storage.root)).replace("serial-1350", "serial-150")
    assert "serial-150" in code
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["users"].to_pylist() == [{"project": "PyYAML"}]
    (then,) = found["then"].to_pylist()
    assert (then["filename"], then["live_since"]) == ("pyyaml-6.zip", 110)
    assert found["providers"].select("project", "versions", "files").rows() == [("PyYAML", ["6"], 1)]
    kinds = [file.kind for file in live_files(small.catalog, 150)]
    assert dict(found["kinds"]) == {kind: kinds.count(kind) for kind in kinds}
    past = pl.scan_iceberg(found["files"], snapshot_id=found["at"]).select("filename").collect()
    assert sorted(past["filename"]) == sorted(file.filename for file in live_files(small.catalog, 150))
    newest = pl.scan_iceberg(found["places"]["files"]).select("filename").collect()
    assert sorted(newest["filename"]) == sorted(file.filename for file in live_files(small.catalog, 200))


def test_page_names_all_tables_and_columns() -> None:
    rows = {row.split("`")[1]: row for row in REFERENCE.splitlines() if row.startswith("| `")}
    for name, columns in TABLES.items():
        if name != "files":
            assert [column for column in columns if f"`{column}`" not in rows[name]] == []
    assert OPTIONS.namespace in REFERENCE
