"""What every request passes: its form is checked, and each error is a problem document."""

import re

import pytest

from pypi_assets.service.service import Service
from pypi_assets_tests.service.published import Client, Published, client_of

BAD_TARGETS = [
    ("/v1/modules/%00", 400),
    ("/v1/modules/a%00b", 400),
    ("/v1/modules/%ff%fe", 400),
    ("/v1/modules/yaml?x=%00", 400),
    ("/v1/modules/yaml?module=other", 400),
    ("/v1/modules/yaml?x=1&x=2", 400),
    ("/v1/modules/" + "a" * 10_000, 400),
    ("/v1/modules/" + "a" * 62_000, 414),
    ("/v1/modules/" + "a" * 2_000, 400),
    ("/v1/modules/", 404),
    ("/nowhere", 404),
]


def test_bad_targets_are_problems(client: Client, subtests: pytest.Subtests):
    for path, status in BAD_TARGETS:
        with subtests.test(path=path, status=status):
            answer = client.get(path)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["cache-control"] == "no-store"
            found = answer.json()
            assert found["status"] == status
            assert found["title"]
            assert found["detail"]
            assert client.get("/v1/modules/yaml").status_code == 200


def test_another_method_is_a_problem_that_names_those_there_are(client: Client):
    answer = client.request("DELETE", "/v1/modules/yaml")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert answer.json()["type"] == "/docs#no-method"


def test_pages_of_other_sites_may_send_what_is_evaluated_here(client: Client):
    answer = client.request("OPTIONS", "/v1/changes/stream")
    assert answer.status_code == 204
    allowed = set(answer.headers["access-control-allow-headers"].split(", "))
    assert allowed == {"content-type", "if-none-match", "if-modified-since", "last-event-id"}


def test_names_in_other_alphabets_are_names(client: Client):
    assert client.get("/v1/modules/%D0%BF%D0%B0%D0%BA%D0%B5%D1%82").json()["results"] == []


def test_each_answer_has_the_id_of_its_request(client: Client, subtests: pytest.Subtests):
    for path in (
        "/v1/modules/yaml",
        "/v1/status",
        "/nowhere",
        "/v1/modules/%00",
        "/import/yaml/",
        "/v1/changes/stream",
    ):
        for sent, is_accepted in (
            ("4f7a-1", True),
            ("Root=1-67891233-abcdef012345678912345678", True),
            ("x" * 128, True),
            ("x" * 129, False),
            ("two words", False),
            ('"><script>', False),
            ("", False),
        ):
            with subtests.test(path=path, sent=sent):
                method = "OPTIONS" if path.endswith("stream") else "GET"
                answers = [client.request(method, path, headers={"X-Request-ID": sent}) for _ in range(2)]
                ids = [answer.headers["x-request-id"] for answer in answers]
                assert (ids == [sent, sent]) == is_accepted
                assert is_accepted or (ids[0] != ids[1] and all(re.fullmatch("[0-9a-f]{16}", one) for one in ids))
                if answers[0].status_code >= 400:
                    assert [answer.json()["request_id"] for answer in answers] == ids


def test_a_problem_page_shows_the_id(client: Client):
    answer = client.get("/nowhere", headers={"Accept": "text/html", "X-Request-ID": "4f7a-1"})
    assert "4f7a-1" in answer.text


def test_a_defect_shows_nothing_of_itself(published: Published, monkeypatch: pytest.MonkeyPatch, caplog):
    def fail(_service: Service) -> None:
        raise ZeroDivisionError("a secret")

    with published.service() as service, client_of(service) as client:
        monkeypatch.setattr(Service, "datasets", fail)
        answer = client.get("/v1/modules/yaml")
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "a secret" in caplog.text
        [record] = [record for record in caplog.records if record.exc_info]
        assert answer.json()["request_id"] == answer.headers["x-request-id"] == record.request_id
        monkeypatch.undo()
        assert client.get("/v1/modules/yaml").status_code == 200
