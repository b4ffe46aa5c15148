"""Foreign index servers are followed as documented: `init URL`, `follow --once`, a question. Later changes follow.

The only setting given is the interval of polls. `init` detects the kind of index and the URL of its project list.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
import requests
from pypi_simple import ACCEPT_JSON_PREFERRED

from pypi_assets.components import existing_catalog_from
from pypi_assets.settings import load_settings
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.deploy.services import free_port
from pypi_assets_tests.deploy.test_index_servers import (
    Server,
    devpi_server,
    process,
    pypiserver,
    shown,
    static_folder,
    static_pages,
)
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.index.loopback import Answer, Request, serving
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import keep_readers, live, served_index

pytestmark = pytest.mark.deploy
MANY = 500
SERVERS: dict[str, tuple[Callable[[Path], AbstractContextManager[Server]], tuple[str, ...]]] = {
    "devpi": (partial(devpi_server, accept=ACCEPT_JSON_PREFERRED), ("/+simple/", "/+simple", "")),
    "pypiserver": (pypiserver, ("/simple/", "/simple", "")),
    "static folder": (static_folder, ("/simple/", "/simple", "")),
    "static pages": (static_pages, ("/simple/", "/simple", "")),
}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    clear_settings(monkeypatch)
    keep_readers(monkeypatch)
    monkeypatch.delenv("PYPI_ASSETS_ENV_FILE")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Commands(folder / ".pypi-assets")


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", SERVERS)
def test_three_commands_give_an_answer_and_follow_changes(
    name: str, commands: Commands, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, endings = SERVERS[name]
    with serve(tmp_path) as server:
        server.upload(make_wheel(built, "alpha", "1.0", files={"alpha_module.py": ""}))
        server.upload(make_wheel(built, "beta-pkg", "1.0", files={"beta_module.py": ""}))
        base = server.url.removesuffix(endings[0])
        for ending in reversed(endings):
            commands.done("init", base + ending, "--force")
            assert (load_settings().index_url, load_settings().lister) == (server.url, "pages")
        commands.done("follow", "--once")
        assert [one["project"] for one in commands.json("lookup", "module", "beta_module")] == ["beta-pkg"]

        server.upload(make_wheel(built, "alpha", "2.0", files={"newer_module.py": ""}))
        not_due = commands.json("crawl", "incremental")  # at the default interval
        assert (not_due["ranges"], not_due["observed"]["looked_at"], not_due["observed"]["projects"]) == ([], 0, 2)
        assert unnamed(commands.done("crawl", "incremental").stdout, "--now", 0, 2) == []
        commands.done("follow", "--once", "--now")
        assert [one["versions"] for one in commands.json("lookup", "module", "newer_module")] == [["2.0"]]

        if server.has_hashes:
            other = make_wheel(built, "beta-pkg", "1.0", files={"other_module.py": ""})
            server.upload(other)
            commands.done("follow", "--once", "--now")
            assert commands.json("lookup", "module", "beta_module") == []
            assert [one["project"] for one in commands.json("lookup", "module", "other_module")] == ["beta-pkg"]
            digest = hashlib.sha256(other.read_bytes()).hexdigest()
            assert digest in {sha256 for _, sha256 in shown(server).values()}
        if server.yank is not None:
            server.yank("alpha", "alpha-2.0-py3-none-any.whl", True)
            commands.done("follow", "--once", "--now")
            assert ("alpha-2.0-py3-none-any.whl", True) in live_files()

        assert server.delete is not None
        server.delete("beta-pkg", "1.0")
        waiting = commands.json("crawl", "incremental", "--now")  # the default interval has not passed
        assert (waiting["ranges"], waiting["observed"]["unconfirmed"]) == ([], 1)
        assert waiting["observed"]["confirmed_from"] is not None
        assert unnamed(commands.done("crawl", "incremental", "--now").stdout, "beta-pkg") == []
        monkeypatch.setenv("PYPI_ASSETS_POLL_CONFIRM_S", "0")
        commands.done("follow", "--once", "--now")
        assert {filename for filename, _ in live_files()} == set(shown(server))
        assert "beta_pkg-1.0-py3-none-any.whl" not in shown(server)
        assert commands.json("crawl", "incremental")["observed"]["unconfirmed"] == 0


def live_files() -> set[tuple[str, bool]]:
    catalog = existing_catalog_from(load_settings())
    try:
        return live(catalog)
    finally:
        catalog.close()


@pytest.mark.parametrize("name", ["pypiserver", "static folder"])
def test_five_hundred_projects_are_followed(
    name: str, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_REQUESTS_PER_SECOND", "1000")
    names = [f"project-{number:03}" for number in range(MANY)]
    with SERVERS[name][0](tmp_path) as server:
        for each in names:
            folder = tmp_path / "packages" if name == "pypiserver" else tmp_path / "www" / "simple" / each
            folder.mkdir(exist_ok=True)
            make_wheel(folder, each, "1.0", files={f"{each.replace('-', '_')}.py": ""})
        commands.done("init", server.url)
        commands.done("follow", "--once")
        assert [one["project"] for one in commands.json("lookup", "module", "project_499")] == ["project-499"]
        assert len(live_files()) == MANY
        observed = commands.json("crawl", "incremental", "--now")["observed"]
        assert (observed["looked_at"], observed["projects"], observed["unconfirmed"]) == (MANY, MANY, 0)


@contextmanager
def own_service(commands: Commands, log: Path) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["from pypi_assets.cli import main; main()", "serve", "--port", str(port)]
    with process([sys.executable, "-c", *command], f"{url}/", log):
        yield url


def test_own_service_is_followed_as_an_index(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_index(tmp_path / "served") as index:
        index.wheel("demo", "1.0")
        index.wheel("other", "1.0")
        commands.done("init", index.url)
        assert load_settings().lister == "auto"
        commands.done("follow", "--once")
        with own_service(commands, tmp_path / "serve.log") as url:
            second = tmp_path / "second"
            second.mkdir()
            monkeypatch.chdir(second)
            commands.done("init", url)
            assert (load_settings().index_url, load_settings().lister) == (f"{url}/simple/", "auto")
            commands.done("follow", "--once")
            assert [one["project"] for one in commands.json("lookup", "module", "other_module")] == ["other"]


def test_credentials_are_used_but_not_written_to_the_settings(commands: Commands, built: Path, tmp_path: Path) -> None:
    with static_pages(tmp_path) as server:
        server.upload(make_wheel(built, "alpha", "1.0", files={"alpha_module.py": ""}))
        wanted = "Basic bWU6aHVzaA=="

        def answer(request: Request) -> Answer:
            if request.headers.get("authorization") != wanted:
                return Answer(401, headers={"WWW-Authenticate": "Basic"})
            behind = requests.get(server.url.removesuffix("/simple/") + request.path, timeout=30)
            return Answer(behind.status_code, behind.content, {"Content-Type": behind.headers["Content-Type"]})

        with serving(answer) as guarded:
            refused = commands.refused("init", guarded.url)
            assert unnamed(refused, 401, "netrc", "keyring") == []
            result = commands.done("init", guarded.url.replace("://", "://me:hush@"))
            assert "hush" not in result.output
            assert [path.name for path in Path.cwd().iterdir() if "hush" in path.read_text()] == [".env.index-url"]
            commands.done("follow", "--once")
            assert [one["project"] for one in commands.json("lookup", "module", "alpha_module")] == ["alpha"]
