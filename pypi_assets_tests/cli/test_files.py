"""`pypi-assets files`, and the options of scopes that keep files."""

import hashlib
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

WHEEL = "app-1.0-py3-none-any.whl"


@pytest.fixture
def keeping(commands: Commands, index: ServedIndex) -> ServedIndex:
    """Create an index, and a scope whose files were kept when they were read."""
    index.wheel("app", "1.0")
    index.wheel("app", "2.0")
    commands.done("scope", "create", "tools", "app", "--keep-files", "--most", "50GB")
    commands.done("scope", "run")
    return index


def sha256_of(index: ServedIndex, filename: str) -> str:
    return hashlib.sha256((index.folder / "built" / filename).read_bytes()).hexdigest()


def object_of(home: Path, sha256: str) -> Path:
    [found] = (home / "storage" / "files" / sha256[:2] / sha256).iterdir()
    return found


def test_kept_files_are_listed_checked_and_forgotten(commands: Commands, keeping: ServedIndex) -> None:
    hash_ = sha256_of(keeping, WHEEL)
    shown = commands.json("scope", "show", "tools")
    assert (shown["keep_files"], shown["most"], shown["kept_files"]) == (True, 50 * 10**9, 2)
    assert shown["kept_bytes"] == sum(one["size"] for one in commands.json("files", "list", "--scope", "tools"))
    [one] = [one for one in commands.json("files", "list", "--project", "App") if one["filename"] == WHEEL]
    assert (one["sha256"], one["state"], one["standing"], one["scopes"]) == (hash_, "kept", "listed", ["tools"])
    assert commands.json("files", "list", "--limit", 1) == [commands.json("files", "list")[0]]
    assert commands.json("files", "verify") == {"files": 2, "bytes": shown["kept_bytes"], "corrupt": []}
    object_of(commands.home, hash_).write_bytes(b"corrupt")
    result = commands.run("files", "verify")
    assert (result.exit_code, hash_ in result.stdout) == (1, True)
    assert {one["sha256"]: one["state"] for one in commands.json("files", "list")}[hash_] == "corrupt"
    commands.done("scope", "run")  # fetches it again
    assert commands.json("files", "verify")["corrupt"] == []
    assert hashlib.sha256(object_of(commands.home, hash_).read_bytes()).hexdigest() == hash_
    assert commands.json("files", "forget", hash_.upper(), "--reason", "a secret") == {"sha256": hash_, "new": True}
    assert not commands.json("files", "forget", hash_, "--reason", "a secret")["new"]
    assert not (commands.home / "storage" / "files" / hash_[:2] / hash_).exists()
    [record] = commands.json("files", "list", "--forgotten")
    assert (record["sha256"], record["reason"], record["had_bytes"]) == (hash_, "a secret", True)
    assert record["deleted_at"] is not None
    commands.done("scope", "run", "tools")
    shown = commands.json("scope", "show", "tools")
    assert (shown["kept_files"], shown["forgotten_files"]) == (1, 1)


def test_smaller_budget_evicts_at_once(commands: Commands, keeping: ServedIndex) -> None:
    size = commands.json("files", "list", "--project", "app")[0]["size"]
    commands.done("scope", "set", "tools", "--most", f"{size + 100}B")
    [kept] = commands.json("files", "list")
    assert kept["filename"] == "app-2.0-py3-none-any.whl"
    shown = commands.json("scope", "show", "tools")
    assert (shown["kept_files"], shown["evicted_files"]) == (1, 1)
    [ran] = commands.json("scope", "run", "tools")
    assert ran["kept"] == {"files": 0, "bytes": 0, "failed": 0}
    commands.done("scope", "set", "tools", "--most", "none")
    [ran] = commands.json("scope", "run")
    assert (ran["kept"]["files"], ran["most"]) == (1, None)


def test_takedown_deletes_the_bytes(commands: Commands, keeping: ServedIndex) -> None:
    commands.done("journal", "takedown", "app", "--file", WHEEL, "--reason", "a court order")
    assert [one["filename"] for one in commands.json("files", "list")] == ["app-2.0-py3-none-any.whl"]
    [record] = commands.json("files", "list", "--forgotten")
    assert (record["takedown"], record["reason"]) == (1, "a court order")
    assert not (commands.home / "storage" / "files" / record["sha256"][:2] / record["sha256"]).exists()


def test_wrong_values_are_named(commands: Commands, keeping: ServedIndex) -> None:
    for arguments, named in (
        (("files", "forget", "abc", "--reason", "x"), "abc"),
        (("files", "forget", "ab" * 32, "--reason", " "), "--reason"),
        (("scope", "set", "tools", "--most", "50 apples"), "50 apples"),
        (("scope", "set", "tools", "--most", "0GB"), "0GB"),
        (("files", "list", "--forgotten", "--scope", "tools"), "--scope"),
    ):
        result = commands.run(*arguments)
        assert (result.exit_code, unnamed(result.stderr, named)) == (2, [])
    result = commands.run("files", "list", "--scope", "none")
    assert (result.exit_code, unnamed(result.stderr, "none")) == (1, [])
