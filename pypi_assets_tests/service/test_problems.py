"""Checks that every request passes. Each error is a problem document."""

import asyncio
import gc
import json
import re
from typing import Annotated

import pytest
from msgspec import Meta
from sqlalchemy.exc import OperationalError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.errors import NotAnsweredError
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, NotBuiltYetError
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.questions.names import PLATFORM
from pypi_assets.service.app import create_app
from pypi_assets.service.parameters import OperationParameters, convert_parameters, query_fields
from pypi_assets.service.problems import (
    TITLES,
    Problem,
    ProblemError,
    bad_parameter,
    defect,
    not_found,
    problem_answer,
    problem_of,
)
from pypi_assets.service.service import Service
from pypi_assets.storage.store import StorageError
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
            document = answer.json()
            assert document["status"] == status
            assert document["title"]
            assert document["detail"]
            assert client.get("/v1/modules/yaml").status_code == 200


def test_unsupported_method_is_a_problem_that_names_the_supported_ones(client: Client):
    answer = client.request("DELETE", "/v1/modules/yaml")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert answer.json()["type"] == "/docs#no-method"


def test_other_sites_may_send_evaluation_requests(client: Client):
    answer = client.request("OPTIONS", "/v1/changes/stream")
    assert answer.status_code == 204
    allowed = set(answer.headers["access-control-allow-headers"].split(", "))
    assert allowed == {"content-type", "if-none-match", "if-modified-since", "last-event-id"}


def test_names_in_other_alphabets_are_valid(client: Client):
    assert client.get("/v1/modules/%D0%BF%D0%B0%D0%BA%D0%B5%D1%82").json()["results"] == []


def test_answers_have_the_request_id(client: Client, subtests: pytest.Subtests):
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


def test_problem_page_shows_the_request_id(client: Client):
    answer = client.get("/nowhere", headers={"Accept": "text/html", "X-Request-ID": "4f7a-1"})
    assert "4f7a-1" in answer.text


def test_internal_error_reveals_no_details(published: Published, monkeypatch: pytest.MonkeyPatch, caplog):
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


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (LookupNameError("not a name"), 400, "bad-parameter"),
        (NotAnsweredError("later"), 404, "not-exact"),
        (NotBuiltYetError("not yet"), 503, "not-built-yet"),
        (LeveldbDamagedError("broken"), 503, "unavailable"),
        (StorageError("gone"), 503, "unavailable"),
        (CatalogError("gone"), 503, "unavailable"),
        (TimeoutError("a secret"), 503, "too-slow"),
        (OperationalError("SELECT secret", {}, Exception("password")), 503, "unavailable"),
    ],
)
def test_expected_errors_are_problems(error: Exception, status: int, kind: str):
    found = problem_of(error)
    assert found is not None
    assert (found.problem.status, found.problem.type) == (status, f"/docs#{kind}")
    assert "secret" not in found.problem.detail
    assert "password" not in found.problem.detail
    assert (("Retry-After", "5") in found.headers) == (status == 503)


def test_internal_error_is_not_an_expected_error():
    assert problem_of(ZeroDivisionError()) is None
    assert defect().problem.status == 500


def test_problem_document_has_standard_and_own_members():
    answer = problem_answer(bad_parameter("limit", "limit: too large", "1 to 10"), serial=7)
    assert (answer.status, answer.media_type, answer.serial) == (400, "application/problem+json", 7)
    assert json.loads(answer.body) == {
        "type": "/docs#bad-parameter",
        "title": TITLES["bad-parameter"],
        "status": 400,
        "detail": "limit: too large",
        "parameter": "limit",
        "accepts": "1 to 10",
    }


def test_long_detail_is_truncated():
    assert len(not_found("x" * 10_000).problem.detail) == 2_000


class Example(OperationParameters, frozen=True):
    """The parameters of an operation `/v1/example/{name}`."""

    name: Annotated[str, Meta(max_length=5, description="a short name")]
    limit: Annotated[int, Meta(ge=1, le=10, description="1 to 10")] = 3
    prefix: bool = False


def problem(query: str, name: str = "demo") -> Problem:
    with pytest.raises(ProblemError) as raised:
        convert_parameters(Example, {"name": name}, query_fields(query))
    return raised.value.problem


def test_values_come_from_path_and_query():
    parameters = convert_parameters(Example, {"name": "demo"}, query_fields("limit=7&prefix=1"))
    assert parameters == Example(name="demo", limit=7, prefix=True)
    assert convert_parameters(Example, {"name": "demo"}, query_fields("")) == Example(name="demo")


