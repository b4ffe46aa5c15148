"""The Simple API over HTTP: the list of projects, pages, and the files that pages link to."""

import hashlib
import json
from urllib.parse import urljoin

import pytest
import requests
from packaging.utils import canonicalize_name
from sqlalchemy import insert

from pypi_assets.catalog.reports import project_list
from pypi_assets.catalog.reports.project_list import ListedAt
from pypi_assets.catalog.tables import epochs
from pypi_assets.index.observing.html_pages import read_html_list
from pypi_assets.service.simple_pages import HTML, render_list
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published, client_of

V1_JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT = {"Accept": V1_JSON}


def page(client: Client, path: str) -> dict[str, object]:
    """Return the page at a path, after redirects."""
    document: dict[str, object] = client.get(path, headers=ACCEPT, allow_redirects=True).json()
    return document


def shown(files: object) -> list[tuple[object, ...]]:
    names = ("filename", "hashes", "size", "yanked", "core-metadata", "upload-time", "requires-python")
    assert isinstance(files, list)
    return [tuple(file.get(name) for name in names) for file in files]


def test_latest_page_equals_the_page_at_the_last_serial(client: Client, published: Published) -> None:
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


def test_project_redirects_to_its_normalized_name(client: Client) -> None:
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
def test_unknown_project_or_file_is_a_problem(client: Client, path: str) -> None:
    answer = client.get(path, headers=ACCEPT)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"


def test_invalid_pin_is_named(client: Client, published: Published) -> None:
    wrong = client.get("/at/12,x%0D%0Ay:z/simple/demo/")
    assert (wrong.status_code, wrong.json()["parameter"]) == (400, "at")
    assert unnamed(wrong.json()["accepts"], "safe", "no-sdist-metadata") == []
    beyond = client.get("/at/999999/simple/demo/")
    assert beyond.status_code == 409
    assert unnamed(beyond.json()["detail"], "0", published.index.serial) == []


def test_pages_show_the_state_of_each_serial(changing: Published) -> None:
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


def test_option_omits_metadata_of_sdists(changing: Published) -> None:
    changing.add("sdist", "static", "1.0", metadata_version="2.2")
    serial = changing.publish()
    with changing.service() as service, client_of(service) as client:
        offered = [
            page(client, f"/at/{serial}{options}/simple/static/")["files"][0]["core-metadata"]  # type: ignore[index]
            for options in ("", ",no-sdist-metadata", ",safe,no-sdist-metadata", ",safe")
        ]
        assert [bool(one) for one in offered] == [True, False, False, True]


def listed(client: Client, path: str) -> dict[str, int]:
    """Return the serial of each project on a list, by displayed name."""
    answer = client.get(path, headers=ACCEPT, allow_redirects=True)
    assert (answer.status_code, answer.headers["content-type"]) == (200, V1_JSON)
    assert "Accept" in answer.headers["vary"]
    document = answer.json()
    assert document["meta"]["api-version"] == "1.4"
    assert answer.headers["x-pypi-last-serial"] == str(document["meta"]["_last-serial"])
    return {project["name"]: project["_last-serial"] for project in document["projects"]}


def test_list_at_each_serial_equals_the_list_of_the_index(changing: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_list, "_AT_ONCE", 2)  # so that several transactions are needed
    index, history = changing.index, changing.index.history
    truth = {}

    def note(serial: int) -> None:
        document = requests.get(index.url, headers=ACCEPT, timeout=60).json()
        truth[serial] = {one["name"]: one["_last-serial"] for one in document["projects"]}

    note(index.serial)
    for change in (
        lambda: history.quarantine("Other.App", at=changing.at()),
        lambda: changing.add("wheel", "gone", "2.0"),
        lambda: history.remove_file(changing.add("wheel", "Empty_One", "1.0"), at=changing.at()),
        lambda: history.unquarantine("Other.App", at=changing.at()),
        lambda: changing.add("wheel", "other-app", "0.2"),
        lambda: history.remove_project("PyYAML", at=changing.at()),
    ):
        change()
        note(index.serial)
    last = changing.publish()
    assert last == index.serial
    with changing.client() as client:
        for serial, projects in truth.items():
            assert listed(client, f"/at/{serial}/simple/") == projects, serial
        assert listed(client, "/simple/") == truth[last]
        for path in (f"/at/{last}", ""):
            for name, serial in truth[last].items():
                page = client.get(f"{path}/simple/{canonicalize_name(name)}/", headers=ACCEPT, allow_redirects=True)
                shown = page.json()["meta"]["_last-serial"], int(page.headers["X-PyPI-Last-Serial"])
                assert shown == (serial, serial), (path, name)


