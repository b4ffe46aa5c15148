"""The form of answers, their serials, and the response cache."""

import json

import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.response_cache import ResponseCache, Target
from pypi_assets.service.responses import NDJSON, Lasting, WholeAnswer, to_json
from pypi_assets.service.results import PagedParameters, Results, lines_of, published_answer, wants_lines
from pypi_assets_tests.service.published import Client, Published, client_of


def test_answer_names_its_set_and_serial(published: Published):
    with published.service() as service:
        datasets = service.datasets()
        content = Results[str](serial=datasets.serial, set=datasets.id, results=["found"])
        answer = published_answer(datasets, content)
        assert (answer.serial, answer.modified) == (datasets.serial, datasets.published.published_at)
        assert answer.set_id == datasets.id
        assert b"hints" not in to_json(content)


def test_first_chunks_of_lines_are_small():
    chunks = list(lines_of({"number": number} for number in range(3_000)))
    assert [chunk.count(b"\n") for chunk in chunks] == [100, 2_000, 900]
    assert [json.loads(line)["number"] for chunk in chunks for line in chunk.splitlines()] == list(range(3_000))


@pytest.mark.parametrize(
    ("form", "accept", "expected"),
    [
        (None, "", False),
        (None, "*/*", False),
        (None, NDJSON, True),
        (None, f"{NDJSON};q=0.5, application/json", False),
        (None, f"{NDJSON}, application/json;q=0.5", True),
        ("json", NDJSON, False),
        ("ndjson", "application/json", True),
    ],
)
def test_format_parameter_overrides_the_header(form, accept: str, expected: bool):
    assert wants_lines(PagedParameters(format=form), {"accept": accept}) == expected


def test_lines_reject_a_page_cursor():
    for given in (PagedParameters(format="ndjson", limit=1), PagedParameters(format="ndjson", cursor="x")):
        with pytest.raises(ProblemError, match="format=json"):
            wants_lines(given, {})
    assert not wants_lines(PagedParameters(limit=1, cursor="x"), {})


def test_status_reports_serials_of_answers_and_catalog(client: Client, published: Published):
    document = client.get("/v1/status").json()
    serial = published.index.serial
    assert (document["serial"], document["lag_serials"], document["lag_seconds"]) == (serial, 0, 0.0)
    assert document["datasets"]["versions"].keys() == DATASETS.keys()
    assert document["catalog"] == {
        "serial": serial,
        "index_url": published.index.url,
        "exact_from": 0,
        "index_serial": serial,
        "followed_projects": None,
    }
    assert document["problems"] == {}


def test_service_is_ready_once_data_is_published(published: Published, tmp_path):
    with published.service(home=tmp_path / "empty") as service, client_of(service) as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        answer = client.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert client.get("/v1/modules/yaml").status_code == 503
        document = client.get("/v1/status").json()
        assert (document["serial"], document["catalog"]) == (None, None)
        assert document["problems"].keys() == {"storage", "catalog"}
        assert client.get("/v1/status").headers["x-pypi-last-serial"] == "0"
    with published.client() as client:
        assert client.get("/readyz").json() == {"status": "ready"}


def target(name: str) -> Target:
    return name.encode(), b"", ""


def immutable(body: bytes) -> WholeAnswer:
    return WholeAnswer(body, lasting=Lasting.IMMUTABLE)


def test_immutable_answer_is_cached_by_target():
    cache, of_set, of_serial = ResponseCache(), WholeAnswer(b"1", set_id="one"), immutable(b"2")
    cache.keep(target("a"), of_set)
    cache.keep(target("b"), of_serial)
    assert cache.get(target("a")) is of_set
    assert cache.get(target("b")) is of_serial
    assert cache.get((b"a", b"", "text/html")) is None
    assert cache.get((b"a", b"limit=1", "")) is None
    cache.keep(target("a"), newer := WholeAnswer(b"3", set_id="two"))
    assert cache.get(target("a")) is newer
    assert len(cache) == 2


def test_answer_that_depends_on_more_than_its_target_is_not_cached():
    cache = ResponseCache()
    for answer in (
        WholeAnswer(b"1"),
        WholeAnswer(b"1", lasting=Lasting.REDIRECT),
        WholeAnswer(b"1", set_id="one", status=404),
        WholeAnswer(b"1" * 5_000_000, set_id="one"),
        WholeAnswer(b"1", set_id="one", varies=("Accept", "Origin")),
    ):
        cache.keep(target("a"), answer)
        assert cache.get(target("a")) is None
    cache.keep(target("a"), WholeAnswer(b"1", set_id="one", varies=("Accept",)))
    assert cache.get(target("a")) is not None


def test_cache_is_bounded_and_keeps_recently_used_answers():
    cache = ResponseCache(most_bytes=100_000)
    for number in range(1_000):
        cache.keep(target(str(number)), immutable(b"x" * 1_000))
        cache.keep(target(str(number)), immutable(b"x" * 1_000))  # replaces the one before
        assert cache.get(target("0")) is not None
    held = [number for number in range(1_000) if cache.get(target(str(number)))]
    assert {0, 999} < set(held)
    assert 20 < len(held) == len(cache) < 30
