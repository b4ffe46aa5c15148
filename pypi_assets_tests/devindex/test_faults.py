"""The fault plan: each fault over a real connection, the requests that it affects, and plans that are rejected."""

import hashlib
import random
import re
import tomllib
import xmlrpc.client
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import pytest
import requests

from pypi_assets.devindex.faults import Fault, FaultPlan, FaultPlanError, FaultPlanFile, RequestKind
from pypi_assets.devindex.history import History
from pypi_assets.devindex.served_pages import V1_JSON
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.devindex.faulty import SDIST, WHEEL, content_of, fault, path_of, served
from pypi_assets_tests.naming import naming


@pytest.mark.parametrize("status", [500, 503, 429, 404])
def test_status(two_projects: History, status: int) -> None:
    with served(two_projects, fault("status", status=status)) as client:
        answer = client.get("/simple/demo/")
    assert (answer.status_code, "Retry-After" in answer.headers) == (status, False)


def test_status_is_503_by_default(two_projects: History) -> None:
    with served(two_projects, fault("status")) as client:
        assert client.get("/simple/").status_code == 503


def test_retry_after_as_seconds_and_as_date(two_projects: History) -> None:
    plan = fault("status", status=429, retry_after=7, requests=[1])
    plan += fault("status", status=503, retry_after=100, retry_after_as="date", requests=[2])
    with served(two_projects, plan) as client:
        seconds, date = client.get("/simple/"), client.get("/simple/")
    assert (seconds.status_code, seconds.headers["Retry-After"]) == (429, "7")
    due = parsedate_to_datetime(date.headers["Retry-After"])
    assert timedelta(seconds=80) < due - datetime.now(UTC) < timedelta(seconds=101)


def test_xmlrpc_faults_have_status_200(two_projects: History) -> None:
    plan = fault("xmlrpc-fault", reset=42, requests=[1, 2]) + fault("xmlrpc-fault", code=-32403, requests=[3])
    plan += fault("xmlrpc-fault", code=-32500, text="busy", requests=[4])
    with served(two_projects, plan) as client:
        with pytest.raises(xmlrpc.client.Fault, match=naming("HTTPTooManyRequests", 42)) as busy:
            client.call("changelog_last_serial")
        call = xmlrpc.client.dumps((), "changelog_last_serial")
        raw = client.session.post(client.url.replace("simple/", "pypi"), data=call)
        with pytest.raises(xmlrpc.client.Fault) as unavailable:
            client.call("changelog_last_serial")
        with pytest.raises(xmlrpc.client.Fault, match="busy"):
            client.call("changelog_last_serial")
        assert client.call("changelog_last_serial") == 10
    assert (busy.value.faultCode, unavailable.value.faultCode) == (-32500, -32403)
    assert (raw.status_code, raw.headers["Content-Type"].partition(";")[0]) == (200, "text/xml")


def test_stale_page_has_old_content_and_serials(two_projects: History) -> None:
    with served(two_projects, fault("stale", serials=5, on=["page"])) as client:  # as of serial 5: before the yank
        page = client.get("/simple/demo/")
        assert page.headers["X-PyPI-Last-Serial"] == "5"
        assert page.json()["meta"]["_last-serial"] == 5
        assert [file["yanked"] for file in page.json()["files"]] == [False, False]
        assert client.get("/simple/other/").status_code == 404  # the project did not exist: a stale 404
        assert client.call("changelog_last_serial") == 10
        two_projects.unyank("demo", "1.0")  # the old state moves on with the current one
        assert client.get("/simple/demo/").json()["meta"]["_last-serial"] == 6


def test_stale_simple_index(two_projects: History) -> None:
    with served(two_projects, fault("stale", serials=4, on=["index"])) as client:
        listing = client.get("/simple/").json()
        assert client.get("/simple/other/").status_code == 200
    assert listing["meta"]["_last-serial"] == 6
    assert [(project["name"], project["_last-serial"]) for project in listing["projects"]] == [("demo", 6)]


def test_page_stays_stale_for_a_time(tmp_path: Path) -> None:
    two_projects = History(tmp_path / "index")
    two_projects.add(make_wheel(tmp_path, "demo", "1.0"), at=datetime.now(UTC) - timedelta(days=1))
    two_projects.yank("demo", "1.0", at=datetime.now(UTC) - timedelta(minutes=30))
    for seconds, serial in ((3600, 4), (60, 5)):
        with served(two_projects, fault("stale", seconds=seconds)) as client:
            assert client.get("/simple/demo/").json()["meta"]["_last-serial"] == serial
    with served(two_projects, fault("stale", seconds=3 * 86400)) as client:
        assert client.get("/simple/demo/").status_code == 404