def test_list_without_a_catalog_has_names_alone(changing: Published) -> None:
    (changing.home / "catalog.sqlite").rename(changing.home / "elsewhere.sqlite")
    with changing.client() as client:
        document = client.get("/simple/", headers=ACCEPT).json()
        assert document["projects"] == [{"name": name} for name in ("demo", "other-app", "pyyaml", "yaml-copy")]
        assert "_last-serial" not in client.get("/simple/demo/", headers=ACCEPT).json()["meta"]


def test_list_is_conditional(client: Client, published: Published) -> None:
    serial = published.index.serial
    for path in ("/simple/", f"/at/{serial}.{serial}/simple/"):
        found = client.get(path, headers=ACCEPT)
        assert found.headers["etag"] != client.get(path).headers["etag"]
        for condition in (
            {"If-None-Match": found.headers["etag"]},
            {"If-Modified-Since": found.headers["last-modified"]},
        ):
            again = client.get(path, headers=ACCEPT | condition)
            assert (again.status_code, again.content, again.headers["x-pypi-last-serial"]) == (304, b"", str(serial))
            assert again.headers["etag"] == found.headers["etag"]
        other = client.get(path, headers=ACCEPT | {"If-None-Match": '"other-identity"'})
        assert (other.status_code, other.content) == (200, found.content)
        head = client.request("HEAD", path, headers=ACCEPT)
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", found.headers["etag"])


