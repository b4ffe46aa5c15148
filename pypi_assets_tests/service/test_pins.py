"""Answers at a serial: the state of that time, at an address whose content never changes."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, insert

from pypi_assets.catalog.reports.past_pages import StoredFiles
from pypi_assets.catalog.tables import epochs, live_intervals, yanked_intervals
from pypi_assets.service import pins
from pypi_assets.service.pins import PinnedMoment, parse_pin
from pypi_assets.service.problems import ProblemError
from pypi_assets_tests.service.published import Client, Published, client_of

NAMES = (
    "/v1/modules/yaml",
    "/v1/projects/demo",
    "/v1/projects/Other_App",
    "/v1/projects/demo/2.0",
    "/v1/projects/pyyaml/dependents",
    "/v1/projects/pyyaml/dependents?excludes=6.0",
    "/v1/projects/pyyaml/dependents?version=6.0",
    "/v1/projects/pyyaml/impact?version=6.0",
    "/v1/projects/pyyaml/breaks?version=6.0",
)


def test_serial_redirects_to_its_epoch_which_is_immutable(client: Client):
    first = client.get("/at/12/v1/modules/yaml?prefix=0")
    assert first.status_code == 307
    assert first.headers["location"] == "../../../12.12/v1/modules/yaml?prefix=0"
    assert first.headers["cache-control"] == "public, max-age=60"
    pinned = client.get("/at/12.12/v1/modules/yaml?prefix=0")
    assert pinned.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert pinned.headers["x-pypi-last-serial"] == "12"
    assert pinned.headers["last-modified"] == "Tue, 03 Mar 2026 00:00:00 GMT"
    assert (pinned.json()["serial"], pinned.json()["epoch"]) == (12, 12)


@pytest.mark.parametrize("path", NAMES)
def test_answer_at_the_last_serial_matches_the_published_one(client: Client, published: Published, path: str):
    serial = published.index.serial
    latest, pinned = client.get(path).json(), client.get(f"/at/{serial}.{serial}{path}").json()
    del latest["set"], pinned["epoch"]
    assert latest == pinned


def test_past_answers_precede_a_yank_and_a_removal(client: Client, published: Published):
    def newest(serial: int) -> str:
        found: str = client.get(f"/at/{serial}.{serial}/v1/projects/demo").json()["result"]["newest"]
        return found

    history = client.get("/v1/projects/demo/history").json()["results"]
    [yank] = [entry["serial"] for entry in history if entry["kind"] == "yank release"]
    assert (newest(yank - 1), newest(yank), newest(published.index.serial)) == ("2.0", "1.0", "2.1")
    [removal] = [
        entry["serial"]
        for entry in client.get("/v1/projects/gone/history").json()["results"]
        if entry["kind"] == "remove project"
    ]
    assert client.get(f"/at/{removal - 1}.{removal - 1}/v1/projects/gone").status_code == 200
    assert client.get(f"/at/{removal}.{removal}/v1/projects/gone").status_code == 404
    assert client.get("/v1/projects/gone").status_code == 404


def test_history_ends_at_the_pinned_serial(client: Client, published: Published):
    serial = published.index.serial
    latest = client.get("/v1/projects/demo/history").json()["results"]
    for at in (0, 12, serial):
        pinned = client.get(f"/at/{at}.{at}/v1/projects/demo/history").json()["results"]
        assert pinned == [entry for entry in latest if entry["serial"] <= at and entry["kind"] != "visit"]


def test_time_redirects_to_its_serial(client: Client):
    def serial(time: str) -> str:
        location: str = client.get(f"/at/{time}/v1/modules/yaml").headers["location"]
        return location

    before, after = serial("2026-03-02T23:59:59Z"), serial("2026-03-03")
    assert before != after
    assert serial("2026-03-03T00:00:00Z") == serial("2026-03-03T01:00:00+01:00") == serial("2026-03-03T12:00") == after


UNANSWERED = [
    ("9999", 409, "9999"),
    ("2020-01-01", 409, "2020-01-01"),
    ("2999-01-01", 409, "2999-01-01"),
    ("2026-02-30", 409, "2026-02-30"),
    ("12.13", 409, "/at/12/"),
    ("12.11", 409, "/at/12/"),
    ("12,other", 400, "other"),
    ("yesterday", 400, "yesterday"),
    ("-1", 400, "-1"),
    ("1" * 30, 400, "1" * 30),
    ("999999999999999999", 409, "999999999999999999"),
    ("0001-01-01", 409, "0001-01-01"),
]


def test_unanswerable_serial_names_answerable_ones(client: Client, subtests: pytest.Subtests):
    for at, status, named in UNANSWERED:
        with subtests.test(at=at, status=status):
            answer = client.get(f"/at/{at}/v1/modules/yaml")
            assert answer.status_code == status
            assert named in answer.json()["detail"]
            assert answer.json()["parameter"] == "at"


def test_pinned_answer_is_cached_until_its_epoch_ends(changing: Published, monkeypatch):
    with changing.service() as service, client_of(service) as client:
        path = "/at/12.12/simple/pyyaml/"
        first = client.get(path, headers={"Accept": "application/json"})
        with changing.catalog.write() as connection:
            connection.execute(delete(yanked_intervals))
            connection.execute(delete(live_intervals))  # so that the answer cannot be computed again
        with monkeypatch.context() as patched:
            patched.delattr(pins, "exact_serial")  # for a cached answer, only the epoch is read
            again = client.get(path, headers={"Accept": "application/json"})
        assert (again.content, again.headers["etag"]) == (first.content, first.headers["etag"])
        service.stored_files = StoredFiles()  # the spans of files are cached too
        assert client.get(path, headers={"Accept": "text/plain"}).content != first.content
        with changing.catalog.write() as connection:
            connection.execute(insert(epochs).values(serial=10, epoch=40))
        assert client.get(path, headers={"Accept": "application/json"}).status_code == 410


@pytest.mark.parametrize(
    ("route", "name", "sent"),
    [
        ("owners", "imports", ["yaml", "demo"]),
        ("purls", "purls", ["pkg:pypi/demo", "pkg:pypi/demo@1.0"]),
    ],
)
def test_cached_answer_is_bound_to_its_body(published: Published, route: str, name: str, sent: list[str]):
    serial = published.index.serial
    with published.client() as client:
        answers = [
            client.post(f"/at/{serial}.{serial}/v1/{route}", {name: each}).json()["results"]
            for each in ([sent[0]], [sent[1]], sent)
        ]
    assert [*answers[0], *answers[1]] == answers[2]
    assert answers[0] != answers[1]


def test_past_epoch_is_gone(changing: Published):
    with changing.service() as service, client_of(service) as client:
        path = "v1/modules/yaml"
        assert client.get(f"/at/12.12/{path}").status_code == 200
        with changing.catalog.write() as connection:
            connection.execute(insert(epochs).values(serial=10, epoch=40))
        assert client.get(f"/at/12.12/{path}").status_code == 410
        assert client.get(f"/at/12/{path}").headers["location"] == f"../../../12.40/{path}"
        assert client.get(f"/at/12.40/{path}").status_code == 200
        assert client.get(f"/at/9.9/{path}").status_code == 200


def test_missing_catalog_is_a_problem(published: Published, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.client(home=tmp_path / "home") as client:
        for path in ("/at/12/v1/modules/yaml", "/v1/projects/demo/history"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["type"]) == (503, "/docs#no-catalog")
        assert client.get("/v1/projects/demo").json()["result"]["summary"] is None
        assert client.get("/v1/status").json()["catalog"] is None


def test_pins_are_parsed():
    assert parse_pin("12") == PinnedMoment(12, None)
    assert parse_pin("12.13,safe") == PinnedMoment(12, 13, ("safe",))
    assert parse_pin("2026-03-03").moment == datetime(2026, 3, 3, tzinfo=UTC)
    with pytest.raises(ProblemError):
        parse_pin("")


def test_first_answerable_time_is_named_and_answered(client: Client):
    for wrong in ("2020-01-01", "9999"):
        for path in ("/v1/projects/demo", "/simple/demo/"):
            problem = client.get(f"/at/{wrong}{path}").json()
            assert problem["type"] == "/docs#not-exact"
            for first in (problem["first_serial"], problem["first_time"]):
                assert f"/at/{first}/" in problem["detail"]
                assert client.get(f"/at/{first}/v1/modules/yaml").status_code == 307
            serial = client.get(f"/at/{problem['first_time']}/v1/modules/yaml", allow_redirects=True)
            assert serial.status_code == 200
    before = datetime.fromisoformat(problem["first_time"]) - timedelta(seconds=1)
    assert client.get(f"/at/{before:%Y-%m-%dT%H:%M:%SZ}/simple/demo/").status_code == 409
