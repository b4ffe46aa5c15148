"""PyPI's older JSON API over HTTP: equal to the answers of the index, as far as the records go."""

from typing import Any
from urllib.parse import urljoin

import pytest
import requests

from pypi_assets_tests.service.published import Client, Published

PROJECTS = ("demo", "pyyaml", "other-app", "yaml-copy", "described", "gone")
KNOWN = ("name", "version", "requires_python", "summary", "license", "license_expression", "yanked", "yanked_reason")
UNKNOWN_OF_FILES = {"comment_text", "core-metadata", "downloads", "has_sig", "md5_digest"}


def shared(document: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the index's document that our records have."""
    info = document["info"]
    known = {name: info[name] for name in KNOWN}
    known |= {name: info[name] or [] for name in ("requires_dist", "provides_extra")}
    known["licences"] = [one for one in info["classifiers"] or () if one.startswith("License ::")]
    known["links"] = info["project_urls"] or {}
    files = {version: list(map(file_facts, files)) for version, files in document["releases"].items()}
    urls = list(map(file_facts, document["urls"]))
    return {"info": known, "files": files, "urls": urls, "last_serial": document["last_serial"]}


def file_facts(file: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in file.items() if name not in UNKNOWN_OF_FILES}
    return found | {"digests": file["digests"]["sha256"]}


def test_documents_at_each_serial_equal_those_of_the_index(changing: Published) -> None:
    index, history = changing.index, changing.index.history
    root = urljoin(index.url, "/pypi/")
    truth: dict[int, dict[str, Any]] = {}

    def note() -> None:
        answers = {name: requests.get(f"{root}{name}/json", timeout=60) for name in PROJECTS}
        truth[index.serial] = {name: shared(one.json()) if one.ok else None for name, one in answers.items()}

    note()
    headers = [
        ("License-Expression", "MIT"),
        ("Classifier", "License :: OSI Approved :: MIT License"),
        ("Classifier", "Programming Language :: Python"),
        ("Project-URL", "Source, https://code.example/a?b=1"),
    ]
    for change in (
        lambda: changing.add("wheel", "described", "1.0", summary="It is described", extra_headers=headers),
        lambda: changing.add("sdist", "described", "1.1rc1", requires_python=">=3.9"),
        lambda: history.yank("demo", "2.1", at=changing.at()),
        lambda: history.quarantine("described", at=changing.at()),
        lambda: history.remove_release("demo", "1.0", at=changing.at()),
        lambda: history.unquarantine("described", at=changing.at()),
    ):
        change()
        note()
    last = changing.publish()
    with changing.client() as client:
        for prefix, serial in [*((f"/at/{serial}", serial) for serial in truth), ("", last)]:
            for name, expected in truth[serial].items():
                answer = client.get(f"{prefix}/pypi/{name}/json", allow_redirects=True)
                if expected is None:
                    assert answer.status_code == 404, (prefix, name)
                else:
                    assert shared(answer.json()) == expected, (prefix, name)
                    assert answer.headers["x-pypi-last-serial"] == str(expected["last_serial"])


def test_version_document_describes_its_release(client: Client) -> None:
    for path, version, filenames in (
        ("/pypi/demo/1.0/json", "1.0", ["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"]),
        ("/pypi/demo/1/json", "1.0", ["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"]),
        ("/pypi/demo/2.0/json", "2.0", ["demo-2.0-py3-none-any.whl"]),
        ("/at/12/pypi/demo/1.0/json", "1.0", ["demo-1.0-py3-none-any.whl"]),
    ):
        document = client.get(path, allow_redirects=True).json()
        assert document["info"]["version"] == version
        assert [file["filename"] for file in document["urls"]] == filenames
        assert "releases" not in document
    yanked = client.get("/pypi/demo/2.0/json").json()
    assert (yanked["info"]["yanked"], yanked["info"]["yanked_reason"]) == (True, "broken")
    assert [(file["yanked"], file["yanked_reason"]) for file in yanked["urls"]] == [(True, "broken")]
    unknown = client.get("/pypi/demo/9/json")
    assert (unknown.status_code, unknown.json()["parameter"]) == (404, "version")


def test_other_spelling_redirects_to_the_normalized_name(client: Client) -> None:
    for path, leads_to in (
        ("/pypi/Other_App/json", "/pypi/other-app/json"),
        ("/pypi/Other.App/0.1/json", "/pypi/other-app/0.1/json"),
        ("/at/12.12/pypi/Other.App/0.1/json", "/at/12.12/pypi/other-app/0.1/json"),
    ):
        answer = client.get(path)
        assert (answer.status_code, urljoin(path, answer.headers["location"])) == (301, leads_to)


def test_document_is_conditional(client: Client) -> None:
    found = client.get("/pypi/demo/json")
    for condition in (
        {"If-None-Match": found.headers["etag"]},
        {"If-Modified-Since": found.headers["last-modified"]},
    ):
        again = client.get("/pypi/demo/json", headers=condition)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["x-pypi-last-serial"] == found.headers["x-pypi-last-serial"]
    head = client.request("HEAD", "/pypi/demo/json")
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", found.headers["etag"])


@pytest.mark.parametrize("path", ["/pypi/demo/json", "/pypi/demo/2.0/json"])
def test_document_without_a_catalog_has_the_facts_of_the_datasets(changing: Published, path: str) -> None:
    with changing.client() as client:
        whole = client.get(path).json()
    (changing.home / "catalog.sqlite").rename(changing.home / "elsewhere.sqlite")
    with changing.client() as client:
        document = client.get(path).json()
    names = ("name", "version", "requires_dist", "requires_python", "provides_extra", "yanked", "yanked_reason")
    assert {name: document["info"][name] for name in names} == {name: whole["info"][name] for name in names}
    assert document["urls"] == whole["urls"]
    assert (document["last_serial"], document["info"]["project_urls"]) == (None, None)
