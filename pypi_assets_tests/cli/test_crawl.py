"""`pypi-assets crawl`: the indexes and projects that it cannot reach, and an index without a changelog."""

import json

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_an_index_that_does_not_answer(commands: Commands) -> None:
    status = commands.run("status", "--json")
    assert (status.exit_code, json.loads(status.stdout)["index_serial"]) == (0, None)
    assert "the index's serial is not known: " in status.stderr
    assert "http://127.0.0.1:9/pypi" in json.loads(status.stdout)["index_error"]
    assert "Connection refused (http://127.0.0.1:9/pypi)" in commands.refused("crawl", "full")


def test_a_host_that_does_not_resolve(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://index.invalid/simple/")
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "me@example.org")
    message = commands.refused("crawl", "full")
    assert "the host's name cannot be resolved; check the network and the URL (http://index.invalid/pypi)" in message


def test_a_catalog_of_another_index(commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("PYPI_ASSETS_CHANGELOG_URL", index.url.replace("/simple/", "/pypi"))
    assert f"this catalog follows {index.url}, not http://127.0.0.1:9/simple/" in commands.refused(
        "crawl", "incremental"
    )
    assert f"the catalog follows {index.url}" in commands.json("status")["index_error"]


def test_selected_projects_that_the_index_lacks_are_reported(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    index.wheel("other", "1.0")
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", "Demo, missing")
    crawled = commands.done("crawl", "full", "--json")
    assert json.loads(crawled.stdout)["missing_projects"] == ["missing"]
    assert "not on the index: missing" in crawled.stderr
    assert [file["project"] for file in commands.json("files")] == ["demo"]


def test_an_index_without_a_changelog_is_followed_by_its_list(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    baseline = index.serial
    assert commands.json("status")["changelog_off"] is False
    index.wheel("demo", "2.0")
    index.faults = lambda request: PlainTextResponse("", 404) if request.url.path == "/pypi" else None
    followed = commands.done("crawl", "incremental")
    assert f"range {baseline}-{index.serial}: no events, but the list, 1 projects visited" in followed.stdout
    assert "the changelog is off, so the list of projects is followed" in followed.stderr
    status = commands.json("status")
    assert (status["changelog_off"], status["lag"], status["index_error"]) == (True, 0, None)
    assert status["inexact_spans"] == [f"{baseline}-{index.serial}"]
    assert any("the changelog is off" in line for line in status["to_do"])
    [_, listed] = commands.json("ranges", "--all")
    assert (listed["lister"], listed["exact_from"]) == ("simple", index.serial)
    assert "their single events are not known" in commands.done("ranges").stderr
    assert len(commands.json("files", "--at-serial", index.serial)) == 2
    assert "there is no answer for serial" in commands.refused("files", "--at-serial", index.serial - 1)
