"""The views of `pypi-assets admin`: ranges, visits, partitions and indexes."""

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from pypi_assets.cli import cli
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex, served_index


def test_ranges_include_the_missing_range(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    index.wheel("demo", "2.0")
    index.wheel("demo", "3.0")
    found = commands.json("admin", "ranges")
    assert [(row["range"], row["state"]) for row in found] == [
        (f"0-{baseline}", "complete"),
        (f"{baseline}-{index.serial}", "missing"),
    ]
    monkeypatch.setenv("PYPI_ASSETS_RANGE_EVENTS", "2")
    commands.done("crawl", "incremental")
    found = commands.json("admin", "ranges", "--all")
    assert [row["range"] for row in found[1:]] == [f"{baseline}-{baseline + 2}", f"{baseline + 2}-{index.serial}"]
    assert {row["state"] for row in found} == {"complete"}
    assert found[1]["projects"] == found[1]["visited"] == 1
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    assert unnamed(commands.done("admin", "ranges").stderr, "PYPI_ASSETS_INDEX_URL") == []


@pytest.mark.nightly
def test_range_of_killed_process_is_interrupted(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_LAG_WARN_S", "0.001")
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    for version in ("2.0", "3.0", "4.0"):
        index.wheel("demo", version)

    def counts_of_the_last_range() -> dict[str, object]:
        row = commands.json("admin", "ranges")[-1]
        return {name: row[name] for name in ("state", "projects", "visited", "to_visit", "to_read")}

    with (
        index.holding("/packages/") as held,
        ForkedProgram(COMMAND_LINE, "crawl", "incremental", stderr=subprocess.DEVNULL, strict=True) as process,
    ):
        held.wait()
        counts = {"projects": 1, "visited": 1, "to_visit": 0, "to_read": 3}
        assert counts_of_the_last_range() == {"state": "running"} | counts
        status = commands.json("status")
        assert (status["open_ranges"], status["running_ranges"]) == (1, 1)
        assert unnamed(commands.done("status").stdout, "1") == []
        assert not any("crawl incremental" in line for line in status["to_do"])
        process.kill()
    assert counts_of_the_last_range() == {"state": "interrupted"} | counts
    status = commands.json("status")
    assert (status["open_ranges"], status["running_ranges"]) == (1, 0)
    assert any("crawl incremental" in line for line in status["to_do"])
    commands.done("crawl", "incremental")
    assert counts_of_the_last_range() == {"state": "complete"} | counts | {"to_read": 0}


def test_visits_are_listed_and_compared(commands: Commands, two_visits: TwoVisits) -> None:
    visits = commands.json("visits", "demo")
    assert [(one["visit"], one["outcome"], one["files"]) for one in visits] == [(1, "full", 1), (2, "full", 2)]
    assert commands.done("visits", "demo").stdout.startswith(f"1\tcrawl:1\t1\t{visits[0]['started_at']}\tfull\t")
    differences = commands.json("visits", "demo", "--compare", 1, 2)
    assert [(one["filename"], one["change"]) for one in differences] == [
        (two_visits.first_file, "yanked"),
        (two_visits.second_file, "came"),
    ]
    message = commands.refused("visits", "demo", "--compare", 1, 7)
    assert unnamed(message, "demo", "7", "pypi-assets visits demo") == []


def test_where_names_partition_and_dump_file_of_a_project(commands: Commands, two_visits: TwoVisits) -> None:
    crawled, dumped = commands.json("admin", "where", "Requests")
    assert (crawled["assets"], crawled["file"]) == ("crawled_projects, crawled_distribution_data", None)
    assert (dumped["assets"], dumped["partition"], dumped["file"]) == ("full_dump", "ec", None)
    assert [one["partition"] for one in commands.json("admin", "where", "requests")] == [crawled["partition"], "ec"]
    commands.done("dump", "full", "--shards", 16)
    file = commands.json("admin", "where", "demo")[1]["file"]
    assert Path(file.removeprefix("file://")).is_file()
    commands.done("dump", "redo")  # with the same number of files
    [again] = [one for one in commands.json("admin", "where", "demo") if one["file"]]
    assert again["file"].rpartition("/")[2] == file.rpartition("/")[2]
    assert again["file"] != file


@dataclass
class Two:
    """Two indexes from one file, both crawled, dumped and built."""

    commands: Commands
    public: ServedIndex
    company: ServedIndex
    file: Path


def write_indexes(path: Path, public: str, company: str) -> None:
    company_lines = f'[company]\nurl = "{company}"\nprivate = true\nscopes.tools.projects = ["alpha"]\n'
    path.write_text(f'[public]\nurl = "{public}"\ndefault = true\n{company_lines}')


@pytest.fixture
def file(commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write a file of two indexes on whose URLs no server listens."""
    monkeypatch.delenv("PYPI_ASSETS_INDEX_URL")
    path = tmp_path / "indexes.toml"
    write_indexes(path, "http://127.0.0.1:9/simple/", "http://me@127.0.0.1:9/b/simple/")
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(path))
    return path


@pytest.fixture
def two(commands: Commands, file: Path, tmp_path: Path) -> Iterator[Two]:
    with served_index(tmp_path / "public") as public, served_index(tmp_path / "company") as company:
        write_indexes(file, public.url, company.url)
        public.wheel("demo", "2.0")
        public.wheel("other", "1.0")
        company.wheel("demo", "1.0")
        made = Two(commands, public, company, file)
        for index in ("public", "company"):
            commands.done("--index", index, "crawl", "full")
            commands.done("dump", "--index", index, "full", "--shards", "1")
            commands.done("leveldb", "update", f"--index={index}")
        yield made


def test_index_option_works_in_any_position(two: Two) -> None:
    for arguments in (
        ("--index", "company", "lookup", "files"),
        ("lookup", "files", "--index", "company"),
        ("lookup", "files", "--index=company"),
    ):
        assert two.commands.done(*arguments).stdout.startswith("demo-1.0-py3-none-any.whl\t"), arguments
    assert {row["version"] for row in two.commands.json("lookup", "files")} == {"1.0", "2.0"}  # from the default index
    [row] = two.commands.json("lookup", "module", "demo_module", "--index", "company")
    assert row["versions"] == ["1.0"]
    home = two.commands.home
    assert (home / "catalog.sqlite").exists()
    assert (home / "indexes" / "company" / "catalog.sqlite").exists()
    assert (home / "indexes" / "company" / "storage").is_dir()


def test_index_option_after_two_hyphens_is_an_argument(two: Two) -> None:
    assert "--index" in two.commands.done("visits", "--", "--index").stderr


def test_lookup_in_all_indexes_has_rows_that_name_their_index(two: Two) -> None:
    shown = two.commands.done("lookup", "module", "demo_module", "--index", "all")
    assert [line.split("\t")[:3] for line in shown.stdout.splitlines()] == [
        ["public", "demo", "2.0"],
        ["company", "demo", "1.0"],
    ]
    of_public, of_company = shown.stderr.splitlines()
    assert unnamed(of_public, "public", two.public.serial) == []
    assert unnamed(of_company, "company", two.company.serial) == []
    rows = two.commands.json("--index", "all", "lookup", "module", "demo_module")
    assert [(row["index"], row["versions"]) for row in rows] == [("public", ["2.0"]), ("company", ["1.0"])]
    table = two.commands.done("lookup", "files", "--index", "all", "--csv", "--header").stdout
    read = list(csv.DictReader(io.StringIO(table)))
    assert [(row["index"], row["filename"][:8]) for row in read] == [
        ("public", "demo-2.0"),
        ("public", "other-1."),
        ("company", "demo-1.0"),
    ]
    assert [row["index"] for row in two.commands.json("history", "other", "--index", "all")]
    assert {row["index"] for row in two.commands.json("visits", "demo", "--index", "all")} == {
        "public",
        "company",
    }


def test_lookup_in_all_indexes_succeeds_if_one_has_no_result(two: Two) -> None:
    shown = two.commands.done("lookup", "module", "other_module", "--index", "all")
    assert shown.stdout.startswith("public\tother\t1.0\n")
    assert "company: " in shown.stderr
    assert two.commands.json("lookup", "module", "nope", "--index", "all") == []


def test_names_from_standard_input_are_looked_up_in_all_indexes(two: Two) -> None:
    found = CliRunner().invoke(
        cli, ["lookup", "module", "-", "--index", "all"], input="demo_module\nother_module\n", catch_exceptions=False
    )
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(line["index"], line["name"], len(line["results"])) for line in lines] == [
        ("public", "demo_module", 1),
        ("public", "other_module", 1),
        ("company", "demo_module", 1),
        ("company", "other_module", 0),
    ]


@pytest.mark.nightly
def test_failing_index_fails_the_command_after_the_other_answers(two: Two) -> None:
    two.file.write_text(two.file.read_text() + '[third]\nurl = "http://127.0.0.1:9/c/simple/"\n')
    result = two.commands.run("lookup", "module", "demo_module", "--index", "all", "--json")
    assert result.exit_code == 1
    assert [row["index"] for row in json.loads(result.stdout)] == ["public", "company"]
    [line] = [line for line in result.stderr.splitlines() if line.startswith("third: ")]
    assert "indexes/third" in line
    done = subprocess.run(
        [*PROCESS, "lookup", "files", "--index", "all"], env=os.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--index",), "--index"),
        (("status", "--index"), "--index"),
        (("status", "--index", "compony"), "--index compony"),
        (("--index", "all", "crawl", "full"), "--index lookup owners impact history visits"),
        (("admin", "indexes", "--index", "all"), "--index"),
        (("lookup", "confusion", "--index", "all"), "--index"),
        (("lookup", "--index", "all", "modul", "x"), "'modul' 'module'"),
    ],
)
def test_invalid_index_option_is_a_usage_error(
    commands: Commands, file: Path, arguments: tuple[str, ...], named: str
) -> None:
    assert unnamed(commands.refused(*arguments, exit_code=2), *named.split()) == []


def test_index_option_without_a_file_is_rejected(commands: Commands) -> None:
    for name in ("company", "all"):
        assert unnamed(commands.refused("lookup", "files", "--index", name, exit_code=2), "PYPI_ASSETS_INDEXES") == []


def test_index_option_of_init_is_a_url(commands: Commands, tmp_path: Path) -> None:
    commands.done("init", "--index", "http://127.0.0.1:9/simple/", "--yes", "--lister", "auto")
    assert "http://127.0.0.1:9/simple/" in (tmp_path / ".env").read_text()


def test_indexes_are_listed_with_their_settings(commands: Commands, file: Path) -> None:
    assert commands.json("admin", "indexes") == [
        {
            "index": "public",
            "url": "http://127.0.0.1:9/simple/",
            "lister": "auto",
            "default": True,
            "private": False,
            "scopes": [],
            "database": f"sqlite:///{commands.home}/catalog.sqlite",
            "storage": f"file://{commands.home}/storage",
        },
        {
            "index": "company",
            "url": "http://127.0.0.1:9/b/simple/",
            "lister": "auto",
            "default": False,
            "private": True,
            "scopes": ["tools"],
            "database": f"sqlite:///{commands.home}/indexes/company/catalog.sqlite",
            "storage": f"file://{commands.home}/indexes/company/storage",
        },
    ]
    assert unnamed(commands.done("admin", "indexes").stderr, "public") == []
    assert unnamed(commands.done("admin", "indexes", "--index", "company").stderr, "company") == []


def test_single_index_without_a_file_is_listed(commands: Commands) -> None:
    [row] = commands.json("admin", "indexes")
    assert (row["index"], row["default"]) == (None, True)
    assert unnamed(commands.refused("admin", "indexes", "--workspace", exit_code=2), "PYPI_ASSETS_INDEXES") == []


def test_workspace_has_a_code_location_for_each_index(commands: Commands, file: Path) -> None:
    written = yaml.safe_load(commands.done("admin", "indexes", "--workspace").stdout)["load_from"]
    assert [one["python_module"] for one in written] == [
        {"module_name": "pypi_assets.definitions", "location_name": "pypi-assets"},
        {
            "module_name": "pypi_assets.definitions",
            "attribute": "index_company",
            "location_name": "pypi-assets-company",
        },
    ]


def test_invalid_setting_of_any_index_is_reported(commands: Commands, file: Path) -> None:
    file.write_text(file.read_text() + 'lister = "telepathy"\n')
    assert unnamed(commands.refused("admin", "indexes", exit_code=2), file, "company", "'telepathy'") == []
    commands.done("lookup", "files", "--help")


def test_index_names_are_completed(commands: Commands, file: Path) -> None:
    option = next(one for one in cli.params if one.name == "index")
    found = option.shell_complete(click.Context(cli), "")
    assert [item.value for item in found] == ["public", "company", "all"]
    file.write_text("[")
    assert option.shell_complete(click.Context(cli), "") == []
