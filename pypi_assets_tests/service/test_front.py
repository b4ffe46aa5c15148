"""What every request passes: its form is checked, and each error is a problem document."""

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
    ("/v1/modules/" + "a" * 100_000, 431),
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


def test_a_defect_shows_nothing_of_itself(published: Published, monkeypatch: pytest.MonkeyPatch, caplog):
    def fail(_service: Service) -> None:
        raise ZeroDivisionError("a secret")

    with published.service() as service, client_of(service) as client:
        monkeypatch.setattr(Service, "datasets", fail)
        answer = client.get("/v1/modules/yaml")
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "a secret" in caplog.text
        monkeypatch.undo()
        assert client.get("/v1/modules/yaml").status_code == 200
