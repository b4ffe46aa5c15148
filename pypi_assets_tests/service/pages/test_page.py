"""The parts that all pages share: data, the serial that they answer for, and caching."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.service.pages.page import shell_requirement
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
PUBLIC = "https://packages.example.org/pypi/"


def test_pages_are_well_formed_and_link_to_their_data(client: Client, subtests: pytest.Subtests):
    for path in [*ALL, "/command/demo/", "/command/never-was/"]:
        with subtests.test(path=path):
            document = page(client, path)
            data = client.get(document.links["This page as JSON"])
            assert data.status_code == 200
            assert data.headers["content-type"] == "application/json"
            data.json()


OF_TODAY = frozenset({"Show the latest", "The API", "Status", "What changed today", "solvability by day"})
"""Links that lead to what has no earlier serials."""


def test_pages_exist_at_a_serial_and_their_links_stay_pinned(
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


def test_path_without_slash_redirects_to_page(client: Client):
    for path, page_path in (
        ("/import/yaml", "/import/yaml/"),
        ("/search?q=a+b", "/search/?q=a+b"),
        ("/at/5.5/project/demo", "/at/5.5/project/demo/"),
    ):
        answer = client.get(path, headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (307, page_path)


def test_pages_are_revalidated_and_pinned_data_is_immutable(client: Client, published: Published):
    pinned = f"/at/{published.index.serial}.{published.index.serial}"
    for prefix in ("", pinned):
        first = client.get(f"{prefix}/import/yaml/")
        assert first.headers["cache-control"] == "public, no-cache"
        again = client.get(f"{prefix}/import/yaml/", headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304
    assert "immutable" in client.get(f"{pinned}/import/yaml.json").headers["cache-control"]
    assert "immutable" not in client.get("/import/yaml.json").headers["cache-control"]


def test_page_shows_its_serial_and_time(client: Client, published: Published):
    document = page(client, "/import/yaml/")
    published_at = client.get("/v1/status").json()["datasets"]["published_at"]
    assert unnamed(document.text, published.index.serial, published_at) == []
    serial = published.index.serial
    for path in ("/import/yaml/", f"/at/{serial}.{serial}/import/yaml/"):
        assert ('data-age="ago"' in client.get(path).text) == (path == "/import/yaml/")


def test_page_shows_how_long_it_lags(changing: Published):
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


def test_pages_without_catalog_show_only_the_latest_state(published: Published, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.client(home=tmp_path / "home") as client:
        document = page(client, "/project/demo/")
        assert "3 releases" in document.text
        assert "History" not in document.links
        page(client, "/at/5/project/demo/", status=503)


def test_pages_support_head_and_compression(client: Client):
    head = client.request("HEAD", "/project/demo/")
    assert (head.status_code, head.content) == (200, b"")
    zipped = client.get("/project/demo/", headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"


def commands(client: Client, path: str) -> list[str]:
    """Return the commands on a page as a browser copies them."""
    text = page(client, path).text
    tools = ("pip install --index-url ", "uv pip install --default-index ")
    return [f"{tool}{' '.join(part.split()[:2])}" for tool in tools for part in text.split(f" {tool}")[1:]]


def test_install_commands_are_pinned_to_the_page_serial(client: Client, published: Published):
    serial = published.index.serial
    for path, index, requirement in (
        ("/project/demo/", "simple/", "demo"),
        ("/release/demo/2.0/", "simple/", "demo==2.0"),
        ("/import/yaml/", "simple/", "pyyaml"),
        (f"/at/{serial}.{serial}/project/demo/", f"at/{serial}/simple/", "demo"),
        (f"/at/{serial}.{serial}/release/demo/2.0/", f"at/{serial}/simple/", "demo==2.0"),
        ("/", "simple/", "pyyaml"),
    ):
        expected = f"{client.url}{index} {requirement}"
        pip, uv = commands(client, path)
        assert (pip, uv) == (f"pip install --index-url {expected}", f"uv pip install --default-index {expected}")


def test_install_command_of_a_page_works(client: Client, tmp_path: Path):
    [command] = [one for one in commands(client, "/release/demo/1.0/") if one.startswith("pip ")]
    options = ["--isolated", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--target", str(tmp_path)]
    subprocess.run([sys.executable, "-m", *shlex.split(command), *options], check=True, capture_output=True)
    assert (tmp_path / "demo" / "__init__.py").exists()


def test_host_header_is_not_shown(client: Client):
    for name in ("Host", "X-Forwarded-Host", "Forwarded"):
        value = "host=elsewhere.invalid" if name == "Forwarded" else "elsewhere.invalid"
        answer = client.get("/project/demo/", headers={**BROWSER, name: value})
        assert (answer.status_code, "elsewhere.invalid" in answer.text) == (200, False)


def test_public_address_comes_from_the_setting(published: Published):
    with published.client(service_public_url=PUBLIC) as client:
        [pip, _] = commands(client, "/project/demo/")
        assert pip == f"pip install --index-url {PUBLIC}simple/ demo"
        assert "data-own-address" not in client.get("/project/demo/").text
    with published.client(service_public_url="http://packages.example.org:8642/") as client:
        shown = client.get("/project/demo/").text
        assert "--trusted-host packages.example.org:8642<" in shown


SHELL_REQUIREMENTS = [
    ("six", None, "six"),
    ("six", "1.0", "six==1.0"),
    ("six", "1!1.0", "'six==1!1.0'"),
    ("six", "1.0$(reboot)", None),
    ("six", "; reboot", None),
    ("$(reboot)", None, None),
    ("-r", None, None),
    ("six", "not a version", None),
]


def test_only_installable_requirements_become_commands(subtests: pytest.Subtests):
    for project, version, expected in SHELL_REQUIREMENTS:
        with subtests.test(project=project, version=version):
            assert shell_requirement(project, version) == expected
