"""Mirrors behind nginx with the configuration of docs/journal.md: which files it serves, and a chain of mirrors."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from benchmarks.service_home import served
from pypi_assets.storage.published import PUBLISHED
from pypi_assets_tests.cli.commands import PROCESS
from pypi_assets_tests.deploy.services import DEPLOY, free_port
from pypi_assets_tests.deploy.test_browser import CHROMIUM, DRIVER, opened_browser
from pypi_assets_tests.deploy.test_index_servers import process
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.mirror.conftest import Origin, begin

pytestmark = pytest.mark.deploy
SERVER = """
pid nginx.pid;
events {{}}
http {{
    access_log off;
    {folders}
    types {{ application/json json; }}
    server {{
        listen 127.0.0.1:{port};
{location}
    }}
}}
"""
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def documented(home: Path) -> str:
    """Return the location block of docs/journal.md, for this home."""
    [block] = re.findall(r"```nginx\n(.*?)```", (DEPLOY.parent / "docs" / "journal.md").read_text(), re.DOTALL)
    assert "/srv/pypi-assets" in block
    return str(block).replace("/srv/pypi-assets", str(home))


@contextmanager
def behind_nginx(folder: Path, home: Path) -> Iterator[str]:
    """Serve the storage of a home by nginx, and yield its URL."""
    folder.mkdir()
    port = free_port()
    folders = "".join(f"{name}_temp_path {folder / name};" for name in FOLDERS)
    config = folder / "nginx.conf"
    config.write_text(SERVER.format(port=port, folders=folders, location=documented(home)))
    options = "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"
    command = ["nginx", "-e", folder / "error.log", "-p", folder, "-c", config, "-g", options]
    url = f"http://127.0.0.1:{port}/storage"
    with process(command, f"{url}/index.json", folder / "log"):
        yield url


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    with pytest.MonkeyPatch.context() as environment:
        clear_settings(environment)
        yield from begin(tmp_path_factory.mktemp("origin"))


def mirror_run(url: str, home: Path, *options: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYPI_ASSETS_HOME": str(home), "PYPI_ASSETS_ENV_FILE": os.devnull}
    return subprocess.Popen([*PROCESS, "mirror", "run", "--from", url, *options], env=environment)


def run_mirror(url: str, home: Path, *options: str) -> None:
    with mirror_run(url, home, *options) as process:
        assert process.wait(120) == 0


def test_nginx_serves_only_published_files(origin: Origin, tmp_path: Path) -> None:
    home = origin.published.home
    (home / "storage" / ".private").mkdir(exist_ok=True)
    (home / "storage" / ".private" / "secret").write_text("hush")
    with behind_nginx(tmp_path / "nginx", home) as url, requests.Session() as session:
        for kept in (".private/secret", "extracts/1", "", "modules/", "../catalog.sqlite", "%2e%2e/catalog.sqlite"):
            assert session.get(f"{url}/{kept}", timeout=10).status_code in (400, 403, 404), kept
        published = session.get(f"{url}/{PUBLISHED}", timeout=10)
        assert published.content == origin.storage.get(PUBLISHED)
        assert published.headers["Cache-Control"] == "no-cache"


def test_chain_of_three_mirrors_answers_alike_after_the_middle_one_is_lost(origin: Origin, tmp_path: Path) -> None:
    middle, last = tmp_path / "middle", tmp_path / "last"
    for home in (middle, last):
        (home / "storage").mkdir(parents=True)
    with ExitStack() as opened:
        first_url = opened.enter_context(behind_nginx(tmp_path / "first_nginx", origin.published.home))
        run_mirror(first_url, middle)
        middle_url = opened.enter_context(behind_nginx(tmp_path / "middle_nginx", middle))
        run_mirror(middle_url, last)
        with mirror_run(first_url, middle, "--follow", "--interval", "1") as killed:
            origin.publish()
            killed.kill()
        for path in middle.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with mirror_run(middle_url, last) as refused:
            assert refused.wait(120) == 1
        run_mirror(first_url, middle)
        run_mirror(middle_url, last)
        here, _ = opened.enter_context(served(last, index_url=origin.published.index.url))
        there, _ = opened.enter_context(served(origin.published.home, index_url=origin.published.index.url))
        for path in ("simple/demo/", "project/demo/", "at/20/simple/demo/", "at/20/project/demo/", "v1/projects/demo"):
            pages = [requests.get(f"{url}{path}", timeout=30) for url in (here, there)]
            assert [page.status_code for page in pages] == [200, 200]
            assert without_own(pages[0].text, here) == without_own(pages[1].text, there), path
        if CHROMIUM and DRIVER:
            with opened_browser() as browser:
                for path in ("project/demo/", "at/20/project/demo/"):
                    assert_shown_alike(browser.driver, here + path, there + path)


def without_own(text: str, url: str) -> str:
    """Return the text of a page without its address and the time at which the answer was published."""
    parts = urlsplit(url)
    text = text.replace(f"{parts.scheme}://{parts.netloc}", "ADDRESS")
    published = re.search(r'data-age="ago">([^<]*)<|(\S+) \([^)]* ago\)', text)
    if published is not None:
        text = text.replace(published[1] or published[2], "TIME")
    return re.sub(r"\([^)]* ago\)", "", text)


def assert_shown_alike(driver: Any, *urls: str) -> None:
    """Check that the pages show the same text, and that the browser logs no errors."""
    shown = []
    for url in urls:
        driver.get(url)
        shown.append(without_own(driver.find_element("tag name", "body").text, url))
    assert shown[0] == shown[1]
    assert "demo" in shown[0]
    assert driver.get_log("browser") == []