def test_index_that_goes_back_does_so_on_all_routes(two_projects: History) -> None:
    with served(two_projects, fault("backwards", serials=6)) as client:  # before the upload of the sdist
        assert client.call("changelog_last_serial") == 4
        assert client.call("changelog_since_serial", 4) == []
        assert client.get("/simple/").json()["meta"]["_last-serial"] == 4
        assert [file["filename"] for file in client.get("/simple/demo/").json()["files"]] == [WHEEL]
        assert client.get("/pypi/demo/json").json()["last_serial"] == 4
        assert client.get(path_of(two_projects, WHEEL)).status_code == 200
        assert client.get(path_of(two_projects, SDIST)).status_code == 404


def test_redirect_to_the_same_host(two_projects: History) -> None:
    with served(two_projects, fault("redirect", status=301)) as client:
        answer = client.session.get(f"{client.url}demo/", headers={"Accept": V1_JSON}, timeout=60)
    assert [one.status_code for one in answer.history] == [301]
    assert answer.json()["name"] == "demo"


def test_redirect_loop(two_projects: History) -> None:
    with (
        served(two_projects, fault("redirect", to="loop", requests=[1])) as client,
        pytest.raises(requests.TooManyRedirects),
    ):
        client.session.get(f"{client.url}demo/", timeout=60)


@pytest.mark.parametrize("to", ["https://files.example.org", "http://files.example.org/mirror/", "http://10.0.0.1:81"])
def test_redirect_to_another_host(two_projects: History, to: str) -> None:
    with served(two_projects, fault("redirect", to=to)) as client:
        answer = client.get("/simple/demo/")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{to.rstrip('/')}/simple/demo/")


def test_html_instead_of_json(two_projects: History) -> None:
    with served(two_projects, fault("html")) as client:
        answer = client.get("/simple/demo/")
    assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/html")
    assert "X-PyPI-Last-Serial" not in answer.headers


def test_ranges_ignored(two_projects: History) -> None:
    path = path_of(two_projects, WHEEL)
    with served(two_projects, fault("no-ranges", every=2)) as client:
        partial, whole = (client.get(path, Range="bytes=0-9") for _ in range(2))
    assert (partial.status_code, len(partial.content)) == (206, 10)
    assert (whole.status_code, whole.content) == (200, content_of(two_projects, WHEEL))


def test_missing_or_wrong_sidecar(two_projects: History) -> None:
    path, page = path_of(two_projects, WHEEL), "/simple/demo/"
    plan = fault("status", status=404, on=["sidecar"], requests=[1]) + fault(
        "wrong-bytes", on=["sidecar"], requests=[2]
    )
    with served(two_projects, plan) as client:
        files = {file["filename"]: file for file in client.get(page).json()["files"]}
        missing, wrong, right = (client.get(f"{path}.metadata") for _ in range(3))
    promised = files[WHEEL]["core-metadata"]["sha256"]
    assert (missing.status_code, wrong.status_code) == (404, 200)
    assert hashlib.sha256(wrong.content).hexdigest() != promised == hashlib.sha256(right.content).hexdigest()


def test_faults_affect_selected_requests(two_projects: History) -> None:
    plan = fault("status", status=500, on=["page"], requests=[2, 3])
    plan += fault("status", status=501, on=["index", "changelog"], every=2)
    plan += fault("status", status=502, url="/simple/o*")
    with served(two_projects, plan) as client:
        assert [client.get("/simple/demo/").status_code for _ in range(4)] == [200, 500, 500, 200]
        assert [client.get("/simple/").status_code for _ in range(4)] == [200, 501, 200, 501]
        assert client.get("/simple/other/").status_code == 502
        client.call("changelog_last_serial")
        with pytest.raises(xmlrpc.client.ProtocolError, match="501"):
            client.call("changelog_last_serial")


class PlainRequest:
    """A request as seen by a plan, without a server."""

    def __init__(self, path: str) -> None:
        self.method, self.headers, self.query_params = "GET", {}, {}
        self.url = urlsplit(f"http://index.example.org{path}")
        self.state = type("State", (), {"body": b""})