@pytest.mark.parametrize(
    ("query", "parameter", "accepts"),
    [
        ("limit=0", "limit", "1 to 10"),
        ("limit=x", "limit", "1 to 10"),
        ("limit=1.5", "limit", "1 to 10"),
        ("limit=", "limit", "1 to 10"),
        ("prefix=maybe", "prefix", None),
        ("limit=1&limit=2", "limit", "one value"),
        ("name=other", "name", "one value"),
        ("unknown=1", "unknown", "one of: name, limit, prefix"),
    ],
)
def test_invalid_parameter_is_named(query: str, parameter: str, accepts: str | None):
    found = problem(query)
    assert (found.status, found.parameter, found.accepts) == (400, parameter, accepts)


def test_too_long_name_is_not_echoed():
    found = problem("", name="x" * 10_000)
    assert (found.parameter, found.accepts) == ("name", "a short name")
    assert len(found.detail) < 200


@pytest.mark.parametrize("query", ["%ff", "a=%ff", "a=b%00", "&".join(f"a{number}=1" for number in range(50))])
def test_invalid_query_string_is_rejected(query: str):
    assert problem(query).type == "/docs#bad-request"


def test_missing_parameter_is_named():
    with pytest.raises(ProblemError) as raised:
        convert_parameters(Example, {}, [])
    found = raised.value.problem
    assert (found.status, found.parameter, found.accepts) == (400, "name", "a short name")
    assert found.detail


def test_answers_have_the_serial_and_are_readable_by_other_sites(client: Client, published: Published):
    for path in ("/v1/modules/yaml", "/v1/modules/unknown", "/nowhere", "/v1/modules/yaml?wrong=1"):
        headers = client.get(path).headers
        assert headers["x-pypi-last-serial"] == str(published.index.serial)
        assert headers["access-control-allow-origin"] == "*"


def test_request_with_matching_etag_gets_no_body(client: Client):
    first = client.get("/v1/modules/yaml")
    again = client.get("/v1/modules/yaml", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    since = client.get("/v1/modules/yaml", headers={"If-Modified-Since": first.headers["last-modified"]})
    assert since.status_code == 304


def test_head_has_only_headers(client: Client):
    got, head = client.get("/v1/modules/yaml"), client.request("HEAD", "/v1/modules/yaml")
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["etag"] == got.headers["etag"]


def test_running_application_limits_garbage_collection(published: Published):
    async def run() -> None:
        async with app.router.lifespan_context(app):
            assert gc.get_threshold()[0] > 5_000
            assert gc.get_freeze_count() > 10_000

    thresholds = gc.get_threshold()
    with published.service() as service:
        app = create_app(service)
        try:
            asyncio.run(run())
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()


def test_unknown_platform_is_one_problem_in_queries_and_bodies(client: Client) -> None:
    breaks = "/v1/projects/PyYAML/breaks?version=6.0&solve=1&format=ndjson&platform=amiga"
    answers = [
        client.get(breaks),
        client.post("/v1/resolve", {"requirements": ["demo"], "platform": "amiga"}),
        client.post("/v1/collisions", {"pins": ["demo==1.0"], "platform": "amiga"}),
    ]
    assert {answer.status_code for answer in answers} == {400}
    [problem] = {tuple(one.json()[name] for name in ("type", "parameter", "detail")) for one in answers}
    assert problem[:2] == ("/docs#bad-parameter", "platform")
    assert all(PLATFORM.text in answer.json()["accepts"] for answer in answers)


def test_value_is_a_bad_parameter_or_a_conflict(client: Client, subtests: pytest.Subtests) -> None:
    for path, status, kind, parameter in (
        ("/v1/hashes/ab", 409, "conflict", "sha256"),
        ("/v1/hashes/ab?prefix=1&all=1", 409, "conflict", "all"),
        ("/v1/projects/PyYAML/impact?depth=1", 409, "conflict", "depth"),
        ("/v1/projects/PyYAML/breaks?version=77&solve=1&format=ndjson", 409, "conflict", "version"),
        ("/v1/projects/PyYAML/dependents?version=1&excludes=2", 409, "conflict", "excludes"),
    ):
        with subtests.test(path=path):
            document = client.get(path).json()
            found = document["status"], document["type"], document["parameter"]
            assert found == (status, f"/docs#{kind}", parameter)
