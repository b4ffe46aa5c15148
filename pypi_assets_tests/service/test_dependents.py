"""Who requires a project: pages, streams, and what a version selects."""

import json

import pytest

from pypi_assets.service.service import Service
from pypi_assets_tests.service.published import Client, Published, client_of

PATH = "/v1/projects/PyYAML/dependents"


def names(client: Client, query: str = "") -> list[str]:
    found = client.get(PATH + query).json()
    assert found["count"] == len(found["results"])
    return [f"{one['normalized']} {','.join(one['always'] + one['marker'] + one['extra'])}" for one in found["results"]]


def test_a_version_keeps_those_that_accept_or_exclude_it(client: Client):
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
def test_parameters_that_are_wrong_or_do_not_go_together_are_problems(client: Client, query: str, status: int):
    answer = client.get(PATH + query)
    assert answer.status_code == status
    assert answer.json()["parameter"] in query


@pytest.mark.parametrize(
    "how", [{"path": PATH + "?format=ndjson"}, {"path": PATH, "headers": {"Accept": "application/x-ndjson"}}]
)
@pytest.mark.parametrize("at", ["", "/at/27.27"])
def test_a_stream_has_the_same_results(client: Client, published: Published, how, at: str):
    at = at and f"/at/{published.index.serial}.{published.index.serial}"
    answer = client.get(**{**how, "path": at + how["path"]})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert "Accept" in answer.headers["vary"]
    assert [json.loads(line) for line in answer.iter_lines()] == client.get(PATH).json()["results"]


def test_json_is_preferred_where_both_are_accepted_alike(client: Client):
    for accepted in ("*/*", "application/json, application/x-ndjson", "application/x-ndjson;q=0.5, application/json"):
        assert client.get(PATH, headers={"Accept": accepted}).headers["content-type"] == "application/json"


def test_a_beginning_has_the_dependents_of_each_project_and_their_count(client: Client):
    found = client.get("/v1/projects/py/dependents?prefix=1").json()
    assert [one["required"] for one in found["results"]] == ["pyyaml", "pyyaml"]
    assert found["count"] == 2
    first = client.get("/v1/projects/py/dependents?prefix=1&limit=1").json()
    second = client.get(f"/v1/projects/py/dependents?prefix=1&limit=1&cursor={first['next']}").json()
    assert first["results"] + second["results"] == found["results"]
    assert (first["count"], second["count"]) == (2, 2)


def test_a_cursor_is_of_the_project_in_any_spelling(client: Client):
    first = client.get(f"{PATH}?limit=1").json()
    assert client.get(f"/v1/projects/pyyaml/dependents?limit=1&cursor={first['next']}").status_code == 200


@pytest.mark.parametrize("at", ["", "/at/SERIAL"])
def test_pages_have_all_results_once(client: Client, published: Published, at: str):
    at = at.replace("SERIAL", f"{published.index.serial}.{published.index.serial}")
    first = client.get(f"{at}{PATH}?limit=1").json()
    assert (first["count"], len(first["results"])) == (2, 1)
    second = client.get(f"{at}{PATH}?limit=1&cursor={first['next']}").json()
    assert first["results"] + second["results"] == client.get(PATH).json()["results"]
    assert second["count"] == 2
    assert "next" not in second
    other = client.get(f"{at}{PATH}?limit=1&excludes=6.0&cursor={first['next']}")
    assert (other.status_code, other.json()["parameter"]) == (409, "cursor")


def test_a_cursor_names_its_set_while_newer_ones_come(changing: Published):
    with changing.service() as service, client_of(service) as client:
        first = client.get(f"{PATH}?limit=1").json()
        changing.add("wheel", "aaa", "1.0", requires_dist=["PyYAML"])
        changing.publish()
        service.follow()
        assert client.get(PATH).json()["count"] == 3
        second = client.get(f"{PATH}?limit=1&cursor={first['next']}").json()
        assert (second["set"], second["serial"], second["count"]) == (first["set"], first["serial"], 2)
        assert [one["normalized"] for one in second["results"]] == ["other-app"]
        _forget_former(service)
        assert client.get(f"{PATH}?limit=1&cursor={first['next']}").status_code == 200  # it is still published
        _forget_former(service)
        for path in (changing.home / "storage").glob("*/input_lists/*"):
            if int(path.name) <= 4:
                path.unlink()
        assert client.get(f"{PATH}?limit=1&cursor={first['next']}").status_code == 410


def _forget_former(service: Service) -> None:
    service._former.clear()
