import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.service.pages import home
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.hostile_index import FIELDS, PROJECT, HostileAnswers, upload
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.pages.test_project_pages import serial_of
from pypi_assets_tests.service.published import Client, Published, published_index


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Yield a client of a service over an index with hostile texts."""
    with pytest.MonkeyPatch.context() as environment, published_index(tmp_path_factory.mktemp("hostile")) as published:
        clear_settings(environment)
        upload(published.index)
        published.index.faults = HostileAnswers(published.index)
        published.publish_first()
        with published.client() as client:
            yield client


@pytest.mark.nightly
def test_hostile_texts_are_shown_inert(hostile: Client):
    seen, waiting = (
        set(),
        ["/", f"/project/{PROJECT}/", f"/project/{FIELDS}/", f"/release/{FIELDS}/1.0/", "/project/broken/"],
    )
    texts = []
    while waiting:
        path = waiting.pop()
        if (
            path in seen
            or len(seen) > 120
            or path.startswith(("#", "/docs", "/v1/"))
            or ".json" in path
            or "/files/" in path
        ):
            continue
        seen.add(path)
        answer = hostile.get(path, headers=BROWSER, allow_redirects=True)
        assert answer.status_code in {200, 404}, (path, answer.text)
        document = page(hostile, path, answer.status_code)
        texts.append(document.text)
        waiting += document.links.values()
    assert len(seen) > 20
    assert any("<script>" in text for text in texts)


def test_assets_of_pages_are_served(client: Client):
    for path, kind in (
        ("/static/style.css", "text/css"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/static/pages.js", "text/javascript"),
        ("/static/docs.js", "text/javascript"),
        ("/static/vendor/swagger-ui.css", "text/css"),
        ("/robots.txt", "text/plain"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
    assert "url(" not in client.get("/static/style.css").text
    assert "@import" not in client.get("/static/style.css").text


def test_vendored_files_have_licences_and_no_source_maps(client: Client):
    folder = Path(home.__file__).parent / "static" / "vendor"
    named = {path.name for path in folder.iterdir()}
    scripts = {"swagger-ui-bundle.js", "swagger-ui.css"}
    assert named == scripts | {"swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.LICENSE.txt"}
    for name in scripts:
        answer = client.get(f"/static/vendor/{name}")
        assert answer.content == (folder / name).read_bytes()
        assert b"sourceMappingURL" not in answer.content


def test_script_builds_no_html_from_text_and_names_no_other_host(client: Client):
    answer = client.get("/static/pages.js")
    assert answer.headers["x-content-type-options"] == "nosniff"
    risky = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "://", "import(")
    assert [word for word in risky if word in answer.text] == []


def test_pages_are_not_in_the_api_document(client: Client):
    assert not [path for path in client.get("/openapi.json").json()["paths"] if "/import/" in path or path == "/"]


def test_home_links_to_existing_examples(client: Client):
    links = page(client, "/").links
    assert links["import yaml"] == "/import/yaml/"
    assert links["dependents of"] == "/dependents/pyyaml/"
    assert "import dateutil" not in links


def test_home_shows_latest_events_and_links_to_prior_state(client: Client):
    serial = serial_of(client, "demo", "yank release")
    shown = client.get("/").text
    assert unnamed(shown, "2.0") == []
    assert f'href="/at/{serial - 1}/project/demo/"' in shown
    assert "demo-2.1" not in client.get(f"/at/{serial}.{serial}/").text
    recent = client.get("/index.json").json()["recent"]
    assert [one["serial"] for one in recent] == sorted((one["serial"] for one in recent), reverse=True)
    assert recent[0]["project"] == "demo"


def test_home_names_an_existing_past_index(client: Client):
    [path] = re.findall(r"<code>(/at/[0-9]+/simple/)</code>", client.get("/").text)
    answer = client.get(f"{path}pyyaml/", allow_redirects=True)
    assert answer.status_code == 200


def test_home_without_catalog_shows_no_events(published: Published, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.client(home=tmp_path / "home") as alone:
        document = page(alone, "/")
        assert "/at/" not in alone.get("/").text
        assert document.links["import yaml"] == "/import/yaml/"


@pytest.mark.parametrize(
    ("moment", "page_path", "location"),
    [
        ("17", "/import/yaml/", "/at/17/import/yaml/"),
        (" 2026-03-03 ", "/search/?q=a", "/at/2026-03-03/search/?q=a"),
        ("", "/import/yaml/", "/import/yaml/"),
    ],
)
def test_form_pins_a_page(client: Client, moment: str, page_path: str, location: str):
    answer = client.get("/as-of", params={"moment": moment, "page": page_path}, headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, location)


@pytest.mark.parametrize(
    ("moment", "page_path", "wrong"),
    [
        ("yesterday", "/", "moment"),
        ("1/../..", "/", "moment"),
        ("1", "//elsewhere.invalid/", "page"),
        ("1", "https://elsewhere.invalid/", "page"),
        ("", "//elsewhere.invalid/", "page"),
    ],
)
def test_form_with_invalid_time_or_foreign_page_is_rejected(client: Client, moment: str, page_path: str, wrong: str):
    answer = client.get("/as-of", params={"moment": moment, "page": page_path})
    assert (answer.status_code, answer.json()["parameter"]) == (400, wrong)


def test_date_redirects_to_its_state(client: Client):
    document = page(client, "/as-of?moment=2026-03-03&page=/project/demo/")
    assert "2.1" not in document.text


def test_inexact_serial_is_a_page_with_exact_serials(client: Client, published: Published):
    assert page(client, "/as-of?moment=999999&page=/project/demo/", status=409).text.count(str(published.index.serial))
