"""Pages of the Simple API over HTTP: the latest from the datasets, and at each serial what the index showed."""

from urllib.parse import urljoin

import pytest

from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published, client_of

V1_JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT = {"Accept": V1_JSON}


def page(client: Client, path: str) -> dict[str, object]:
    """The page that the path leads to."""
    found: dict[str, object] = client.get(path, headers=ACCEPT, allow_redirects=True).json()
    return found


def shown(files: object) -> list[tuple[object, ...]]:
    names = ("filename", "hashes", "size", "yanked", "core-metadata", "upload-time", "requires-python")
    assert isinstance(files, list)
    return [tuple(file.get(name) for name in names) for file in files]


def test_the_latest_page_is_that_of_the_last_serial(client: Client, published: Published) -> None:
    serial = published.index.serial
    for project in ("demo", "pyyaml", "other-app"):
        latest = client.get(f"/simple/{project}/", headers=ACCEPT)
        pinned = client.get(f"/at/{serial}.{serial}/simple/{project}/", headers=ACCEPT)
        assert latest.headers["content-type"] == V1_JSON
        assert "Accept" in latest.headers["vary"]
        assert pinned.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert latest.headers["cache-control"] == "public, max-age=15"
        assert shown(latest.json()["files"]) == shown(pinned.json()["files"])
        assert latest.json()["versions"] == pinned.json()["versions"]
    assert client.get("/simple/demo/").headers["content-type"] == "text/html; charset=utf-8"


def test_a_project_leads_to_its_normalized_name(client: Client) -> None:
    for path, leads_to in (
        ("/simple/Other_App/", "/simple/other-app/"),
        ("/simple/Other.App", "/simple/other-app/"),
        ("/at/12.12,safe/simple/Other_App/", "/at/12.12,safe/simple/other-app/"),
        ("/at/12.12/simple/demo", "/at/12.12/simple/demo/"),
    ):
        answer = client.get(path)
        assert answer.status_code == 301
        assert urljoin(path, answer.headers["location"]) == leads_to
    answer = client.get("/at/12,safe/simple/demo/")
    assert urljoin("/at/12,safe/simple/demo/", answer.headers["location"]) == "/at/12.12,safe/simple/demo/"


@pytest.mark.parametrize("path", ["/simple/none/", "/at/12.12/simple/none/", "/simple/gone/"])
def test_what_there_is_not_is_a_problem(client: Client, path: str) -> None:
    answer = client.get(path, headers=ACCEPT)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"


def test_what_is_wrong_after_at_is_named(client: Client, published: Published) -> None:
    wrong = client.get("/at/12,x%0D%0Ay:z/simple/demo/")
    assert (wrong.status_code, wrong.json()["parameter"]) == (400, "at")
    assert unnamed(wrong.json()["accepts"], "safe", "no-sdist-metadata") == []
    beyond = client.get("/at/999999/simple/demo/")
    assert beyond.status_code == 409
    assert unnamed(beyond.json()["detail"], "0", published.index.serial) == []


def test_each_serial_shows_what_was(changing: Published) -> None:
    history = changing.index.history
    before = changing.index.serial
    hidden = history.quarantine("Other.App", at=changing.at())
    history.archive("PyYAML", at=changing.at())
    history.yank("PyYAML", "6.0", "old <b>", at=changing.at())
    last = changing.publish()
    with changing.service() as service, client_of(service) as client:
        then = page(client, f"/at/{before}/simple/other-app/")
        assert (then["project-status"], then["versions"]) == ({"status": "active"}, ["0.1"])
        safe = client.get(f"/at/{before},safe/simple/other-app/", headers=ACCEPT, allow_redirects=True)
        assert (safe.json()["files"], safe.headers["cache-control"]) == ([], "public, max-age=60")
        for path in (f"/at/{hidden}/simple/other-app/", "/simple/other-app/"):
            now = page(client, path)
            assert (now["project-status"], now["files"]) == ({"status": "quarantined"}, [])
        for path in (f"/at/{last}/simple/pyyaml/", "/simple/pyyaml/"):
            archived = page(client, path)
            assert archived["project-status"] == {"status": "archived"}
            assert archived["files"][0]["yanked"] == "old <b>"  # type: ignore[index]


def test_an_sdist_has_no_metadata_where_an_option_leaves_them_out(changing: Published) -> None:
    changing.add("sdist", "static", "1.0", metadata_version="2.2")
    serial = changing.publish()
    with changing.service() as service, client_of(service) as client:
        offered = [
            page(client, f"/at/{serial}{options}/simple/static/")["files"][0]["core-metadata"]  # type: ignore[index]
            for options in ("", ",no-sdist-metadata", ",safe,no-sdist-metadata", ",safe")
        ]
        assert [bool(one) for one in offered] == [True, False, False, True]
