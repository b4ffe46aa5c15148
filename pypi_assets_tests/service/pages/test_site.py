"""All pages over an index whose texts are hostile, and the files that pages load."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.service.pages import site
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.hostile_index import FIELDS, PROJECT, HostileAnswers, upload
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.published import Client, published_index


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a service over an index with hostile texts."""
    with pytest.MonkeyPatch.context() as environment, published_index(tmp_path_factory.mktemp("hostile")) as one:
        clear_settings(environment)
        upload(one.index)
        one.index.faults = HostileAnswers(one.index)
        one.publish_first()
        with one.client() as client:
            yield client


@pytest.mark.nightly
def test_hostile_texts_are_shown_and_do_nothing(hostile: Client):
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


def test_files_that_pages_load_are_there(client: Client):
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


def test_vendored_files_have_their_licences_and_name_no_map(client: Client):
    folder = Path(site.__file__).parent / "static" / "vendor"
    named = {path.name for path in folder.iterdir()}
    scripts = {"swagger-ui-bundle.js", "swagger-ui.css"}
    assert named == scripts | {"swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.LICENSE.txt"}
    for name in scripts:
        answer = client.get(f"/static/vendor/{name}")
        assert answer.content == (folder / name).read_bytes()
        assert b"sourceMappingURL" not in answer.content


def test_the_script_makes_no_html_of_texts_and_names_no_other_host(client: Client):
    answer = client.get("/static/pages.js")
    assert answer.headers["x-content-type-options"] == "nosniff"
    risky = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "://", "import(")
    assert [word for word in risky if word in answer.text] == []


def test_pages_are_no_part_of_the_api(client: Client):
    assert not [path for path in client.get("/openapi.json").json()["paths"] if "/import/" in path or path == "/"]
