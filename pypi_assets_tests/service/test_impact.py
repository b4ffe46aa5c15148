"""Dependents and exclusions of a release over HTTP: pages, streams, and answers at a serial."""

import json
from contextlib import ExitStack
from multiprocessing.connection import Connection

import pytest
from packaging.version import Version

from pypi_assets.resolve import solutions
from pypi_assets.resolve.solutions import Allowance, with_version
from pypi_assets.service import answering
from pypi_assets.service.answering import MOST_WALKS, counted_walk
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published

IMPACT, BREAKS = "/v1/projects/PyYAML/impact", "/v1/projects/PyYAML/breaks"


def names(client: Client, path: str) -> list[str]:
    answer = client.get(path)
    assert answer.status_code == 200
    return [result["normalized"] for result in answer.json()["results"]]


def lines(client: Client, path: str) -> list[tuple[int, str]]:
    answer = client.get(path + ("&" if "?" in path else "?") + "format=ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [(one["depth"], one["normalized"]) for one in map(json.loads, answer.iter_lines())]


@pytest.fixture
def prefixes(published: Published) -> tuple[str, str]:
    """Return the path prefixes of the latest answers and of pinned answers at the same serial."""
    return "", f"/at/{published.index.serial}.{published.index.serial}"


def test_version_selects_newest_releases_that_accept_or_exclude_it(client: Client, prefixes: tuple[str, str]):
    for prefix in prefixes:
        assert names(client, prefix + IMPACT) == ["demo", "other-app"]
        assert names(client, prefix + IMPACT + "?version=6.0") == ["demo"]
        assert names(client, prefix + BREAKS + "?version=6.0") == ["other-app"]
        assert names(client, prefix + BREAKS + "?version=5.0") == []
    [row] = client.get(BREAKS + "?version=6.0").json()["results"]
    assert (row["version"], row["condition"], row["specifiers"], row["reason"]) == ("0.1", "marker", ["<6"], "excludes")


def test_transitive_dependents_are_streamed(client: Client, prefixes: tuple[str, str]):
    demo = "/v1/projects/demo/impact"
    for prefix in prefixes:
        assert lines(client, prefix + IMPACT + "?transitive=1") == [(1, "demo"), (1, "other-app")]
        assert lines(client, prefix + IMPACT + "?version=6.0&transitive=1") == [(1, "demo")]
        assert lines(client, prefix + demo + "?version=1.0&transitive=1&depth=1") == [(1, "other-app")]
        assert lines(client, prefix + BREAKS + "?version=6.0") == [(1, "other-app")]
        answer = client.get(prefix + demo + "?transitive=1")
        assert (answer.status_code, answer.json()["parameter"]) == (409, "transitive")


def test_pages_have_each_result_once(client: Client, prefixes: tuple[str, str]):
    for prefix in prefixes:
        first = client.get(f"{prefix}{IMPACT}?limit=1").json()
        second = client.get(f"{prefix}{IMPACT}?limit=1&cursor={first['next']}").json()
        assert first["results"] + second["results"] == client.get(prefix + IMPACT).json()["results"]
        assert "next" not in second
        other = client.get(f"{prefix}{IMPACT}?limit=1&version=6.0&cursor={first['next']}")
        assert (other.status_code, other.json()["parameter"]) == (409, "cursor")


def test_cursor_is_bound_to_its_serial(client: Client, published: Published, prefixes: tuple[str, str]):
    first = client.get(f"{IMPACT}?limit=1").json()
    answer = client.get(f"{prefixes[1]}{IMPACT}?limit=1&cursor={first['next']}")
    assert (answer.status_code, answer.json()["parameter"]) == (409, "cursor")


def test_unknown_names_have_hints(client: Client, prefixes: tuple[str, str]):
    for prefix in prefixes:
        document = client.get(prefix + "/v1/projects/pyyalm/impact?version=1").json()
        assert (document["results"], unnamed(document["hints"][0], "pyyalm")) == ([], [])
        assert any("pyyaml" in hint.lower() for hint in document["hints"][1:])
        assert "hints" not in client.get(prefix + "/v1/projects/yaml-copy/impact").json()


WRONG = [
    (BREAKS, 400, "version"),
    (BREAKS + "?version=latest", 400, "version"),
    (BREAKS + "?version=1&transitive=1", 409, "transitive"),
    (IMPACT + "?version=", 400, "version"),
    (IMPACT + "?depth=1", 409, "depth"),
    (IMPACT + "?transitive=1&depth=0", 400, "depth"),
    (IMPACT + "?limit=0", 400, "limit"),
    (IMPACT + "?format=ndjson&limit=1", 409, "limit"),
    (IMPACT + "?cursor=x", 404, "cursor"),
    ("/at/999999/v1/projects/demo/impact", 409, "at"),
    ("/at/1990-01-01/v1/projects/demo/breaks?version=1", 409, "at"),
]


def test_invalid_parameter_is_a_problem_that_names_it(client: Client, subtests: pytest.Subtests):
    for path, status, parameter in WRONG:
        with subtests.test(path=path, status=status):
            answer = client.get(path)
            assert answer.status_code == status
            assert answer.json()["parameter"] == parameter


SOLVED = BREAKS + "?version=6.0&solve=1&transitive=1&python=3.12&platform=linux-x86_64"


def reasons(client: Client, path: str) -> dict[str, tuple[str, str | None]]:
    answer = client.get(path + "&format=ndjson")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    rows = [json.loads(line) for line in answer.iter_lines()]
    return {row["normalized"]: (row["reason"], row["proof"]) for row in rows}


@pytest.mark.nightly
def test_releases_unsolvable_with_a_version_are_streamed(
    client: Client, prefixes: tuple[str, str], monkeypatch: pytest.MonkeyPatch
):
    for prefix in prefixes:
        assert reasons(client, prefix + SOLVED) == {"other-app": ("excludes", None)}
    with monkeypatch.context() as patch:  # simulate that it has only a version that demo cannot use
        patch.setattr(solutions, "with_version", lambda *given: with_version(*given[:2], Version("77")))
        for prefix in prefixes:
            reason, proof = reasons(client, prefix + SOLVED)["demo"]
            assert reason == "unsolvable"
            assert unnamed(proof or "", "demo==2.1", "pyyaml") == []
    with monkeypatch.context() as patch:
        patch.setattr(answering, "_PROJECT_S", -1.0)
        reason, proof = reasons(client, SOLVED)["demo"]
        assert (reason, unnamed(proof or "", "-1")) == ("undecided", [])
    with monkeypatch.context() as patch:
        patch.setattr(answering, "Allowance", lambda _: Allowance(0.0))
        reason, proof = reasons(client, SOLVED)["demo"]
        assert (reason, unnamed(proof or "", 0)) == ("undecided", [])
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "poll", lambda *_: False)  # simulate that its process does not answer
        reason, proof = reasons(client, SOLVED)["demo"]
        assert (reason, bool(proof)) == ("undecided", True)


