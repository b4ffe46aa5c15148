"""Visits over HTTP: filters, statuses and files of a project's visits, and visits that clients request."""

import hmac
from unittest.mock import patch

from sqlalchemy import delete, select

from pypi_assets.catalog.tables import visit_statuses, visits
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.requested import run_requested
from pypi_assets_tests.service.published import Client, Published

TOKEN = "0123456789abcdef"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}


def test_visits_are_filtered_ordered_and_paged(client: Client) -> None:
    newest = client.get("/v1/projects/Demo/visits").json()
    numbers = [visit["visit"] for visit in newest["visits"]]
    assert numbers == sorted(numbers, reverse=True)
    assert (newest["project"], newest["next"], newest["deleted"]) == ("demo", None, None)
    oldest = client.get("/v1/projects/demo/visits?order=oldest").json()["visits"]
    assert oldest == newest["visits"][::-1]
    paged, after = [], ""
    while True:
        page = client.get(f"/v1/projects/demo/visits?order=oldest&limit=1{after}").json()
        paged += page["visits"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert paged == oldest
    for name in ("kind", "outcome", "workload"):
        for value in {visit[name] for visit in oldest}:
            found = client.get("/v1/projects/demo/visits", params={"order": "oldest", name: value}).json()["visits"]
            assert found == [visit for visit in oldest if visit[name] == value]
    assert client.get("/v1/projects/demo/visits?kind=audit").json()["visits"] == []
    for visit in oldest:
        statuses = [status["status"] for status in visit["statuses"]]
        assert (statuses[0], statuses[-1]) == ("ongoing", visit["outcome"])
    for query, parameter in (("kind=new", "kind"), ("limit=0", "limit"), ("order=up", "order"), ("after=0", "after")):
        problem = client.get(f"/v1/projects/demo/visits?{query}")
        assert (problem.status_code, problem.json()["parameter"]) == (400, parameter)
    assert client.get("/v1/projects/nowhere/visits").status_code == 404


def test_deleted_visits_are_counted_although_the_first_one_is_kept(changing: Published) -> None:
    for version in ("3.0", "3.1", "3.2"):
        changing.add("wheel", "demo", version)
        crawl_incremental(changing.index.crawler(changing.catalog))
    with changing.client() as client:
        before = client.get("/v1/projects/demo/visits").json()
        assert (len(before["visits"]), before["deleted"]) == (4, None)
        with changing.catalog.write() as connection:
            c = visits.c
            ids = select(c.id).where(c.visit.in_((2, 3)))
            connection.execute(delete(visit_statuses).where(visit_statuses.c.visit_id.in_(ids)))
            connection.execute(delete(visits).where(c.visit.in_((2, 3))))
        after = client.get("/v1/projects/demo/visits?limit=1").json()
        assert [visit["visit"] for visit in after["visits"]] == [4]
        assert after["deleted"].split()[0] == "2"


def test_visit_shows_the_files_of_its_page(client: Client) -> None:
    newest = client.get("/v1/projects/demo/visits").json()["visits"][0]
    found = client.get(f"/v1/projects/demo/visits/{newest['visit']}").json()
    assert found["visit"] == newest
    live = client.get("/v1/projects/demo").json()["result"]["releases"]
    files = {(file["filename"], file["sha256"], file["yanked"]) for release in live for file in release["files"]}
    assert {(file["filename"], file["sha256"], file["yanked"]) for file in found["shown"]} == files
    assert len(found["shown"]) == newest["files"]
    assert client.get("/v1/projects/demo/visits/999").status_code == 404


def test_request_without_the_token_is_rejected(changing: Published) -> None:
    with changing.client() as client:
        refused = client.post("/v1/visits", {"projects": ["demo"]}, headers=RIGHT)
        assert (refused.status_code, refused.json()["type"]) == (403, "/docs#refused")
    with changing.client(visit_token=TOKEN) as client:
        for headers in ({}, {"Authorization": f"Basic {TOKEN}"}, {"Authorization": f"Bearer {TOKEN}x"}):
            problem = client.post("/v1/visits", {"projects": ["demo"]}, headers=headers)
            assert (problem.status_code, problem.json()["type"]) == (401, "/docs#unauthorized")
            assert problem.headers["Content-Type"] == "application/problem+json"
            assert problem.headers["WWW-Authenticate"].startswith("Bearer")
        assert client.get("/v1/visits/1").status_code == 404  # nothing was requested
        compared = []
        real = hmac.compare_digest
        with patch.object(hmac, "compare_digest", lambda *pair: compared.append(pair) or real(*pair)):
            client.post("/v1/visits", {"projects": ["demo"]}, headers={"Authorization": "Bearer x"})
        assert compared == [(b"x", TOKEN.encode())]


def test_requested_visit_is_queued_once_and_answered(changing: Published) -> None:
    with changing.client(visit_token=TOKEN) as client:
        [first, second] = client.post("/v1/visits", {"projects": ["Demo", "pyyaml"]}, headers=RIGHT).json()["visits"]
        assert [(one["state"], one["place"]) for one in (first, second)] == [("queued", 1), ("queued", 2)]
        [again] = client.post("/v1/visits", {"projects": ["demo"]}, headers=RIGHT).json()["visits"]
        assert again == first
        new = changing.add("wheel", "demo", "9.0")
        run_requested(changing.index.crawler(changing.catalog))
        done = client.get(f"/v1/visits/{first['id']}").json()
        assert (done["state"], done["place"], done["outcome"]) == ("done", None, "full")
        assert [(one["change"], one["filename"]) for one in done["changed"]] == [("came", new)]
        visits = client.get("/v1/projects/demo/visits?kind=requested").json()["visits"]
        assert [visit["visit"] for visit in visits] == [done["visit"]]
        for body, status in (
            ({"projects": ["nowhere"]}, 404),
            ({"projects": []}, 400),
            ({"projects": ["demo"] * 101}, 413),
            ({"project": "demo"}, 400),
        ):
            assert client.post("/v1/visits", body, headers=RIGHT).status_code == status, body
