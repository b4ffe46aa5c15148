"""The Simple API's list of projects: the latest of the datasets, and at each serial the projects that had files."""

import json
from urllib.parse import urljoin

from pypi_assets.catalog.reports import live_files
from pypi_assets.index.observing.html_pages import read_html_list
from pypi_assets.service.simple_pages import HTML, render_list
from pypi_assets_tests.service.published import Client, Published

V1_JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT = {"Accept": V1_JSON}


def listed(client: Client, path: str) -> list[str]:
    answer = client.get(path, headers=ACCEPT, allow_redirects=True)
    assert (answer.status_code, answer.headers["content-type"]) == (200, V1_JSON)
    assert "Accept" in answer.headers["vary"]
    document = answer.json()
    assert document["meta"]["api-version"] == "1.0"
    return [project["name"] for project in document["projects"]]


def test_the_list_is_that_of_the_projects_with_files(client: Client, published: Published, monkeypatch) -> None:
    monkeypatch.setattr(live_files, "_AT_ONCE", 2)  # so that several transactions are needed
    latest = listed(client, "/simple/")
    assert latest == sorted(set(latest)) != []
    for serial in range(1, published.index.serial + 1):
        found = listed(client, f"/at/{serial}/simple/")
        pages = [client.get(f"/at/{serial}/simple/{name}/", headers=ACCEPT, allow_redirects=True) for name in latest]
        assert set(found) & set(latest) == {
            name for name, page in zip(latest, pages, strict=True) if page.status_code == 200 and page.json()["files"]
        }, serial
    assert listed(client, f"/at/{published.index.serial}/simple/") == latest


def test_the_list_in_html_leads_to_the_pages(client: Client) -> None:
    answer = client.get("/simple/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    found = read_html_list(answer.content, url="http://x/simple/", charset="utf-8", index_url="http://x/simple/")
    assert [project.name for project in found] == listed(client, "/simple/")
    moved = client.get("/simple")
    assert (moved.status_code, urljoin("/simple", moved.headers["location"])) == (301, "/simple/")


def test_a_list_of_any_length_is_whole() -> None:
    for count in (0, 1, 2_000, 2_001, 4_000):
        names = [f"p{number}" for number in range(count)]
        document = json.loads(b"".join(render_list(names, V1_JSON)))
        assert [project["name"] for project in document["projects"]] == names
        html = b"".join(render_list(names, HTML))
        found = read_html_list(html, url="http://x/", charset="utf-8", index_url="http://x/")
        assert [project.name for project in found] == names
