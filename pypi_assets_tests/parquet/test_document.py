"""The queries of docs/formats.md run over an export of real files, and give the answers of the catalog and LevelDB."""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.latest import open_latest
from pypi_assets.parquet import appending
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.views import VIEWS
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.served_index import ServedIndex, served_index

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
DOCUMENT = PAGE.partition("\n## Export to Parquet\n")[2].partition("\n## ")[0]
ATTACH, *QUESTIONS = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
OF_PANDAS = DOCUMENT.partition("\n### Query with pandas\n")[2].partition("\n### ")[0]

Row = dict[str, Any]


@dataclass(frozen=True)
class Answers:
    """The answers of the document's queries, and the answers of the catalog and LevelDBs."""

    by_sql: list[list[Row]]
    files: list[Any]
    distributions: list[Row]
    yaml: list[Row]
    pandas_code_answers: tuple[int, list[str]]
    python_code_answers: tuple[int, list[str]]


def fill(index: ServedIndex) -> None:
    """Upload wheels, sdists and broken files of some projects, then remove some of them."""
    yaml = {"yaml/__init__.py": "", "yaml/loader.py": ""}
    index.wheel("PyYAML", "5.4", files=yaml, requires_python=">=3.6")
    index.wheel("PyYAML", "6.0", files=yaml, requires_python=">=3.8")
    index.sdist("PyYAML", "6.0", files=yaml, requires_python=">=3.8")
    index.wheel("ruamel.yaml", "1.0", files={"yaml/__init__.py": ""})
    index.wheel("gone", "1.0", files={"yaml/__init__.py": ""}, requires_dist=["requests"])
    for number in range(25):
        required = ["Requests>=2", *(f"Lib_{other} ; python_version > '3'" for other in range(number))]
        index.wheel(f"user-{number}", "1.0", requires_dist=["never-asked-again"])
        index.wheel(f"user-{number}", "2.0", requires_dist=[*required, "pytest ; extra == 'test'"])
    script = "from setuptools import setup\nsetup(name='dynamic', version='1', install_requires=open('x').read())\n"
    index.sdist("dynamic", "1", pkg_info=False, files={"setup.py": script})
    index.sdist("static", "1", metadata_version="2.2", requires_dist=["requests"])
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    index.raw("broken-1.0.tar.gz", b"no tar")
    index.raw("old-1.0.win32.exe", b"MZ")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    folder = tmp_path_factory.mktemp("document")
    catalog = open_catalog(f"sqlite:///{folder / 'catalog.sqlite'}")
    storage = open_storage((folder / "storage").as_uri())
    with served_index(folder / "served") as index:
        fill(index)
        crawl_full(index.crawler(catalog))
        full_dump(catalog, storage, 16)
        export_parquet(catalog, storage, views=True)
        index.history.remove_project("gone")
        index.wheel("PyYAML", "6.1", files={"yaml/__init__.py": ""}, requires_python=">=3.9")
        index.history.yank("ruamel.yaml", "1.0")
        crawl_incremental(index.crawler(catalog))
        assert len(list(write_missing_ranges(catalog, storage))) == 1
    for dataset in ("modules", "depgraph"):
        build_version(dataset, storage=storage, catalog=catalog)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appending, "CHANGES_SHARE", 1)
        export = export_parquet(catalog, storage).export
    assert [layer.number for layer in export.layers] == [0, 1]
    database = storage.local_path(VIEWS)
    assert database is not None
    with open_latest("modules", storage) as modules, open_latest("depgraph", storage) as depgraph:
        assert modules.serial == depgraph.serial == export.serial
        files = list(live_files(catalog))
        projects = sorted({canonicalize_name(file.project) for file in files})
        yield Answers(
            by_sql=answered(database),
            files=files,
            distributions=[
                {"normalized": project, **row} for project in projects for row in depgraph.project(project).results
            ],
            yaml=list(modules.module("yaml").results),
            pandas_code_answers=run_pandas_code(folder / "storage"),
            python_code_answers=run_python_code((folder / "storage").as_uri(), export.cover[0]),
        )
    catalog.close()


def answered(database: Path) -> list[list[Row]]:
    with duckdb.connect() as connection:
        connection.execute(re.sub(r"'[^']*pypi.duckdb'", f"'{database}'", ATTACH))
        found = []
        for question in QUESTIONS:
            cursor = connection.execute(question)
            columns = [column[0] for column in cursor.description or ()]
            found.append([dict(zip(columns, row, strict=True)) for row in cursor.fetchall()])
        return found


def run_pandas_code(storage: Path) -> tuple[int, list[str]]:
    """Return the number of rows, and the filenames, that the document's examples with pandas read."""
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", OF_PANDAS, re.DOTALL):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # DuckDB's of pandas
            exec(code.replace('"/srv/pypi-assets', f'"{storage}'), names)
    return len(names["one"]), sorted(names["sizes"]["filename"])