@pytest.mark.parametrize(
    ("query", "status", "parameter"),
    [
        ("&solve=1", 409, "solve"),
        ("&solve=1&format=ndjson&platform=amiga", 400, "platform"),
        ("&solve=1&format=ndjson&seconds=0", 400, "seconds"),
        ("&solve=1&format=ndjson&depth=1", 409, "depth"),
    ],
)
def test_unsolvable_question_is_a_problem(client: Client, query: str, status: int, parameter: str):
    answer = client.get(BREAKS + "?version=6.0" + query)
    assert (answer.status_code, answer.json()["parameter"]) == (status, parameter)


def test_version_that_is_not_live_is_not_solved(client: Client, prefixes: tuple[str, str]):
    for prefix in prefixes:
        answer = client.get(prefix + BREAKS + "?version=77&solve=1&format=ndjson")
        assert (answer.status_code, answer.json()["parameter"]) == (409, "version")


def test_transitive_request_above_the_limit_is_rejected(client: Client, prefixes: tuple[str, str]):
    path = IMPACT + "?transitive=1&format=ndjson"
    with ExitStack() as stack:
        for _ in range(MOST_WALKS):
            stack.enter_context(counted_walk())
        for prefix in prefixes:
            answer = client.get(prefix + path)
            assert (answer.status_code, answer.json()["type"]) == (503, "/docs#busy")
        assert lines(client, IMPACT) == [(1, "demo"), (1, "other-app")]
    for prefix in prefixes:
        assert client.get(prefix + path).status_code == 200
