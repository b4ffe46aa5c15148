"""Errors about read-only folders name the path and the setting, and work continues once the folder is writable."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from starlette.requests import Request

from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.served_index import ServedIndex


@contextmanager
def file_system(folder: Path) -> Iterator[None]:
    """Mount a separate file system at a folder, since permissions do not restrict root."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a file system here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make the mounted folder read-only until the block ends."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


def contents(storage: Storage) -> dict[str, bytes]:
    return {stored.path: storage.get(stored.path) for stored in storage.list()}


WRITERS = (("crawl", "incremental"), ("dump", "full"), ("leveldb", "update"), ("journal", "write"), ("admin", "prune"))


def advance(commands: Commands, index: ServedIndex, version: str) -> None:
    """Upload a new version, and publish it through all stages."""
    index.wheel("demo", version)
    commands.done("crawl", "incremental")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    found = commands.json("lookup", "module", "demo_module")
    assert version in str(found)


@pytest.mark.parametrize("remote", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("part", ["home", "storage", "leveldbs"])
def test_error_names_the_folder_and_its_setting(
    part: str, remote: bool, commands: Commands, index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a remote storage, LevelDBs are built below the home, otherwise within the storage."""
    folder = {"home": commands.home, "storage": tmp_path / "shared", "leveldbs": commands.home / "leveldbs"}[part]
    if (part == "storage" and remote) or (part == "leveldbs" and not remote):
        pytest.skip("this folder does not exist with this storage")
    setting = "PYPI_ASSETS_STORAGE_URL" if part == "storage" else "PYPI_ASSETS_HOME"
    with file_system(folder):
        url = f"s3://{BUCKET}/shared" if remote else (tmp_path / "shared").as_uri()
        monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", url)
        with s3_server(monkeypatch) if remote else nullcontext():
            commands.done("crawl", "full")
            advance(commands, index, "1.0")
            index.wheel("demo", "2.0")
            before = contents(open_storage(url))
            failed = 0
            with read_only(folder):
                for command in WRITERS:
                    result = commands.run(*command)
                    if result.exit_code:
                        failed += 1
                        assert unnamed(result.stderr, str(folder), setting) == [], (command, result.stderr)
                if remote:  # lookups download into the home as well
                    message = commands.refused("lookup", "module", "demo_module")
                    assert unnamed(message, str(folder), setting) == []
                else:
                    assert commands.json("lookup", "module", "demo_module")
            assert failed
            after = contents(open_storage(url))
            lasting = {path: one for path, one in before.items() if not path.startswith("published")}
            assert {path: after.get(path) for path in lasting} == lasting
            advance(commands, index, "3.0")
            assert [file["version"] for file in commands.json("lookup", "files")] == ["1.0", "2.0", "3.0"]


def test_storage_that_becomes_read_only_during_a_crawl_loses_nothing(
    commands: Commands, index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shared"
    for number in range(4):
        index.wheel(f"demo{number}", "1.0")
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", folder.as_uri())
    with file_system(folder), ExitStack() as mounted:

        def become_read_only(request: Request) -> None:
            if request.url.path.startswith("/packages/"):
                index.faults = None
                mounted.enter_context(read_only(folder))

        index.faults = become_read_only
        result = commands.run("crawl", "full")
        assert result.exit_code == 1
        assert unnamed(result.stderr, str(folder), "PYPI_ASSETS_STORAGE_URL") == []
        mounted.close()
        assert contents(open_storage(folder.as_uri())) == {}
        assert commands.json("crawl", "full")["reads"]["data"] == 4
        advance(commands, index, "1.0")
