"""Resolutions over HTTP: what `resolve` answers, in the form of the service."""

import pytest

from pypi_assets_tests.service.published import Client, Published

WHERE = {"python": "3.12", "platform": "linux-x86_64"}


def pins(answer: dict[str, object]) -> dict[str, str]:
    """The version of each project in the answer of a request."""
    return {one["normalized"]: one["version"] for one in answer["result"]["releases"]}  # type: ignore[index]


def test_the_newest_versions_are_chosen_from_one_set(client: Client, published: Published):
    answer = client.post("/v1/resolve", {"requirements": ["demo"], **WHERE})
    assert answer.status_code == 200
    found = answer.json()
    assert pins(found) == {"demo": "2.1", "pyyaml": "6.0"}
    assert found["serial"] == found["result"]["serial"] == published.index.serial
    assert found["set"] == client.get("/v1/modules/yaml").json()["set"]
    [demo, pyyaml] = found["result"]["releases"]
    assert demo["requires"] == [{"normalized": "pyyaml", "version": "6.0"}]
    assert pyyaml["required_by"] == [{"normalized": "demo", "requirement": "PyYAML"}]
    assert [file["filename"] for file in demo["files"]] == ["demo-2.1-py3-none-any.whl"]
    assert found["result"]["environments"][0]["platform"] == "linux-x86_64"


def test_at_a_serial_it_is_as_it_was(client: Client, published: Published):
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


def test_what_has_no_solution_has_a_proof(client: Client):
    found = client.post("/v1/resolve", {"requirements": ["demo", "PyYAML>7"], **WHERE}).json()["result"]
    assert found["releases"] is None
    assert found["proof"]["steps"][-1]
    assert "pyyaml" in found["proof"]["projects"]


def test_a_cooldown_counts_back_from_the_moment_of_the_answer(client: Client, published: Published):
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


def test_a_question_that_cannot_be_answered_is_a_problem(client: Client, subtests: pytest.Subtests):
    for body, named in UNANSWERED:
        with subtests.test(body=body, named=named):
            answer = client.post("/v1/resolve", body)
            assert answer.status_code == 400
            assert named in answer.json()["detail"]


def test_five_thousand_requirements_are_answered_and_no_more(client: Client):
    many = [f"demo>={number % 3}.0" for number in range(5_000)]
    assert pins(client.post("/v1/resolve", {"requirements": many, **WHERE}).json())["demo"] == "2.1"
    assert client.post("/v1/resolve", {"requirements": ["demo"] * 5_001}).status_code == 413
