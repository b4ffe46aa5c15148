"""Foreign servers without changelog and serials: after each poll, the catalog equals their pages.

Each server runs from its released package, on loopback. pypi-simple reads the pages for comparison, not our code.
"""

import base64
import hashlib
import html
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from packaging.utils import canonicalize_name
from pypi_simple import ACCEPT_HTML_ONLY, ACCEPT_JSON_PREFERRED, NoSuchProjectError, PyPISimple

from pypi_assets.components import catalog_from, crawler_from, index_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.index.observing import page_source
from pypi_assets.settings import load_settings
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.deploy.services import free_port
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.served_index import live, shared_readers

pytestmark = pytest.mark.deploy
STARTS_WITHIN_S = 300.0
PROJECTS = ("alpha", "beta-pkg")
_RUN = "import sys; from importlib.metadata import entry_points as e; "
_RUN += "[found] = e(group='console_scripts', name=sys.argv.pop(1)); sys.exit(found.load()())"


@dataclass
class Server:
    """A server with its project list at `url`.

    `upload` takes a path. The other functions are None if the server does not support them: `delete` takes a project
    and a version, `yank` a project, a filename and whether it is yanked.
    """

    url: str
    upload: Callable[[Path], None]
    delete: Callable[[str, str], None] | None = None
    yank: Callable[[str, str, bool], None] | None = None
    has_hashes: bool = True
    most_polls: int = 3
    pause_s: float = 0.0
    accept: str = ACCEPT_JSON_PREFERRED
    leads_away: bool = False
    """Whether pages of unknown projects redirect to another host."""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_settings(monkeypatch)


@contextmanager
def process(command: list[object], url: str, log: Path) -> Iterator[None]:
    """Run `command` until the block ends. It has started once `url` responds."""
    with log.open("wb") as output:
        started = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + STARTS_WITHIN_S
            while True:
                try:
                    requests.get(url, timeout=5)
                    break
                except requests.RequestException:
                    assert started.poll() is None, log.read_text()
                    assert time.monotonic() < deadline, log.read_text()
                    time.sleep(0.1)
            yield
        finally:
            started.terminate()
            started.wait(30)


def script(name: str) -> list[object]:
    """Return the command of an installed package, in whichever folder its scripts are."""
    return [sys.executable, "-c", _RUN, name]


