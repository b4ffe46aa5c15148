"""The live files of a project, over HTTP."""

import json

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published


def test_they_are_what_the_command_prints_now_and_at_a_serial(
    client: Client, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(published.home))
    found = {}
    for at in (None, 12, published.index.serial):
        prefix, option = ("", ()) if at is None else (f"/at/{at}.{at}", ("--at", at))
        answer = client.get(f"{prefix}/v1/projects/Demo/files").json()
        printed = Commands(published.home).json("files", "demo", *option)
        assert [{**one, "epoch": answer["epoch"]} for one in answer["results"]] == printed
        found[at] = {one["filename"]: one["yanked"] for one in answer["results"]}
    assert found[None] == found[published.index.serial]
    assert len(found[12]) < len(found[None])
    assert [name for name, is_yanked in found[None].items() if is_yanked] == ["demo-2.0-py3-none-any.whl"]


def test_they_come_in_pages_and_lines(client: Client) -> None:
    whole = client.get("/v1/projects/demo/files").json()["results"]
    paged: list[object] = []
    cursor = ""
    while cursor is not None:
        page = client.get(f"/v1/projects/demo/files?limit=1{cursor and '&cursor='}{cursor}").json()
        paged += page["results"]
        cursor = page.get("next")
    assert len(whole) > 1
    assert paged == whole
    lines = client.get("/v1/projects/demo/files?format=ndjson").text.splitlines()
    assert [json.loads(line) for line in lines] == whole


def test_a_project_without_live_files_is_known_and_another_is_a_problem_with_hints(client: Client) -> None:
    gone = client.get("/v1/projects/gone/files")
    assert (gone.status_code, gone.json()["results"]) == (200, [])
    unknown = client.get("/v1/projects/demoo/files")
    assert (unknown.status_code, [unnamed(hint, "demo") for hint in unknown.json()["hints"]]) == (404, [[]])
