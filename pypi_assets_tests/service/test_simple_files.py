"""Files that pages name: metadata have the bytes that were hashed, files lead to the index, and hidden ones nowhere."""

import hashlib
from urllib.parse import urljoin

import pytest
import requests
from sqlalchemy import insert

from pypi_assets.catalog.tables import epochs
from pypi_assets_tests.service.published import Client, Published, client_of

ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json"}


def first_file(client: Client, path: str) -> tuple[str, dict[str, object]]:
    """The path of the first file of the page that a path leads to, and its entry."""
    page = client.get(path, headers=ACCEPT, allow_redirects=True)
    file = page.json()["files"][0]
    return urljoin(page.url, file["url"]).removeprefix(client.url), file


@pytest.mark.parametrize("prefix", ["", "/at/{serial}.{serial}", "/at/12.12", "/at/12.12,safe"])
@pytest.mark.parametrize("project", ["demo", "pyyaml"])
def test_metadata_have_the_hash_of_the_page(client: Client, published: Published, prefix: str, project: str) -> None:
    prefix = prefix.format(serial=published.index.serial)
    path, file = first_file(client, f"{prefix}/simple/{project}/")
    answer = client.get(f"{path}.metadata")
    assert answer.status_code == 200
    assert {"sha256": hashlib.sha256(answer.content).hexdigest()} == file["core-metadata"]
    assert answer.headers["cache-control"].endswith("max-age=15")


@pytest.mark.parametrize("prefix", ["", "/at/12.12"])
def test_a_file_leads_to_the_index_and_is_never_kept(client: Client, prefix: str) -> None:
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


def test_the_bytes_of_what_is_quarantined_now_are_refused(changing: Published) -> None:
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


def test_what_could_not_be_read_has_the_metadata_of_the_index(changing: Published) -> None:
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


def test_addresses_of_bytes_outlast_the_epoch(changing: Published) -> None:
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
