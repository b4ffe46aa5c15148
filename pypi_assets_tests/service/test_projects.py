"""Projects over HTTP: versions, live files, history and dependents."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from sqlalchemy.exc import OperationalError

import pypi_assets
from pypi_assets.lookup import project_answers
from pypi_assets.questions.paging import PageCursor, digest_of, list_digest, parse_cursor
from pypi_assets.questions.question import find_question
from pypi_assets.service.answering import read_cursor
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.service import Service
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published, client_of


def test_project_has_releases_and_summary(client: Client, published: Published):
    result = client.get("/v1/projects/Demo").json()["result"]
    assert (result["project"], result["newest"], result["commands"]) == ("demo", "2.1", ["demo"])
    assert [(release["version"], release["yanked"], len(release["files"])) for release in result["releases"]] == [
        ("1.0", False, 2),
        ("2.0", True, 1),
        ("2.1", False, 1),
    ]
    assert result["releases"][1]["files"][0]["yanked_reason"] == "broken"
    assert (result["summary"], result["license"], result["links"], result["status"]) == (None, None, [], "active")
    assert result["first_serial"] < result["last_serial"] == published.index.serial


def test_project_has_licence_and_links_of_its_newest_release(changing: Published):
    headers = [
        ("License-Expression", "MIT"),
        ("Home-page", "https://home.example/"),
        ("Project-URL", "Source, https://code.example/a?b=1&c=2"),
        ("Project-URL", "Bad, javascript:alert(1)"),
        ("Project-URL", "<script>alert(1)</script>, https://hostile.example/?a='\"><script>"),
    ]
    changing.add("wheel", "demo", "3.0", extra_headers=headers)
    serial = changing.publish()
    with changing.client() as client:
        for prefix in ("", f"/at/{serial}.{serial}"):
            result = client.get(f"{prefix}/v1/projects/demo").json()["result"]
            assert result["license"] == "MIT"
            assert [(link["label"], link["url"]) for link in result["links"]] == [
                ("Homepage", "https://home.example/"),
                ("Source", "https://code.example/a?b=1&c=2"),
                ("<script>alert(1)</script>", "https://hostile.example/?a='\"><script>"),
            ]
            document = page(client, f"{prefix}/project/demo/")
            assert document.external == [link["url"] for link in result["links"]]
            assert unnamed(document.text, "MIT", "code.example") == []


def test_project_status_is_that_of_the_serial(changing: Published):
    before = changing.index.serial
    changing.index.history.archive("PyYAML", at=changing.at())
    changing.index.history.yank("PyYAML", "6.0", "old", at=changing.at())
    last = changing.publish()
    with changing.client() as client:
        for prefix, status in ((f"/at/{before}", "active"), (f"/at/{last}", "archived"), ("", "archived")):
            result = client.get(f"{prefix}/v1/projects/pyyaml", allow_redirects=True).json()["result"]
            assert (prefix, result["status"]) == (prefix, status)
            text = page(client, f"{prefix}/project/pyyaml/").text
            assert ("archived" in text) == (status == "archived")


def test_version_has_requirements_and_provides_of_its_files(client: Client):
    result = client.get("/v1/projects/demo/2.0.0").json()["result"]
    assert (result["version"], result["requires_dist"]) == ("2.0", ["PyYAML>=6.1"])
    assert (result["modules"], result["commands"], result["yanked"]) == (["demo", "demo.new"], [], True)
    assert client.get("/v1/projects/demo/1.0").json()["result"]["commands"] == ["demo"]
    assert client.get("/v1/projects/demo/1.0").json()["result"]["modules"] == ["demo"]


def test_unknown_project_or_version_has_hints(client: Client):
    answer = client.get("/v1/projects/yaml").json()
    assert unnamed(answer["hints"][0], "yaml", "PyYAML", "yaml-copy") == []
    [hint] = client.get("/v1/projects/demo/7").json()["hints"]
    assert unnamed(hint, "demo", "2.1") == []
    assert client.get("/v1/projects/!").json()["parameter"] == "project"


def test_unresponsive_catalog_does_not_fail_answers(published: Published, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    with published.service() as service, client_of(service) as client:
        known = client.get("/v1/projects/other-app").json()["result"]
        monkeypatch.setattr(project_answers, "facts_at", fail)
        answer = client.get("/v1/projects/demo")
        assert answer.status_code == 200
        assert answer.json()["result"]["first_serial"] is None
        assert answer.headers["cache-control"] == "no-store"
        assert client.get("/v1/projects/other-app").json()["result"] == known  # it was cached
        monkeypatch.undo()
        assert client.get("/v1/projects/demo").json()["result"]["first_serial"] is not None


def test_answer_without_catalog_is_not_cached_after_the_catalog_returns(published: Published, tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.service(home=tmp_path / "home") as service, client_of(service) as client:
        assert client.get("/v1/projects/demo").json()["result"]["first_serial"] is None
        for path in published.home.glob("catalog.sqlite*"):
            shutil.copy(path, tmp_path / "home")
        service.follow()
        assert client.get("/v1/projects/demo").json()["result"]["first_serial"] is not None


QUESTION = find_question("files")


def test_files_match_the_command_now_and_at_a_serial(
    client: Client, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(published.home))
    found = {}
    for at in (None, 12, published.index.serial):
        prefix, option = ("", ()) if at is None else (f"/at/{at}.{at}", ("--at", at))
        answer = client.get(f"{prefix}/v1/projects/Demo/files").json()
        printed = Commands(published.home).json("lookup", "files", "demo", *option)
        assert [{**result, "epoch": answer["epoch"]} for result in answer["results"]] == printed
        found[at] = {result["filename"]: result["yanked"] for result in answer["results"]}
    assert found[None] == found[published.index.serial]
    assert len(found[12]) < len(found[None])
    assert [name for name, is_yanked in found[None].items() if is_yanked] == ["demo-2.0-py3-none-any.whl"]


def test_files_are_paged_or_streamed(client: Client) -> None:
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


def test_paging_stays_at_its_serial_while_the_index_changes(changing: Published) -> None:
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


def test_cursor_of_another_serial_or_epoch_is_a_conflict(client: Client) -> None:
    cursor = client.get("/v1/projects/demo/files?limit=1").json()["next"]
    known = parse_cursor(cursor, QUESTION, QUESTION.given(project="demo"))
    for name in ("12.13", "12", f"{10**9}.{10**9}", "9" * 30 + ".1", "17-5c1e0a7f"):
        answer = client.get(f"/v1/projects/demo/files?cursor={structs.replace(known, set=name).text()}")
        assert (answer.status_code, answer.json()["parameter"]) == (409, "cursor"), name


def test_project_without_live_files_is_known_and_unknown_project_has_hints(client: Client) -> None:
    gone = client.get("/v1/projects/gone/files")
    assert (gone.status_code, gone.json()["results"]) == (200, [])
    unknown = client.get("/v1/projects/demoo/files")
    assert (unknown.status_code, [unnamed(hint, "demo") for hint in unknown.json()["hints"]]) == (404, [[]])


def test_history_matches_the_command(client: Client, published: Published, monkeypatch):
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(published.home))
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", published.index.url)
    for option, query in (("--all", "?all=1"), (None, "")):
        printed = Commands(published.home).json("history", "demo", *([option] if option else []))
        answered = client.get(f"/v1/projects/Demo/history{query}").json()
        assert json.dumps(answered["results"], sort_keys=True) == json.dumps(printed, sort_keys=True)
        assert answered["serial"] == published.index.serial


def test_unknown_project_is_a_problem_with_hints(client: Client):
    answer = client.get("/v1/projects/demoo/history")
    assert (answer.status_code, [unnamed(hint, "demo") for hint in answer.json()["hints"]]) == (404, [[]])


PATH = "/v1/projects/PyYAML/dependents"


def names(client: Client, query: str = "") -> list[str]:
    document = client.get(PATH + query).json()
    assert document["count"] == len(document["results"])
    return [
        f"{result['normalized']} {','.join(result['always'] + result['marker'] + result['extra'])}"
        for result in document["results"]
    ]


def test_version_selects_dependents_that_accept_or_exclude_it(client: Client):
    assert names(client) == ["demo 1.0,2.0,2.1", "other-app 0.1"]
    assert names(client, "?version=6.0") == ["demo 1.0,2.1"]
    assert names(client, "?excludes=6.0") == ["demo 2.0", "other-app 0.1"]
    assert names(client, "?excludes=6.5") == ["demo ", "other-app 0.1"][1:]
    assert names(client, "?version=5.0") == ["demo 1.0,2.1", "other-app 0.1"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?version=1&excludes=2", 409),
        ("?format=ndjson&limit=1", 409),
        ("?version=x", 400),
        ("?excludes=", 400),
        ("?format=xml", 400),
        ("?limit=0", 400),
        ("?cursor=x", 404),
    ],
)
def test_invalid_or_conflicting_parameters_are_problems(client: Client, query: str, status: int):
    answer = client.get(PATH + query)
    assert answer.status_code == status
    assert answer.json()["parameter"] in query


@pytest.mark.parametrize(
    "how", [{"path": PATH + "?format=ndjson"}, {"path": PATH, "headers": {"Accept": "application/x-ndjson"}}]
)
@pytest.mark.parametrize("at", ["", "/at/27.27"])
def test_stream_has_the_same_results(client: Client, published: Published, how, at: str):
    at = at and f"/at/{published.index.serial}.{published.index.serial}"
    answer = client.get(**{**how, "path": at + how["path"]})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert "Accept" in answer.headers["vary"]
    assert [json.loads(line) for line in answer.iter_lines()] == client.get(PATH).json()["results"]


def test_json_is_preferred_if_both_are_accepted_equally(client: Client):
    for accepted in ("*/*", "application/json, application/x-ndjson", "application/x-ndjson;q=0.5, application/json"):
        assert client.get(PATH, headers={"Accept": accepted}).headers["content-type"] == "application/json"


def test_prefix_has_dependents_and_count_of_each_project(client: Client):
    document = client.get("/v1/projects/py/dependents?prefix=1").json()
    assert [result["required"] for result in document["results"]] == ["pyyaml", "pyyaml"]
    assert document["count"] == 2
    first = client.get("/v1/projects/py/dependents?prefix=1&limit=1").json()
    second = client.get(f"/v1/projects/py/dependents?prefix=1&limit=1&cursor={first['next']}").json()
    assert first["results"] + second["results"] == document["results"]
    assert (first["count"], second["count"]) == (2, 2)


def test_cursor_accepts_any_spelling_of_its_project(client: Client):
    first = client.get(f"{PATH}?limit=1").json()
    assert client.get(f"/v1/projects/pyyaml/dependents?limit=1&cursor={first['next']}").status_code == 200


@pytest.mark.parametrize("at", ["", "/at/SERIAL"])
def test_pages_have_each_result_once(client: Client, published: Published, at: str):
    at = at.replace("SERIAL", f"{published.index.serial}.{published.index.serial}")
    first = client.get(f"{at}{PATH}?limit=1").json()
    assert (first["count"], len(first["results"])) == (2, 1)
    second = client.get(f"{at}{PATH}?limit=1&cursor={first['next']}").json()
    assert first["results"] + second["results"] == client.get(PATH).json()["results"]
    assert second["count"] == 2
    assert "next" not in second
    other = client.get(f"{at}{PATH}?limit=1&excludes=6.0&cursor={first['next']}")
    assert (other.status_code, other.json()["parameter"]) == (409, "cursor")


def test_cursor_is_bound_to_its_set_while_newer_ones_are_published(changing: Published):
    with changing.service() as service, client_of(service) as client:
        first = client.get(f"{PATH}?limit=1").json()
        changing.add("wheel", "aaa", "1.0", requires_dist=["PyYAML"])
        changing.publish()
        service.follow()
        assert client.get(PATH).json()["count"] == 3
        second = client.get(f"{PATH}?limit=1&cursor={first['next']}").json()
        assert (second["set"], second["serial"], second["count"]) == (first["set"], first["serial"], 2)
        assert [result["normalized"] for result in second["results"]] == ["other-app"]
        _forget_former(service)
        assert client.get(f"{PATH}?limit=1&cursor={first['next']}").status_code == 200  # the set is still published
        _forget_former(service)
        for path in (changing.home / "storage").glob("*/input_lists/*"):
            if int(path.name) <= 4:
                path.unlink()
        assert client.get(f"{PATH}?limit=1&cursor={first['next']}").status_code == 410


def _forget_former(service: Service) -> None:
    service._former.clear()


DEPENDENTS = find_question("dependents")
ASKED = DEPENDENTS.given(project="Demo.Pkg", version="1.0")
DIGEST = digest_of(DEPENDENTS, ASKED)


@given(st.text(), st.lists(st.text(), min_size=2, max_size=2), st.none() | st.integers(0, 2**40))
def test_cursor_round_trips(named: str, after: list[str], count: int | None) -> None:
    cursor = PageCursor(named, DIGEST, after, count)
    assert cursor.text().replace("-", "").replace("_", "").isalnum()
    assert read_cursor(cursor.text(), DEPENDENTS, ASKED) == cursor


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_invalid_cursor_is_a_problem(text: str) -> None:
    with pytest.raises(ProblemError) as raised:
        read_cursor(text, DEPENDENTS, ASKED)
    assert (raised.value.problem.status, raised.value.problem.parameter) == (404, "cursor")


def test_digest_separates_its_parts() -> None:
    assert list_digest("a", "bc") != list_digest("ab", "c")
    assert list_digest("a", None) == list_digest("a", None)


def test_spellings_of_one_value_share_a_list() -> None:
    assert digest_of(DEPENDENTS, DEPENDENTS.given(project="demo-pkg", version="1.0")) == DIGEST
    assert digest_of(DEPENDENTS, DEPENDENTS.given(project="demo-pkg", version="2.0")) != DIGEST


def test_cursor_of_another_list_is_a_problem(subtests: pytest.Subtests) -> None:
    wrong = {
        "none": 404,
        "": 404,
        "größe": 404,
        PageCursor("7-abc", list_digest("other"), ["a", "b"]).text(): 409,
        PageCursor("7-abc", DIGEST, []).text(): 404,
        PageCursor("7-abc", DIGEST, ["demo"]).text(): 404,
        PageCursor("7-abc", DIGEST, ["demo", "b", "c"]).text(): 404,
        PageCursor("7-abc", DIGEST, ["demo", "b"], -5).text(): 404,
    }
    for text, status in wrong.items():
        with subtests.test(text=text):
            with pytest.raises(ProblemError) as raised:
                read_cursor(text, DEPENDENTS, ASKED)
            assert (raised.value.problem.status, raised.value.problem.parameter) == (status, "cursor")
