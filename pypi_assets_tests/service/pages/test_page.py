"""What all pages share: their data, what they are as of, and how they are cached."""

import pytest

from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.published import Client, Published

ALL = (
    "/",
    "/search/?q=demo",
    "/search/?q=never-was",
    "/import/yaml/",
    "/import/never.was/",
    "/project/demo/",
    "/project/gone/",
    "/releases/demo/",
    "/releases/demo/?page=99",
    "/dependents/pyyaml/",
    "/history/demo/",
    "/history/gone/",
    "/release/demo/2.1/",
    "/release/demo/2.0/",
    "/changes/demo/",
    "/resolve/?requirements=demo&python=3.12",
    "/file/" + "0" * 64 + "/",
)
"""A page of each kind, which is also there at an earlier serial."""


def test_each_page_is_well_formed_and_leads_to_its_data(client: Client, subtests: pytest.Subtests):
    for path in [*ALL, "/command/demo/", "/command/never-was/"]:
        with subtests.test(path=path):
            document = page(client, path)
            data = client.get(document.links["This page as JSON"])
            assert data.status_code == 200
            assert data.headers["content-type"] == "application/json"
            data.json()


OF_TODAY = frozenset({"Show the latest", "The API", "Status", "What changed today", "solvability by day"})
"""Links that lead to what has no earlier serials."""


def test_each_page_is_there_at_a_serial_and_its_links_stay_there(
    client: Client, published: Published, subtests: pytest.Subtests
):
    for path in ALL:
        with subtests.test(path=path):
            document = page(client, f"/at/{published.index.serial}{path}")
            assert f"serial {published.index.serial}" in document.text
            shown = {href for text, href in document.links.items() if text not in OF_TODAY}
            pinned = f"/at/{published.index.serial}.{published.index.serial}/"
            assert {href for href in shown if not href.startswith(("#", "/at/", "/command/"))} == set()
            assert any(href.startswith(pinned) for href in shown)
            assert document.links["Show the latest"] == path


def test_a_path_without_a_slash_leads_to_the_page(client: Client):
    for path, page_path in (
        ("/import/yaml", "/import/yaml/"),
        ("/search?q=a+b", "/search/?q=a+b"),
        ("/at/5.5/project/demo", "/at/5.5/project/demo/"),
    ):
        answer = client.get(path, headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (307, page_path)


def test_pages_are_looked_at_again_and_their_data_at_a_serial_is_kept(client: Client, published: Published):
    pinned = f"/at/{published.index.serial}.{published.index.serial}"
    for prefix in ("", pinned):
        first = client.get(f"{prefix}/import/yaml/")
        assert first.headers["cache-control"] == "public, no-cache"
        again = client.get(f"{prefix}/import/yaml/", headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304
    assert "immutable" in client.get(f"{pinned}/import/yaml.json").headers["cache-control"]
    assert "immutable" not in client.get("/import/yaml.json").headers["cache-control"]


def test_a_page_shows_how_far_the_answers_go_and_since_when(client: Client, published: Published):
    document = page(client, "/import/yaml/")
    published_at = client.get("/v1/status").json()["datasets"]["published_at"]
    assert unnamed(document.text, published.index.serial, published_at) == []
    serial = published.index.serial
    for path in ("/import/yaml/", f"/at/{serial}.{serial}/import/yaml/"):
        assert ('data-age="ago"' in client.get(path).text) == (path == "/import/yaml/")


def test_a_page_names_the_time_since_which_changes_are_not_here(changing: Published):
    serial = changing.index.serial
    changing.add("wheel", "late", "1.0")
    crawl_incremental(changing.index.crawler(changing.catalog))
    with changing.client() as client:
        status = client.get("/v1/status").json()
        assert (status["lag_serials"] > 0, status["lag_seconds"] > 0) == (True, True)
        assert status["lacks_since"].startswith("2026-03-")
        document = page(client, "/project/demo/")
        assert unnamed(document.text, status["lacks_since"], serial) == []
        first, second = (client.get("/project/demo/") for _ in range(2))
        assert first.headers["etag"] == second.headers["etag"]


def test_without_a_catalog_pages_show_the_latest_alone(published: Published, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.client(home=tmp_path / "home") as client:
        document = page(client, "/project/demo/")
        assert "3 releases" in document.text
        assert "History" not in document.links
        page(client, "/at/5/project/demo/", status=503)


def test_head_and_compression_work(client: Client):
    head = client.request("HEAD", "/project/demo/")
    assert (head.status_code, head.content) == (200, b"")
    zipped = client.get("/project/demo/", headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