def twine(repository: str, user: str, password: str, path: Path) -> None:
    command = [sys.executable, "-m", "twine", "upload", "--non-interactive", "--disable-progress-bar"]
    options = ["--repository-url", repository, "--username", user, "--password", password, str(path)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass
class Devpi:
    """A devpi-server with a user `me`, whose password is not a secret."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, **document: object) -> dict[str, object]:
        headers = {"Accept": "application/json", **self.headers}
        found = requests.request(method, f"{self.url}{path}", json=document or None, headers=headers, timeout=30)
        assert found.ok, found.text
        content: dict[str, object] = found.json()
        return content

    def log_in(self) -> None:
        self.request("PUT", "/me", password="secret")
        token = self.request("POST", "/+login", user="me", password="secret")["result"]["password"]  # type: ignore[index]
        self.headers["X-Devpi-Auth"] = base64.b64encode(f"me:{token}".encode()).decode()


@contextmanager
def running_devpi(folder: Path, command_of: Callable[[str], list[object]] = script) -> Iterator[Devpi]:
    """Run a devpi-server. `command_of` returns the command of one of its scripts."""
    state, port = folder / "devpi", free_port()
    subprocess.run(
        [*command_of("devpi-init"), "--serverdir", state, "--no-root-pypi"],  # type: ignore[list-item]
        check=True,
        capture_output=True,
        timeout=120,
    )
    devpi = Devpi(f"http://127.0.0.1:{port}")
    command = [*command_of("devpi-server"), "--serverdir", state, "--host", "127.0.0.1", "--port", port]
    with process(command, f"{devpi.url}/+api", folder / "devpi.log"):
        devpi.log_in()
        yield devpi


@contextmanager
def devpi_server(folder: Path, *, accept: str) -> Iterator[Server]:
    with running_devpi(folder) as devpi:
        devpi.request("PUT", "/me/dev", type="stage", bases=[], volatile=True)
        yield Server(
            f"{devpi.url}/me/dev/+simple/",
            partial(twine, f"{devpi.url}/me/dev/", "me", "secret"),
            delete=lambda project, version: devpi.request("DELETE", f"/me/dev/{project}/{version}"),
            accept=accept,
        )


@contextmanager
def pypiserver(folder: Path, *options: str) -> Iterator[Server]:
    """Run pypiserver with its defaults: missing projects redirect to the public index. Deletion needs no password."""
    packages, port = folder / "packages", free_port()
    packages.mkdir()
    url = f"http://127.0.0.1:{port}"
    common = ["-p", port, "-i", "127.0.0.1", "-P", ".", "-a", ".", "--overwrite"]
    with process(
        [*script("pypi-server"), "run", *common, *options, packages], f"{url}/simple/", folder / "pypiserver.log"
    ):

        def delete(project: str, version: str) -> None:
            form = {":action": "remove_pkg", "name": project.replace("-", "_"), "version": version}
            assert requests.post(f"{url}/", data=form, timeout=30).ok

        leads_away = "--disable-fallback" not in options
        upload = partial(twine, f"{url}/", "me", "secret")
        yield Server(f"{url}/simple/", upload, delete=delete, leads_away=leads_away)


@contextmanager
def nginx(folder: Path) -> Iterator[str]:
    """Serve `folder / "www"` with directory listings, by nginx or, if it is not installed, by Python's own server."""
    (folder / "www" / "simple").mkdir(parents=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    if shutil.which("nginx") is None:
        handler = partial(SimpleHTTPRequestHandler, directory=str(folder / "www"))
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield url
        server.shutdown()
        server.server_close()
        return
    paths = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; worker_processes 1; {'user root;' if os.getuid() == 0 else ''}"
        f"pid {folder}/nginx.pid; error_log {folder}/error.log; events {{}} http {{ access_log off; {paths}"
        "types { text/html html; } default_type application/octet-stream;"
        f"server {{ listen 127.0.0.1:{port}; root {folder}/www; autoindex on; }} }}"
    )
    with process(["nginx", "-p", folder, "-c", config], f"{url}/simple/", folder / "nginx.log"):
        yield url


@contextmanager
def static_folder(folder: Path) -> Iterator[Server]:
    """Serve files in folders, as if copied there by hand."""
    with nginx(folder) as url:
        root = folder / "www" / "simple"

        def upload(path: Path) -> None:
            place = root / project_of(path)
            place.mkdir(exist_ok=True)
            shutil.copy(path, place / path.name)

        def delete(project: str, version: str) -> None:
            for path in (root / project).glob(f"*-{version}*"):
                path.unlink()

        yield Server(f"{url}/simple/", upload, delete=delete, has_hashes=False)


@contextmanager
def static_pages(folder: Path) -> Iterator[Server]:
    """Serve PEP 503 pages written by a script, over files in an adjacent folder."""
    with nginx(folder) as url:
        root, packages = folder / "www" / "simple", folder / "www" / "packages"
        packages.mkdir()
        yanked: set[str] = set()

        def write() -> None:
            by_project: dict[str, list[Path]] = {}
            for path in sorted(packages.iterdir()):
                by_project.setdefault(project_of(path), []).append(path)
            for project in PROJECTS:
                links = "".join(_link(path, yanked) for path in by_project.get(project, []))
                if links or (root / project).exists():
                    (root / project).mkdir(exist_ok=True)
                    (root / project / "index.html").write_text(f"<title>Links for {project}</title>{links}")
            names = sorted(path.name for path in root.iterdir() if path.is_dir())
            listed = "".join(f"<a href='{name}/'>{name}</a>" for name in names)
            (root / "index.html").write_text(f"<title>Simple index</title>{listed}")

        def upload(path: Path) -> None:
            shutil.copy(path, packages / path.name)
            write()

        def delete(project: str, version: str) -> None:
            for path in packages.glob(f"{project.replace('-', '_')}-{version}*"):
                path.unlink()
            write()

        def yank(_project: str, filename: str, is_yanked: bool) -> None:
            (yanked.add if is_yanked else yanked.discard)(filename)
            write()

        write()
        yield Server(f"{url}/simple/", upload, delete=delete, yank=yank, most_polls=5)  # confirms withdrawn yanks


@contextmanager
def devpi_mirror(
    folder: Path, mirrored: Callable[[Path], AbstractContextManager[Server]], *, accept: str = ACCEPT_JSON_PREFERRED
) -> Iterator[Server]:
    """Run a devpi mirror of another server: its pages are some seconds old, and its files are on another host.

    It shows the yanks of the other server. Devpi's own stages have none (devpi-server 6.20).
    """
    with mirrored(folder) as behind, running_devpi(folder) as devpi:
        mirror = {"mirror_url": behind.url, "mirror_cache_expiry": 2, "mirror_use_external_urls": True}
        devpi.request("PUT", "/me/mirror", type="mirror", volatile=True, **mirror)
        url = f"{devpi.url}/me/mirror/+simple/"
        yield replace(behind, url=url, most_polls=20, pause_s=1.0, accept=accept, leads_away=False)


def _link(path: Path, yanked: set[str]) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    flag = " data-yanked='it is broken'" if path.name in yanked else ""
    return f"<a href='/packages/{html.escape(path.name)}#sha256={digest}'{flag}>{path.name}</a>\n"


def project_of(path: Path) -> str:
    return path.name.split("-")[0].replace("_", "-")


SERVERS = {
    "devpi-json": partial(devpi_server, accept=ACCEPT_JSON_PREFERRED),
    "devpi-html": partial(devpi_server, accept=ACCEPT_HTML_ONLY),
    "pypiserver": lambda folder: pypiserver(folder, "--disable-fallback"),
    "pypiserver-defaults": pypiserver,
    "static-folder": static_folder,
    "static-pages": static_pages,
    "devpi-of-pypiserver": partial(devpi_mirror, mirrored=pypiserver),
    "devpi-of-pages-json": partial(devpi_mirror, mirrored=static_pages),
    "devpi-of-pages-html": partial(devpi_mirror, mirrored=static_pages, accept=ACCEPT_HTML_ONLY),
}


def shown(server: Server) -> dict[str, tuple[bool, str | None]]:
    """Return the content of the server's pages by filename: whether the file is yanked, and its SHA-256."""
    found = {}
    with PyPISimple(server.url, accept=server.accept) as client:
        listed = (
            {canonicalize_name(name) for name in client.get_index_page().projects} if server.leads_away else PROJECTS
        )
        for project in [project for project in PROJECTS if project in listed]:
            try:
                page = client.get_project_page(project)
            except NoSuchProjectError:
                continue
            for package in page.packages:
                found[package.filename] = (bool(package.is_yanked), package.digests.get("sha256"))
    return {name: facts for name, facts in found.items() if name.endswith((".whl", ".tar.gz"))}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.nightly) if one.startswith("devpi-of-") else one for one in SERVERS]
)
def test_catalog_equals_the_pages_after_each_poll(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "built"
    built.mkdir()
    with SERVERS[name](tmp_path) as server:
        if server.accept == ACCEPT_HTML_ONLY:
            monkeypatch.setattr(page_source, "ACCEPT", "text/html")
        server.upload(make_wheel(built, "alpha", "1.0"))
        server.upload(make_sdist(built, "alpha", "1.0"))
        server.upload(make_wheel(built, "beta-pkg", "1.0", requires_dist=["alpha"]))
        settings = load_settings(
            lister="pages", index_url=server.url, home=tmp_path / "home", poll_shortest_s=0, poll_confirm_s=0
        )
        catalog = catalog_from(settings)
        notices: list[str] = []
        with index_from(settings, catalog) as index:
            crawler = crawler_from(
                settings, index, catalog, storage_from(settings), shared_readers(), notify=notices.append
            )
            first = crawl_full(crawler)
            assert first.reads.failures == {}
            assert first.reads.data == 3

            def followed(what: str) -> None:
                """Poll until nothing is left to confirm, and check that the catalog equals the pages."""
                for _ in range(server.most_polls):
                    time.sleep(server.pause_s)
                    ranges = crawl_incremental(crawler)
                    assert [one.unexplained_changes for one in ranges] == [0] * len(ranges)
                    assert all(one.reads.failures == {} for one in ranges), what
                pages = shown(server)
                assert live(catalog) == {(filename, yanked) for filename, (yanked, _) in pages.items()}, what

            followed("first files")
            server.upload(make_wheel(built, "alpha", "2.0"))
            followed("an upload")
            assert ("alpha-2.0-py3-none-any.whl", False) in live(catalog)
            _overwrite(server, built, followed)
            if server.yank is not None:
                server.yank("alpha", "alpha-2.0-py3-none-any.whl", True)
                followed("a yank")
                assert ("alpha-2.0-py3-none-any.whl", True) in live(catalog)
                server.yank("alpha", "alpha-2.0-py3-none-any.whl", False)
                followed("a yank that is taken back")
            assert server.delete is not None
            server.delete("alpha", "2.0")
            followed("a removal")
            assert {filename for filename, _ in live(catalog)} == {
                "alpha-1.0-py3-none-any.whl",
                "alpha-1.0.tar.gz",
                "beta_pkg-1.0-py3-none-any.whl",
            }
            server.delete("beta-pkg", "1.0")
            followed("the removal of a whole project")
            server.upload(make_wheel(built, "beta-pkg", "1.0", requires_dist=["alpha"]))
            followed("its return")
            findings = audit_index(crawler, 100.0).audit.findings
            assert findings is not None
            assert findings.counts == {}
            (tmp_path / "notices.json").write_text(json.dumps(notices))
        catalog.close()


def _overwrite(server: Server, built: Path, followed: Callable[[str], None]) -> None:
    """Replace the content of an existing file. The catalog's hashes must then be those on the pages."""
    path = make_wheel(built, "beta-pkg", "1.0", files={"other_module.py": ""})
    server.upload(path)
    followed("an overwritten file")
    digests = {sha256 for _, sha256 in shown(server).values() if sha256}
    assert not server.has_hashes or hashlib.sha256(path.read_bytes()).hexdigest() in digests