def met(plan: str, paths: list[str]) -> tuple[list[tuple[str, int]], FaultPlan]:
    """Return the results for each path, sorted. 200 stands for no fault."""
    faults = FaultPlan(plan)
    answers = [(path, faults(PlainRequest(path))) for path in paths]  # type: ignore[arg-type]
    return sorted((path, 200 if answer is None else answer.status_code) for path, answer in answers), faults


def test_rates_add_up_and_are_reproducible_in_any_order() -> None:
    plan = "seed = 7\n" + "".join(fault("status", status=status, rate=0.05) for status in (500, 502, 503, 504))
    paths = [f"/simple/project-{number % 100}/" for number in range(2_000)]
    first, faults = met(plan, paths)
    assert faults.seen == 2_000
    assert 320 < faults.met["status"] < 480
    for status in (500, 502, 503, 504):
        assert 60 < sum(answer == status for _, answer in first) < 140
    random.Random(1).shuffle(paths)
    assert met(plan, paths)[0] == first
    assert met(plan.replace("seed = 7", "seed = 8"), paths)[0] != first


def test_documented_plan_fails_a_tenth_of_all_requests() -> None:
    text = (Path(__file__).parents[2] / "docs" / "development.md").read_text()
    [plan] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    FaultPlan(plan)
    rates = dict.fromkeys(RequestKind, 0.0)
    for one in FaultPlanFile.model_validate(tomllib.loads(plan)).fault:
        for kind in one.met_on:
            rates[kind] += one.rate or 0.0
    assert rates == pytest.approx(dict.fromkeys(RequestKind, 0.1))


def leaves(fault: type[Fault]) -> list[type[Fault]]:
    return [leaf for one in fault.__subclasses__() for leaf in leaves(one)] or [fault]


def test_docs_name_every_fault_and_key() -> None:
    text = (Path(__file__).parents[2] / "docs" / "development.md").read_text()
    rows = {row[0]: row for row in re.findall(r"^\| `([\w-]+)` \|(.*)$", text, re.MULTILINE)}
    for one in leaves(Fault):
        [name] = get_args(one.model_fields["kind"].annotation)
        for key in one.model_fields.keys() - Fault.model_fields.keys():
            assert f"`{key}`" in rows[name][1], (name, key)
    assert all(f"| `{key}` |" in text for key in Fault.model_fields.keys() - {"kind"})


def test_invalid_plan_error_names_the_key(subtests: pytest.Subtests) -> None:
    cases = [
        ("seed = 'x'", ("seed",)),
        ("sed = 1", ("sed",)),
        ("seed = ", ("TOML",)),
        ("[[fault]]\nrate = 0.1", ("fault 1", "kind")),
        (fault("html") + fault("tornado"), ("fault 2", "kind", "tornado")),
        (fault("html", rat=0.1), ("fault 1", "html", "rat")),
        (fault("html", rate=1.5), ("fault 1", "html", "rate", 1)),
        (fault("html", rate=0), ("fault 1", "html", "rate", 0)),
        (fault("html", requests=[0]), ("fault 1", "html", "requests", 1)),
        (fault("html", every="2"), ("fault 1", "html", "every")),
        (fault("html", rate=0.1, every=2), ("fault 1", "html", "rate", "every")),
        (fault("html", on=["pages"]), ("fault 1", "html", "on", "changelog")),
        (fault("no-ranges", on=["page"]), ("fault 1", "no-ranges", "on", "page", "range")),
        (fault("status", status=200), ("fault 1", "status", 400)),
        (fault("stale"), ("fault 1", "stale", "serials", "seconds")),
        (
            fault("backwards", serials=1, seconds=1),
            ("fault 1", "backwards", "serials", "seconds"),
        ),
        (fault("redirect", to="example.org"), ("fault 1", "redirect", "to", "same-host", "loop")),
        (fault("wrong-size", more=0), ("fault 1", "wrong-size", "more", 0)),
        (fault("slow"), ("fault 1", "slow", "bytes_per_second")),
    ]
    for plan, values in cases:
        with subtests.test(plan=plan), pytest.raises(FaultPlanError, match=naming(*values)):
            FaultPlan(plan)


def test_invalid_plan_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    for content in (b"sed = 1", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(FaultPlanError, match=naming(path)):
            FaultPlan.load(path)
