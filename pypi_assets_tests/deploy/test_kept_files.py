"""pip and uv install a project at a past serial from kept bytes, after the index has deleted the project and its files.

The whole way is taken by commands: a scope that keeps files, the crawl, `serve` as a process.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests

from benchmarks.service_home import served
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.installers import UV
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.served_index import ServedIndex, served_index

pytestmark = [pytest.mark.deploy, pytest.mark.nightly]
PIP = (sys.executable, "-m", "pip")
ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json"}


@pytest.fixture(params=["folder", "s3"])
def environment(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set the home and the storage of the commands, and yield the home."""
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "*")
    if request.param == "folder":
        yield tmp_path / "home"
        return
    with s3_server(monkeypatch):
        monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", f"s3://{BUCKET}/kept")
        yield tmp_path / "home"


def addresses(index: ServedIndex, project: str) -> dict[str, str]:
    """Return the addresses of a project's files on the index, by filename."""
    page = requests.get(f"{index.url}{project}/", headers=ACCEPT, timeout=20).json()
    return {file["filename"]: file["url"] for file in page["files"]}


def remove_with_files(index: ServedIndex, project: str) -> None:
    """Remove a project from the index, with the bytes of its files, and check that the index answers 404 for them."""
    urls = addresses(index, project)
    hashes = {hashlib.sha256((index.folder / "built" / name).read_bytes()).hexdigest() for name in urls}
    index.history.remove_project(project)
    for path in (index.history.folder / "files").rglob("*"):
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() in hashes:
            path.unlink()
    assert urls
    assert {requests.get(url, timeout=20).status_code for url in urls.values()} == {404}


def fetch(index_url: str, project: str, filename: str) -> requests.Response:
    """Return the answer to a request for a file to which the project's page links."""
    page = requests.get(f"{index_url}{project}/", headers=ACCEPT, timeout=20)
    [url] = [file["url"] for file in page.json()["files"] if file["filename"] == filename]
    return requests.get(urljoin(page.url, url), timeout=20)


def run(program: Sequence[object], *options: object) -> subprocess.CompletedProcess[str]:
    """Run an installer without the configuration of this machine."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    command = [str(one) for one in (*program, *options)]
    environment = others | {"PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_removed_project_is_installed_from_kept_bytes(environment: Path, tmp_path: Path) -> None:
    commands = Commands(environment)
    with served_index(tmp_path / "served") as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPI_ASSETS_INDEX_URL", index.url)
        index.wheel("app", "1.0", requires_dist=["gone>=1"])
        index.wheel("gone", "1.0")
        index.sdist("gone", "1.0")
        index.wheel("hidden", "1.0")
        index.wheel("other", "1.0")
        commands.done("scope", "create", "tools", "app", "hidden", "--keep-files", "--most", "1GB")
        commands.done("scope", "run", "tools")
        commands.done("dump", "full", "--shards", "1")
        commands.done("leveldb", "update")
        before = index.serial
        hashes = {
            name: hashlib.sha256((index.folder / "built" / name).read_bytes()).hexdigest()
            for project in ("app", "gone", "hidden")
            for name in addresses(index, project)
        }
        remove_with_files(index, "gone")
        index.history.quarantine("hidden")
        commands.done("crawl", "incremental")
        kept = commands.json("files", "list", "--project", "gone")
        assert {one["filename"]: one["standing"] for one in kept} == {
            "gone-1.0-py3-none-any.whl": "gone",
            "gone-1.0.tar.gz": "gone",
        }
        with served(environment) as (url, _):
            past = f"{url}at/{before}/simple/"
            locked = tmp_path / "locked.txt"
            lines = [f"{name}==1.0 --hash=sha256:{hashes[f'{name}-1.0-py3-none-any.whl']}" for name in ("app", "gone")]
            locked.write_text("\n".join(lines) + "\n")
            options = ("--require-hashes", "--index-url", past, "-r", locked)
            report, by_pip, by_uv = tmp_path / "report.json", tmp_path / "by_pip", tmp_path / "by_uv"
            pip = run(PIP, "install", "--no-cache-dir", "--target", by_pip, "--report", report, *options)
            assert pip.returncode == 0, pip.stderr
            installed = json.loads(report.read_text())["install"]
            found = {one["metadata"]["name"]: one["download_info"]["archive_info"]["hashes"] for one in installed}
            assert {name: one["sha256"] for name, one in found.items()} == {
                name: hashes[f"{name}-1.0-py3-none-any.whl"] for name in ("app", "gone")
            }
            assert (by_pip / "gone_module").is_dir()
            uv = run((UV, "pip"), "install", "--no-cache", "--no-config", "--target", by_uv, *options)
            assert uv.returncode == 0, uv.stderr
            assert (by_uv / "gone_module").is_dir()
            sdist = fetch(past, "gone", "gone-1.0.tar.gz")
            assert (sdist.status_code, hashlib.sha256(sdist.content).hexdigest()) == (200, hashes["gone-1.0.tar.gz"])
            assert fetch(past, "hidden", "hidden-1.0-py3-none-any.whl").status_code == 451