def run_python_code(uri: str, full_dump: str) -> tuple[int, list[str]]:
    """Run the page's examples that read dumps and a LevelDB. Return the rows of the frame, and the versions."""
    dumps, leveldb = re.findall(r"```python\n(.*?)```", PAGE.partition("\n## Export to Parquet\n")[0], re.DOTALL)
    names: dict[str, Any] = {}
    exec(dumps.replace("file:///srv/pypi-assets", uri).replace("0-1200", full_dump), names)
    rows = names["frame"]
    exec(leveldb.replace("file:///srv/pypi-assets", uri), names)
    return len(rows), names["row"]["versions"]


def test_python_examples_read_dumps_and_a_leveldb(answers: Answers) -> None:
    rows, versions = answers.python_code_answers
    assert rows == len(answers.files)
    assert versions == answers.yaml[-1]["versions"]


def test_document_has_five_questions() -> None:
    assert len(QUESTIONS) == 5


@pytest.mark.nightly
def test_query_for_providers_of_a_module(answers: Answers) -> None:
    assert answers.by_sql[0] == [{"project": row["project"], "versions": row["versions"]} for row in answers.yaml]
    assert answers.by_sql[0] == [
        {"project": "PyYAML", "versions": ["5.4", "6.0", "6.1"]},
        {"project": "ruamel.yaml", "versions": ["1.0"]},
    ]


def test_query_for_most_required_projects(answers: Answers) -> None:
    newest: dict[str, Row] = {}
    for row in answers.distributions:
        if row["requires_dist"] is not None and not row["yanked"]:
            known = newest.get(row["normalized"])
            if known is None or known["uploaded_at"] < row["uploaded_at"]:
                newest[row["normalized"]] = row
    required: Counter[str] = Counter()
    for row in newest.values():
        parsed = [Requirement(text) for text in row["requires_dist"]]
        required.update({canonicalize_name(one.name) for one in parsed if "extra" not in str(one.marker)})
    expected = sorted(required.items(), key=lambda item: (-item[1], item[0]))[:20]
    assert [(row["required"], row["by_projects"]) for row in answers.by_sql[1]] == expected
    assert expected[:2] == [("requests", 26), ("lib-0", 24)]


def test_query_for_read_errors(answers: Answers) -> None:
    expected = Counter((file.kind, file.outcome) for file in answers.files if file.outcome != "data")
    assert Counter({(row["kind"], row["outcome"]): row["files"] for row in answers.by_sql[2]}) == expected
    assert all(row["error_kind"] and row["projects"] == 1 for row in answers.by_sql[2])
    assert {row["example"] for row in answers.by_sql[2]} == {
        "broken-1.0-py3-none-any.whl",
        "broken-1.0.tar.gz",
        "old-1.0.win32.exe",
    }


def test_query_for_sources_of_sdist_requirements(answers: Answers) -> None:
    sdists = [row for row in answers.distributions if row["filename"].endswith(".tar.gz") and row["outcome"] == "data"]
    known = {row["known_by"]: row["sdists"] for row in answers.by_sql[3]}
    assert known.pop("unknown") == sum(row["requires_dist"] is None for row in sdists) == 2
    assert sum(known.values()) == len(sdists) - 2 == 1
    assert set(known) <= set(
        re.findall(r"`([^`\n]+)`", (Path(__file__).parents[2] / "docs" / "reading.md").read_text())
    )


def test_query_for_releases_on_other_pythons(answers: Answers) -> None:
    files = sorted(
        (file for file in answers.files if not file.yanked), key=lambda file: (file.uploaded_at, file.filename)
    )
    expected = []  # oldest first
    for project in {canonicalize_name(file.project) for file in files}:
        releases = {
            file.version: (file.requires_python, file.uploaded_at)
            for file in reversed(files)
            if canonicalize_name(file.project) == project
        }
        for before, after in pairwise(sorted(releases, key=lambda version: releases[version][1])):
            if releases[before][0] and releases[before][0] != releases[after][0]:
                expected.append((project, after, releases[before][0], releases[after][0]))
    found = answers.by_sql[4]
    assert [
        (row["normalized"], row["version"], row["before"], row["requires_python"]) for row in reversed(found)
    ] == expected
    assert [(row["version"], row["requires_python"]) for row in found] == [("6.1", ">=3.9"), ("6.0", ">=3.8")]
    assert all(isinstance(row["released"], datetime) for row in found)


def test_pandas_is_used_as_documented(answers: Answers) -> None:
    assert answers.pandas_code_answers == (4, sorted(file.filename for file in answers.files))
