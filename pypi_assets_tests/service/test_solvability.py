"""The routes of solvability: what the storage has of each day, and clear answers where it has nothing."""

from datetime import timedelta

import msgspec
import pytest
from jsonschema import Draft202012Validator

from pypi_assets.resolve.solvability import Solvability, solvability_path
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.resolve.test_solvability_files import DAY, MADE
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.service.solvable_days import write_days


def test_where_nothing_was_published_that_is_the_answer(client: Client):
    found = client.get("/v1/solvability").json()
    assert found["days"] == []
    assert len(found["hints"]) == 1
    for day in ("newest", "2026-03-02"):
        answer = client.get(f"/v1/solvability/{day}")
        assert (answer.status_code, answer.json()["parameter"]) == (404, "day")
        assert answer.json()["detail"]


def test_the_days_and_each_day_in_full(changing: Published):
    write_days(changing.storage, 4, gap=2)
    with changing.client() as client:
        found = client.get("/v1/solvability").json()
        assert [one["day"] for one in found["days"]] == ["2026-02-26", "2026-02-27", "2026-03-01", "2026-03-02"]
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


def test_a_damaged_day_is_named_and_a_new_one_is_seen(changing: Published):
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
def test_what_is_wrong_is_a_problem_that_names_the_parameter(client: Client, path: str, status: int, parameter: str):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["parameter"]) == (status, parameter)
