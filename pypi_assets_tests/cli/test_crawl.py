"""The commands that crawl, and their output about reads."""

import json
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets.cli.crawl import describe_reads, report_failed
from pypi_assets.crawl.reading import ReadCounts
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.served_pages import served_pages


def test_crawl_of_unresponsive_index_fails(commands: Commands) -> None:
    status = commands.run("status", "--json")
    assert (status.exit_code, json.loads(status.stdout)["index_serial"]) == (0, None)
    assert status.stderr
    assert "http://127.0.0.1:9/pypi" in json.loads(status.stdout)["index_error"]
    assert unnamed(commands.refused("crawl", "full"), "http://127.0.0.1:9/simple/", "PYPI_ASSETS_INDEX_URL") == []


def test_crawl_of_unknown_host_fails(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://index.invalid/simple/")
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "me@example.org")
    message = commands.refused("crawl", "full")
    assert unnamed(message, "http://index.invalid/simple/", "PYPI_ASSETS_INDEX_URL") == []


def test_first_crawl_with_wrong_lister_names_the_setting(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_pages(tmp_path / "pages") as pages:
        pages.wheel("demo", "1.0")
        monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", pages.url)
        for lister in ("xmlrpc", "simple"):
            monkeypatch.setenv("PYPI_ASSETS_LISTER", lister)
            assert unnamed(commands.refused("crawl", "full"), f"PYPI_ASSETS_LISTER={lister}", "auto") == []
        monkeypatch.setenv("PYPI_ASSETS_LISTER", "auto")
        commands.done("crawl", "full")


def test_limit_of_a_round_is_named_only_if_projects_are_left(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_pages(tmp_path / "pages") as pages:
        for project in ("alpha", "beta"):
            pages.wheel(project, "1.0")
        monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", pages.url)
        commands.done("crawl", "full")
        monkeypatch.setenv("PYPI_ASSETS_POLL_CONFIRM_S", "0")  # changes to confirm are due again immediately
        monkeypatch.setenv("PYPI_ASSETS_POLL_SHORTEST_S", "0")
        del pages.projects["beta"]
        output = commands.done("crawl", "incremental", "--now").stdout
        assert unnamed(output, 2, "beta") == []
        assert "PYPI_ASSETS_" not in output
        monkeypatch.setenv("PYPI_ASSETS_POLL_LONGEST_S", "0.001")  # all are due
        monkeypatch.setenv("PYPI_ASSETS_POLL_REQUESTS", "1")
        commands.done("crawl", "incremental", "--now")
        assert unnamed(commands.done("crawl", "incremental").stdout, "PYPI_ASSETS_POLL_REQUESTS", 1) == []


def test_crawl_with_catalog_of_another_index_fails(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("PYPI_ASSETS_CHANGELOG_URL", index.url.replace("/simple/", "/pypi"))
    assert unnamed(commands.refused("crawl", "incremental"), index.url, "http://127.0.0.1:9/simple/") == []
    assert unnamed(commands.json("status")["index_error"], index.url) == []


def test_selected_projects_missing_from_the_index_are_reported(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    index.wheel("other", "1.0")
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", "Demo, missing")
    crawled = commands.done("crawl", "full", "--json")
    assert json.loads(crawled.stdout)["missing_projects"] == ["missing"]
    assert unnamed(crawled.stderr, "missing") == []
    assert [file["project"] for file in commands.json("lookup", "files")] == ["demo"]


def test_trial_is_partial_until_a_full_crawl_continues_it(commands: Commands, index: ServedIndex) -> None:
    for name in ("one", "two", "three"):
        index.wheel(name, "1.0")
    answer = commands.json("crawl", "full", "--limit", "2")
    assert (answer["partial"], answer["projects"], answer["reads"]["data"]) == (True, 2, 2)
    status = commands.json("status")
    assert (status["open_crawl"]["limited_to"], status["open_crawl"]["projects_done"]) == (2, 2)
    assert unnamed(" ".join(status["to_do"]), 2, "pypi-assets crawl full") == []
    assert unnamed(commands.refused("dump", "full"), 2, "pypi-assets crawl full") == []
    answer = commands.json("crawl", "full")
    assert (answer["partial"], answer["projects"], answer["complete_serial"]) == (False, 3, index.serial)
    assert unnamed(commands.refused("crawl", "full", "--limit", "2"), "--limit", "PYPI_ASSETS_HOME") == []
    commands.refused("crawl", "full", "--limit", "2", "--with-history", exit_code=2)


def test_index_without_a_changelog_is_followed_by_its_list(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    assert commands.json("status")["changelog_off"] is False
    index.wheel("demo", "2.0")
    index.faults = lambda request: PlainTextResponse("", 404) if request.url.path == "/pypi" else None
    followed = commands.done("crawl", "incremental")
    assert unnamed(followed.stdout, f"{baseline}-{index.serial}", "1") == []
    assert followed.stderr
    status = commands.json("status")
    assert (status["changelog_off"], status["lag"], status["index_error"]) == (True, 0, None)
    assert status["inexact_spans"] == [f"{baseline}-{index.serial}"]
    assert status["to_do"]
    [_, listed] = commands.json("admin", "ranges", "--all")
    assert (listed["lister"], listed["exact_from"]) == ("simple", index.serial)
    assert commands.done("admin", "ranges").stderr
    assert len(commands.json("lookup", "files", "--at", index.serial)) == 2
    assert unnamed(commands.refused("lookup", "files", "--at", index.serial - 1), index.serial - 1) == []


def test_only_outcomes_that_occurred_are_named() -> None:
    assert not any(map(str.isdigit, describe_reads(ReadCounts())))
    counts = ReadCounts(data=3, errors=1, exhausted=2, bytes_fetched=1234, requests=7, seconds=1.26)
    assert unnamed(describe_reads(counts), "3", "1", "2", "1234", "7", "1.3") == []


def test_failures_are_counted_with_the_command_that_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    report_failed(ReadCounts(data=3), 0)
    assert capsys.readouterr().err == ""
    report_failed(ReadCounts(errors=1, exhausted=2), 4)
    reads, visits = capsys.readouterr().err.splitlines()
    assert unnamed(reads, 3, "pypi-assets failures list") == []
    assert unnamed(visits, 4, "pypi-assets failures list") == []
