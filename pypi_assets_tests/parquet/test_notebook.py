"""The notebook about the views runs from the first cell to the last, and its five questions have the right answers."""

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.views import VIEWS
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.dump_rows import dump_row, in_order, tombstone_of, write_dump
from pypi_assets_tests.small_catalog import small_catalog

NOTEBOOK = Path(__file__).parents[2] / "docs" / "parquet.ipynb"
QUESTIONS = 5


def code_cells() -> list[dict[str, Any]]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def release(project: str, version: str, day: int, **columns: object) -> Row:
    uploaded_at = f"2026-0{1 + day // 28}-{1 + day % 28:02}T00:00:00Z"
    filename = f"{project}-{version}-py3-none-any.whl"
    return dump_row(project, version, filename, uploaded_at=uploaded_at, size=1_000_000, **columns)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[pd.DataFrame]:
    """Return what the last lines of the cells show, for an export with one layer of changes."""
    folder = tmp_path_factory.mktemp("notebook")
    storage = open_storage((folder / "storage").as_uri())
    rows = [
        release("pyyaml", "6.0", 0, modules=["yaml", "yaml.loader"]),
        release("ruamel-yaml", "1.0", 1, modules=["yaml"]),
        release("requests", "2.0", 2, modules=["requests"]),
        release(
            "a", "1.0", 3, requires_dist=["requests>=2", "pytest ; extra == 'test'"], console_scripts=["run = a:main"]
        ),
        release("b", "1.0", 4, requires_dist=["A", "PyYAML"], console_scripts=["run = b:main", "other = b:other"]),
        release("c", "1.0", 30, requires_dist=["requests"]),
        release("c", "2.0", 31, requires_dist=["b"]),
        *(release(f"filler-{number:02}", "1.0", 5) for number in range(40)),
    ]
    small = small_catalog(folder)
    write_dump(storage, SerialRange(0, 10), rows, shards=16)
    restore_index(small.catalog, storage)
    export_parquet(small.catalog, storage, views=True)
    added = release("d", "1.0", 32, requires_dist=["C"])
    write_dump(storage, SerialRange(10, 20), in_order([tombstone_of(rows[-1]), added]))
    restore_index(small.catalog, storage)
    assert len(export_parquet(small.catalog, storage).export.layers) == 2
    small.catalog.close()
    return shown(str(storage.local_path(VIEWS)))


def shown(database: str) -> list[pd.DataFrame]:
    names: dict[str, Any] = {}
    found = []
    for cell in code_cells():
        *lines, last = "".join(cell["source"]).split("connection.sql(")
        code = "".join(cell["source"])
        if "parameters" in cell["metadata"].get("tags", ()):
            assert code.startswith("database = ")
            code = f"database = {database!r}"
        if len(lines) == 1 and last.endswith(".df()"):
            exec(lines[0], names)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # DuckDB's of pandas
                found.append(eval(f"connection.sql({last}", names))
        else:
            exec(code, names)
    return found


def test_notebook_is_saved_without_outputs() -> None:
    cells = code_cells()
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_questions_have_the_right_answers(frames: list[pd.DataFrame]) -> None:
    latest, providers, required, dependents, commands, months = frames
    assert len(frames) == 1 + QUESTIONS
    assert latest[["serial", "distributions"]].to_numpy().tolist() == [[20, 47]]
    assert providers["normalized"].tolist() == ["pyyaml", "ruamel-yaml"]
    assert required.to_numpy().tolist() == [["a", 1], ["b", 1], ["c", 1], ["pyyaml", 1], ["requests", 1]]
    assert dependents["project"].tolist() == ["a", "b", "c", "d"]
    assert commands[["command", "projects"]].to_numpy().tolist() == [["run", 2]]
    assert list(commands["names"][0]) == ["a", "b"]
    assert months["releases"].tolist() == [3, 44]
    assert months["with_wheel"].tolist() == [1.0, 1.0]
