"""Spark runs the queries of docs/formats.md on a Parquet export with changes, from nothing but the storage.

pyspark is installed into a folder of the test. PYSPARK_PYTHON names a Python that has it already.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet import appending, buckets
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.views import VIEWS
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.deploy.foreign_programs import installed_program
from pypi_assets_tests.dump_rows import dump_row, in_order, tombstone_of, write_dump
from pypi_assets_tests.parquet.exports import rows_of
from pypi_assets_tests.small_catalog import small_catalog

pytestmark = [pytest.mark.deploy, pytest.mark.nightly]
DOCUMENT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
SECTION = DOCUMENT.partition("\n### Query with Spark\n")[2].partition("\n## ")[0]
PROJECTS = 300
_PRINT = """
import json
bucket = "CAST(conv(left(sha2(normalized, 256), 4), 16, 10) * BUCKETS / 65536 AS INT)"
bucket = bucket.replace("BUCKETS", str(latest["buckets"]))
print(json.dumps({
    "files": sorted(row.filename for row in rows.select("filename").collect()),
    "providers": [[row.project, row.versions] for row in providers.collect()],
    "dependents": [row.project for row in dependents.collect()],
    "buckets": spark.sql(f"SELECT count(*) FROM distributions WHERE bucket <> {bucket}").first()[0],
    "with_bucket": spark.sql("SELECT count(*) FROM distributions WHERE bucket IS NOT NULL").first()[0],
}))
spark.stop()
"""


def release(number: int, **columns: object) -> Row:
    """Return a release: project N requires N / 2, and project 0 is requests. Every 50th has the module yaml."""
    name = f"p{number}" if number else "requests"
    required = [] if number == 0 else ["Requests>=2" if number // 2 == 0 else f"P{number // 2} ; python_version > '3'"]
    facts = {
        "requires_dist": [*required, "requests ; extra == 'test'"],
        "modules": ["yaml"] if number % 50 == 7 else [],
    }
    return dump_row(name, "1.0", f"{name}-1.0.zip", **(facts | columns))


def python_with_spark(folder: Path) -> str:
    """Return a Python that has pyspark, or skip the test if there is no Java."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime, such as Debian's default-jre-headless")
    known = os.environ.get("PYSPARK_PYTHON")
    return known or str(installed_program(folder / "spark", "pyspark>=4").folder / "bin" / "python")


def test_spark_reads_an_export_with_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = python_with_spark(tmp_path)
    monkeypatch.setattr(buckets, "BUCKET_ROWS", 50)
    monkeypatch.setattr(appending, "GROWTH", 0)
    storage = open_storage((tmp_path / "storage").as_uri())
    small = small_catalog(tmp_path)
    rows = [release(number) for number in range(PROJECTS)]
    moved = release(5, requires_dist=["nothing"], modules=["yaml"])  # 10 and 11, and so on, depend on it
    changes = [[tombstone_of(rows[207]), moved, tombstone_of(rows[4])], [release(4, requires_dist=["p2"])]]
    for number, dump in enumerate([rows, *changes]):
        write_dump(storage, SerialRange(number * 10, number * 10 + 10), in_order(dump), shards=1 if number else 16)
        restore_index(small.catalog, storage)
        export = export_parquet(small.catalog, storage, views=True).export
    small.catalog.close()
    assert (export.buckets, [layer.number for layer in export.layers]) == (8, [0, 1, 2])
    code = "\n".join(re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)).replace(
        "/srv/pypi-assets", str(storage.root)
    )
    program = tmp_path / "queries.py"
    program.write_text(code + _PRINT, encoding="utf-8")
    environment = os.environ | {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, str(program)], capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    live = rows_of(storage, export)
    assert found["files"] == sorted(row["filename"] for row in live)
    assert (len(live), found["buckets"], found["with_bucket"]) == (PROJECTS - 1, 0, PROJECTS - 3)
    assert found["providers"] == [[name, ["1.0"]] for name in ("p107", "p157", "p257", "p5", "p57", "p7")]
    assert found["dependents"] == dependents_in_duckdb(str(storage.local_path(VIEWS)))
    assert {"p4", "p9", "p3"} <= set(found["dependents"])
    assert not {"p5", "p10", "p22", "requests"} & set(found["dependents"])


def dependents_in_duckdb(database: str) -> list[str]:
    with duckdb.connect(database, read_only=True) as connection:
        query = """
            WITH RECURSIVE dependents(project) AS (
                SELECT 'requests'
                UNION
                SELECT normalized FROM requirements JOIN dependents ON required = dependents.project
                WHERE NOT contains(coalesce(marker, ''), 'extra')
            )
            SELECT project FROM dependents WHERE project <> 'requests' ORDER BY project
        """
        return [project for (project,) in connection.execute(query).fetchall()]
