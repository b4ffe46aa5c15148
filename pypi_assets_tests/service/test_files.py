"""The live files of a project, over HTTP."""

import json

import pytest
from msgspec import structs

import pypi_assets
from pypi_assets.questions.paging import parse_cursor
from pypi_assets.questions.question import find_question
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published

QUESTION = find_question("files")


def test_they_are_what_the_command_prints_now_and_at_a_serial(
    client: Client, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(published.home))
    found = {}
    for at in (None, 12, published.index.serial):
        prefix, option = ("", ()) if at is None else (f"/at/{at}.{at}", ("--at", at))
        answer = client.get(f"{prefix}/v1/projects/Demo/files").json()
        printed = Commands(published.home).json("lookup", "files", "demo", *option)
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


def test_pages_stay_at_their_serial_while_the_index_changes(changing: Published) -> None:
    with changing.client() as client:
        whole = client.get("/v1/projects/demo/files").json()
        first = client.get("/v1/projects/demo/files?limit=1").json()
        changing.add("wheel", "demo", "0.1")
        changing.publish()
        assert len(client.get("/v1/projects/demo/files").json()["results"]) == len(whole["results"]) + 1
        rest = client.get(f"/v1/projects/demo/files?cursor={first['next']}").json()
        with pypi_assets.connect(changing.home) as home:
            assert list(home.files("demo", cursor=first["next"])) == rest["results"]
        assert (rest["serial"], first["results"] + rest["results"]) == (whole["serial"], whole["results"])


def test_a_cursor_of_another_serial_or_epoch_is_a_conflict(client: Client) -> None:
    cursor = client.get("/v1/projects/demo/files?limit=1").json()["next"]
    known = parse_cursor(cursor, QUESTION, QUESTION.given(project="demo"))
    for name in ("12.13", "12", f"{10**9}.{10**9}", "9" * 30 + ".1", "17-5c1e0a7f"):
        answer = client.get(f"/v1/projects/demo/files?cursor={structs.replace(known, set=name).text()}")
        assert (answer.status_code, answer.json()["parameter"]) == (409, "cursor"), name


def test_a_project_without_live_files_is_known_and_another_is_a_problem_with_hints(client: Client) -> None:
    gone = client.get("/v1/projects/gone/files")
    assert (gone.status_code, gone.json()["results"]) == (200, [])
    unknown = client.get("/v1/projects/demoo/files")
    assert (unknown.status_code, [unnamed(hint, "demo") for hint in unknown.json()["hints"]]) == (404, [[]])