def test_html_list_links_to_the_pages(client: Client) -> None:
    answer = client.get("/simple/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == "default-src 'none'"
    parsed = read_html_list(answer.content, url="http://x/simple/", charset="utf-8", index_url="http://x/simple/")
    assert [project.name for project in parsed] == list(listed(client, "/simple/"))
    moved = client.get("/simple")
    assert (moved.status_code, urljoin("/simple", moved.headers["location"])) == (301, "/simple/")


def test_long_list_is_complete() -> None:
    for count in (0, 1, 2_000, 2_001, 4_000):
        projects = [ListedAt(f"p{number}", f"P{number}", number) for number in range(count)]
        document = json.loads(b"".join(render_list(projects, V1_JSON, count)))
        assert document["projects"] == [{"_last-serial": one.serial, "name": one.name} for one in projects]
        assert document["meta"] == {"_last-serial": count, "api-version": "1.4"}
        html = b"".join(render_list(projects, HTML, count))
        parsed = read_html_list(html, url="http://x/", charset="utf-8", index_url="http://x/")
        assert [project.name for project in parsed] == [project.name for project in projects]


ACCEPTED = {"Accept": "application/vnd.pypi.simple.v1+json"}


def first_file(client: Client, path: str) -> tuple[str, dict[str, object]]:
    """Return the path of the first file on the page at a path, and the file's entry."""
    page = client.get(path, headers=ACCEPTED, allow_redirects=True)
    file = page.json()["files"][0]
    return urljoin(page.url, file["url"]).removeprefix(client.url), file


@pytest.mark.parametrize("prefix", ["", "/at/{serial}.{serial}", "/at/12.12", "/at/12.12,safe"])
@pytest.mark.parametrize("project", ["demo", "pyyaml"])
def test_metadata_match_the_hash_on_the_page(client: Client, published: Published, prefix: str, project: str) -> None:
    prefix = prefix.format(serial=published.index.serial)
    path, file = first_file(client, f"{prefix}/simple/{project}/")
    answer = client.get(f"{path}.metadata")
    assert answer.status_code == 200
    assert {"sha256": hashlib.sha256(answer.content).hexdigest()} == file["core-metadata"]
    assert answer.headers["cache-control"].endswith("max-age=15")


@pytest.mark.parametrize("prefix", ["", "/at/12.12"])
def test_file_redirects_to_the_index_and_is_not_cached(client: Client, prefix: str) -> None:
    path, file = first_file(client, f"{prefix}/simple/demo/")
    answer = client.get(path)
    assert (answer.status_code, answer.headers["cache-control"]) == (307, "no-store")
    content = requests.get(answer.headers["location"], timeout=60).content
    assert {"sha256": hashlib.sha256(content).hexdigest()} == file["hashes"]
    other = client.get(path.replace("demo-1.0", "demo-9.0"))
    assert (other.status_code, other.json()["parameter"]) == (404, "filename")
    assert (
        client.get(f"{prefix}/files/unhashed/demo/{file['filename']}").headers["location"] == answer.headers["location"]
    )
    assert client.get(f"{prefix}/files/short/x.whl").status_code == 400


def test_files_quarantined_now_are_rejected(changing: Published) -> None:
    before = changing.index.serial
    with changing.service() as service, client_of(service) as client:
        latest = first_file(client, "/simple/other-app/")[0]
        changing.index.history.quarantine("Other.App", at=changing.at())
        changing.publish()
        then = first_file(client, f"/at/{before}/simple/other-app/")[0]
        for path in (latest, then):
            refused = client.get(path)
            assert (refused.status_code, refused.reason) == (451, "Unavailable For Legal Reasons")
            assert "quarantined" in refused.json()["detail"]
        assert client.get(f"{then}.metadata").status_code == 200
    with changing.client(service_allow_quarantined=True) as client:
        assert client.get(then).status_code == 307
    changing.index.history.unquarantine("Other.App", at=changing.at())
    changing.publish()
    with changing.client() as client:
        assert [client.get(path).status_code for path in (latest, then)] == [307, 307]


def test_unreadable_file_has_the_metadata_of_the_index(changing: Published) -> None:
    filename = changing.add("wheel", "odd", "1.0", metadata="Metadata-Version: 2.1\nName: odd\nVersion: 2.0\n")
    serial = changing.publish()
    with changing.service() as service, client_of(service) as client:
        for prefix in ("", f"/at/{serial}"):
            path, file = first_file(client, f"{prefix}/simple/odd/")
            answer = client.get(f"{path}.metadata")
            assert answer.status_code == 307
            assert answer.headers["location"].endswith(f"/{filename}.metadata")
            content = requests.get(answer.headers["location"], timeout=60).content
            assert {"sha256": hashlib.sha256(content).hexdigest()} == file["core-metadata"]


def test_file_addresses_outlast_the_epoch(changing: Published) -> None:
    serial = changing.index.serial
    with changing.service() as service, client_of(service) as client:
        path, file = first_file(client, f"/at/{serial}/simple/demo/")
        sha256 = file["hashes"]["sha256"]  # type: ignore[index]
        assert path == f"at/files/{sha256}/{file['filename']}"
        former = f"/at/{serial}.{serial}/files/{sha256}/{file['filename']}"
        location = client.get(path).headers["location"]
        assert client.get(former).headers["location"] == location
        with changing.catalog.write() as connection:
            connection.execute(insert(epochs).values(serial=serial, epoch=serial + 1))
        assert client.get(f"/at/{serial}.{serial}/simple/demo/").status_code == 410
        assert client.get(f"{former}.metadata").status_code == 410
        for address in (path, former):
            answer = client.get(address)
            assert (answer.status_code, answer.headers["location"]) == (307, location)
        for wrong in (f"/at/files/{'0' * 64}/{file['filename']}", f"/at/files/{sha256}/other.whl"):
            assert client.get(wrong).status_code == 404


def test_file_of_a_hash_redirects_to_the_index(changing: Published) -> None:
    index, history = changing.index, changing.index.history
    removed = changing.add("wheel", "short-lived", "1.0")
    content = (index.folder / "built" / removed).read_bytes()
    changing.publish()
    address = f"/files/sha256/{hashlib.sha256(content).hexdigest()}"
    history.remove_project("short-lived", at=changing.at())
    changing.publish()
    with changing.service() as service, client_of(service) as client:
        answer = client.get(address)
        assert (answer.status_code, answer.headers["cache-control"]) == (307, "no-store")
        assert requests.get(answer.headers["location"], timeout=60).content == content
        assert client.get(address.upper().replace("/FILES/SHA256", "/files/sha256")).status_code == 307
        head = client.request("HEAD", address)
        assert (head.status_code, head.headers["location"]) == (307, answer.headers["location"])
        unknown = client.get(f"/files/sha256/{'0' * 64}")
        assert (unknown.status_code, unknown.json()["parameter"]) == (404, "sha256")
        assert client.get("/files/sha256/short").status_code == 400
        of_demo = page(client, "/simple/demo/")["files"][0]["hashes"]["sha256"]  # type: ignore[index]
        location = client.get(f"/files/sha256/{of_demo}").headers["location"]
        history.quarantine("demo", at=changing.at())
        changing.publish()
        assert client.get(f"/files/sha256/{of_demo}").status_code == 451
    with changing.client(service_allow_quarantined=True) as client:
        assert client.get(f"/files/sha256/{of_demo}").headers["location"] == location
    history.unquarantine("demo", at=changing.at())
    changing.publish()
    (changing.home / "catalog.sqlite").rename(changing.home / "elsewhere.sqlite")
    with changing.client() as client:  # the datasets have live files alone
        assert client.get(f"/files/sha256/{of_demo}").headers["location"] == location
        assert client.get(address).status_code == 404
