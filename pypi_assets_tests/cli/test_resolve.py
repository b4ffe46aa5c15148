"""`pypi-assets resolve`: the versions that an installer would choose, now and at a moment."""

import json
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

WHERE = ("--python", "3.12", "--platform", "linux-x86_64")


@pytest.fixture
def serials(commands: Commands, index: ServedIndex) -> dict[str, int]:
    """Publish an index. Return its serial, and the serial before the newest release of `lib`."""
    index.wheel("lib", "1.0")
    index.wheel("app", "1.0", requires_dist=["Lib>=1", "plain; sys_platform == 'win32'"])
    index.wheel("plain", "1.0")
    found = {"before": index.serial}
    index.wheel("lib", "2.0")
    index.history.yank("plain", "1.0")
    commands.done("crawl", "full", "--with-history")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    return found


def chosen(commands: Commands, *arguments: object) -> dict[str, str]:
    return {one["normalized"]: one["version"] for one in commands.json("resolve", *arguments, *WHERE)["releases"]}


def test_resolve_now_and_at_a_serial(commands: Commands, serials: dict[str, int]) -> None:
    assert chosen(commands, "app") == {"app": "1.0", "lib": "2.0"}
    assert chosen(commands, "app", "--at", serials["before"]) == {"app": "1.0", "lib": "1.0"}
    found = commands.json("resolve", "app", "--at", serials["before"], *WHERE)
    assert (found["serial"], found["epoch"]) == (serials["before"], serials["before"])


def test_resolve_prints_a_tree_for_its_environment(commands: Commands, serials: dict[str, int]) -> None:
    result = commands.done("resolve", "app", *WHERE)
    assert result.stdout.splitlines() == ["app 1.0\tapp", "  lib 2.0\tLib>=1"]
    assert unnamed(result.stderr, "2") == []
    assert unnamed(result.stderr, "3.12", "linux-x86_64") == []


def test_resolve_reads_requirements_and_constraints_files(
    commands: Commands, serials: dict[str, int], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("app\n")
    (tmp_path / "limits.txt").write_text("lib<2\n")
    assert chosen(commands, "-r", tmp_path / "in.txt", "-c", tmp_path / "limits.txt") == {"app": "1.0", "lib": "1.0"}


def test_options_in_requirements_files_are_applied_or_named(
    commands: Commands, index: ServedIndex, serials: dict[str, int], tmp_path: Path
) -> None:
    options = "--index-url https://user:secret@example.org/simple\n--only-binary :all:\n--pre\n"
    (tmp_path / "in.txt").write_text(f"{options}lib<2 --hash=sha256:{'0' * 64}\n")
    result = commands.run("resolve", "-r", tmp_path / "in.txt", "--json", *WHERE)
    found = json.loads(result.stdout)
    assert unnamed(found["proof"]["steps"][0], "lib") == []
    assert (found["prereleases"], found["only_binary"]) == (True, True)
    [sentence] = found["ignored_options"]
    assert unnamed(sentence, "in.txt:1", "--index-url") == []
    assert sentence in result.stderr
    assert "secret" not in result.stderr
    [digest] = [one["sha256"] for one in commands.json("lookup", "project", "lib==1.0")]
    (tmp_path / "in.txt").write_text(f"lib --hash=sha256:{digest}\n")
    assert chosen(commands, "-r", tmp_path / "in.txt") == {"lib": "1.0"}


def test_resolve_locks_for_several_environments(commands: Commands, serials: dict[str, int]) -> None:
    options = ("--universal", "--python", "3.12", "--platform", "linux-x86_64", "--platform", "windows-x86_64")
    lock = commands.done("resolve", "app", "plain==1.0", *options, "--format", "requirements").stdout
    assert "plain==1.0 \\" in lock
    assert "lib==2.0 \\" in lock
    lock = commands.done("resolve", "app", "plain==1.0; sys_platform == 'win32'", *options, "--format", "pylock").stdout
    assert 'lock-version = "1.0"' in lock
    assert "marker = \"sys_platform == 'win32'\"" in lock


def test_unsolvable_requirements_end_with_the_proof(commands: Commands, serials: dict[str, int]) -> None:
    text = commands.refused("resolve", "app", "lib>2", *WHERE)
    assert unnamed(text, "lib", ">2", "2.0") == []
    result = commands.run("resolve", "appp", "--json", *WHERE)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["releases"] is None
    [step] = found["proof"]["steps"]
    assert unnamed(step, "appp") == []
    assert any("app" in hint for hint in found["proof"]["hints"])


def test_cooldown_counts_back_from_the_moment(commands: Commands, serials: dict[str, int]) -> None:
    assert unnamed(commands.refused("resolve", "app", "--cooldown", "1d", *WHERE), "app") == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), ()),
        (("app>",), ("app>",)),
        (("app @ https://example.org/a.whl",), ("https://example.org/a.whl",)),
        (("app", "--python", "2.7"), ("'2.7'",)),
        (("app", "--platform", "amiga"), ("'amiga'",)),
        (("app", "--python", "3.12", "--python", "3.13"), ("--universal",)),
        (("app", "--cooldown", "soon"), ("soon",)),
        (("app", "--at", "999999"), ("999999",)),
        (("app", "--json", "--format", "tree"), ("--json", "--format")),
    ],
)
def test_resolve_rejects_invalid_options(commands: Commands, serials: dict[str, int], arguments, named) -> None:
    result = commands.run("resolve", *arguments)
    assert result.exit_code in {1, 2}
    assert unnamed(result.stderr, *named) == []
