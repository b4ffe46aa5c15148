"""Resolutions and solvability over HTTP."""

from datetime import timedelta

import msgspec
import pytest
from jsonschema import Draft202012Validator

from pypi_assets.resolve.solvability import Solvability, solvability_path
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.resolve.test_solvability_files import DAY, MADE
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.service.solvable_days import write_days

WHERE = {"python": "3.12", "platform": "linux-x86_64"}


def pins(answer: dict[str, object]) -> dict[str, str]:
    """Return the version of each project in the answer to a request."""
    return {release["normalized"]: release["version"] for release in answer["result"]["releases"]}  # type: ignore[index]


def test_newest_versions_are_chosen_from_one_set(client: Client, published: Published):
    answer = client.post("/v1/resolve", {"requirements": ["demo"], **WHERE})
    assert answer.status_code == 200
    document = answer.json()
    assert pins(document) == {"demo": "2.1", "pyyaml": "6.0"}
    assert document["serial"] == document["result"]["serial"] == published.index.serial
    assert document["set"] == client.get("/v1/modules/yaml").json()["set"]
    [demo, pyyaml] = document["result"]["releases"]
    assert demo["requires"] == [{"normalized": "pyyaml", "version": "6.0"}]
    assert pyyaml["required_by"] == [{"normalized": "demo", "requirement": "PyYAML"}]
    assert [file["filename"] for file in demo["files"]] == ["demo-2.1-py3-none-any.whl"]
    assert document["result"]["environments"][0]["platform"] == "linux-x86_64"


def test_resolution_at_a_serial_uses_past_state(client: Client, published: Published):
    serial = published.index.serial
    latest = client.post("/v1/resolve", {"requirements": ["demo"], **WHERE}).json()["result"]
    past = client.post(f"/at/{serial}.{serial}/v1/resolve", {"requirements": ["demo"], **WHERE})
    assert past.json()["result"] == latest
    assert past.json()["epoch"] == serial
    redirect = client.post("/at/2026-03-05/v1/resolve", {"requirements": ["demo"]})
    assert redirect.status_code in {307, 308}
    before = client.session.post(redirect.next.url, json={"requirements": ["demo"]}, allow_redirects=False)  # type: ignore[union-attr]
    while before.is_redirect:
        before = client.session.post(before.next.url, json={"requirements": ["demo"]}, allow_redirects=False)  # type: ignore[union-attr]
    assert pins(before.json()) == {"demo": "1.0", "pyyaml": "6.0"}


def test_unsolvable_requirements_have_a_proof(client: Client):
    result = client.post("/v1/resolve", {"requirements": ["demo", "PyYAML>7"], **WHERE}).json()["result"]
    assert result["releases"] is None
    assert result["proof"]["steps"][-1]
    assert "pyyaml" in result["proof"]["projects"]


def test_cooldown_counts_back_from_the_answer_time(client: Client, published: Published):
    serial = published.index.serial
    body = {"requirements": ["demo"], **WHERE, "cooldown_hours": 30}
    assert pins(client.post(f"/at/{serial}.{serial}/v1/resolve", body).json()) == {"demo": "1.0", "pyyaml": "6.0"}
    assert pins(client.post("/v1/resolve", {**body, "cooldown_hours": 1}).json())["demo"] == "2.1"


UNANSWERED = [
    ({"requirements": ["demo>"]}, "'demo>'"),
    ({"requirements": [], "constraints": ["="]}, "constraints"),
    ({"requirements": ["demo"], "python": "2.7"}, "python"),
    ({"requirements": ["demo"], "platform": "amiga"}, "platform"),
    ({"requirements": ["demo"], "semantics": "conda"}, "semantics"),
    ({"requirements": ["demo @ https://example.org/demo.whl"]}, "https://example.org/demo.whl"),
    ({"requirements": [""]}, "requirements"),
    ({"wanted": ["demo"]}, "wanted"),
    ({}, "requirements"),
    ([], "object"),
]


def test_unanswerable_request_is_a_problem(client: Client, subtests: pytest.Subtests):
    for body, named in UNANSWERED:
        with subtests.test(body=body, named=named):
            answer = client.post("/v1/resolve", body)
            assert answer.status_code == 400
            assert named in answer.json()["detail"]


def test_up_to_five_thousand_requirements_are_answered(client: Client):
    many = [f"demo>={number % 3}.0" for number in range(5_000)]
    assert pins(client.post("/v1/resolve", {"requirements": many, **WHERE}).json())["demo"] == "2.1"
    assert client.post("/v1/resolve", {"requirements": ["demo"] * 5_001}).status_code == 413


def test_answer_without_published_days_is_empty(client: Client):
    document = client.get("/v1/solvability").json()
    assert document["days"] == []
    assert len(document["hints"]) == 1
    for day in ("newest", "2026-03-02"):
        answer = client.get(f"/v1/solvability/{day}")
        assert (answer.status_code, answer.json()["parameter"]) == (404, "day")
        assert answer.json()["detail"]


def test_days_are_listed_and_each_day_is_complete(changing: Published):
    write_days(changing.storage, 4, gap=2)
    with changing.client() as client:
        found = client.get("/v1/solvability").json()
        assert [day["day"] for day in found["days"]] == ["2026-02-26", "2026-02-27", "2026-03-01", "2026-03-02"]
        newest = found["days"][-1]
        assert (newest["serial"], newest["projects"], newest["environments"]) == (1350, 3, 2)
        assert newest["outcomes"] == {"solvable": 3, "unsolvable": 1, "unknown requirements": 1, "limit": 1}
        assert (newest["newly_unsolvable"], newest["newly_solvable"]) == (2, 1)
        assert [one["day"] for one in client.get("/v1/solvability?days=1").json()["days"]] == ["2026-03-02"]
        for day in ("newest", "2026-03-02"):
            answer = client.get(f"/v1/solvability/{day}")
            assert msgspec.json.decode(answer.content, type=Solvability) == MADE
            assert answer.headers["x-pypi-last-serial"] == "1350"
        document = client.get("/openapi.json").json()
        for path, url in (("/v1/solvability", "/v1/solvability"), ("/v1/solvability/{day}", "/v1/solvability/newest")):
            described = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            Draft202012Validator({**described, "components": document["components"]}).validate(client.get(url).json())
        absent = client.get("/v1/solvability/2026-02-28")
        assert absent.status_code == 404
        assert unnamed(absent.json()["detail"], "4", "2026-02-26", "2026-03-02") == []


def test_corrupt_day_is_named_and_new_day_is_found(changing: Published):
    write_days(changing.storage, 1)
    with changing.client() as client:
        assert len(client.get("/v1/solvability").json()["days"]) == 2
        changing.storage.put(solvability_path(DAY), b"no gzip")
        [_, damaged] = client.get("/v1/solvability").json()["days"]
        assert (damaged["serial"], damaged["outcomes"]) == (None, {})
        assert damaged["problem"]
        answer = client.get("/v1/solvability/newest")
        assert (answer.status_code, unnamed(answer.json()["detail"], DAY)) == (503, [])
        changing.storage.delete(solvability_path(DAY))
        [left] = client.get("/v1/solvability").json()["days"]
        assert left["day"] == (DAY - timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    ("path", "status", "parameter"),
    [
        ("/v1/solvability?days=0", 400, "days"),
        ("/v1/solvability?days=401", 400, "days"),
        ("/v1/solvability/today", 400, "day"),
        ("/v1/solvability/2026-02-30", 404, "day"),
    ],
)
def test_invalid_parameter_is_a_problem_that_names_it(client: Client, path: str, status: int, parameter: str):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["parameter"]) == (status, parameter)
