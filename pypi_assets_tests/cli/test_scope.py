"""`pypi-assets scope`: follow some projects and their requirements."""

from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


@pytest.fixture
def tools(index: ServedIndex) -> ServedIndex:
    """Create an index with the projects of a scope, and one project outside all scopes."""
    index.wheel("app", "1.0", requires_dist=["library>=1", "extra-tool ; extra == 'more'"])
    index.wheel("library", "1.0", requires_dist=["base"])
    for name in ("base", "extra-tool", "other"):
        index.wheel(name, "1.0")
    return index


def test_scope_is_created_run_shown_changed_and_removed(commands: Commands, tools: ServedIndex) -> None:
    Path("requirements.txt").write_text("app[more]\n./local\n")
    created = commands.json("scope", "create", "tools", "--roots", "requirements.txt", "--depth", "1", "--nice", 5)
    assert (created["scope"], created["serial"], created["roots"]) == ("tools", tools.serial, ["app"])
    assert len(created["left_out"]) == 1
    [listed] = commands.json("scope", "list")
    assert (listed["scope"], listed["state"], listed["projects"], listed["visits"]["todo"]) == ("tools", "active", 1, 1)
    [ran] = commands.json("scope", "run", "tools")
    assert (ran["state"], ran["projects_by_depth"], ran["beyond_depth"]) == ("finished", {"0": 1, "1": 2}, 1)
    assert ran["reads"]["data"] == 3
    assert commands.done("scope", "run").stdout
    shown = commands.json("scope", "show", "tools")
    assert shown["roots"] == {"app": ["more"]}
    assert (shown["depth"], shown["nice"], shown["files"]["data"], shown["entering"]) == (1, 5, 3, 0)
    assert unnamed(commands.done("scope", "show", "tools").stdout, "1", "0", "2") == []
    assert commands.done("scope", "list").stdout.startswith("tools\tfinished\t3\t")
    commands.done("scope", "set", "tools", "--tag", "small", "--match-only", "--concurrency", 2)
    shown = commands.json("scope", "show", "tools")
    assert (shown["tag"], shown["match_only"], shown["concurrency"]) == ("small", True, 2)
    commands.done("scope", "set", "tools", "--tag", "", "--no-match-only")
    shown = commands.json("scope", "show", "tools")
    assert (shown["tag"], shown["match_only"]) == (None, False)
    names = [one["filename"] for one in commands.json("lookup", "files")]
    assert names == [f"{name}-1.0-py3-none-any.whl" for name in ("app", "extra_tool", "library")]
    assert commands.json("scope", "remove", "tools")["no_longer_followed"] == ["app", "extra-tool", "library"]
    assert commands.done("scope", "list").stderr


def test_root_without_a_page_is_named(commands: Commands, tools: ServedIndex) -> None:
    commands.done("scope", "create", "tools", "app", "libary")
    assert commands.json("scope", "show", "tools")["missing_roots"] == ["app", "libary"]  # nothing is visited yet
    assert "libary" in commands.done("scope", "run", "tools").stderr
    assert commands.json("scope", "show", "tools")["missing_roots"] == ["libary"]
    assert "libary" in commands.done("scope", "show", "tools").stdout
    tools.wheel("libary", "1.0")
    commands.done("crawl", "incremental")
    assert commands.json("scope", "show", "tools")["missing_roots"] == []


def test_why_prints_the_path_or_exits_with_1(commands: Commands, tools: ServedIndex) -> None:
    commands.done("scope", "create", "tools", "app")
    commands.done("scope", "run")
    assert unnamed(commands.done("scope", "why", "tools", "Base").stdout, "app", "library", "base") == []
    assert commands.json("scope", "why", "tools", "base")["path"] == ["app", "library", "base"]
    result = commands.run("scope", "why", "tools", "other", "--json")
    assert (result.exit_code, '"is_in": false' in result.stdout) == (1, True)


def test_rules_are_changed_and_excluded_projects_are_pruned(commands: Commands, tools: ServedIndex) -> None:
    commands.done("scope", "create", "tools", "app")
    commands.done("scope", "run")
    Path("rules.toml").write_text('[[rule]]\nprojects = ["lib*"]\naccept = false\n')
    assert commands.json("scope", "rules", "tools", "--set", "rules.toml")["version"] == 2
    assert commands.json("scope", "rules", "tools", "--version", 1)["rules"] == ""
    assert commands.done("scope", "rules", "tools").stdout.endswith("accept = false\n")
    message = commands.refused("scope", "rules", "tools", "--version", 3)
    assert unnamed(message, "tools", "3", "1", "2") == []
    commands.done("scope", "run")
    assert unnamed(commands.done("scope", "prune", "tools").stdout, "base", "library") == []
    assert unnamed(commands.done("scope", "prune", "tools").stdout, "base", "library") == ["base", "library"]
    Path("rules.toml").write_text('[[rule]]\nprojects = ["app"]\naccept = false\n')
    message = commands.refused("scope", "rules", "tools", "--set", "rules.toml")
    assert unnamed(message, "1", "app") == []


def test_aborted_scope_is_paused_until_resumed(commands: Commands, tools: ServedIndex) -> None:
    commands.done("scope", "create", "tools", "app")
    assert unnamed(commands.done("scope", "abort", "tools").stdout, "scope resume", "tools") == []
    message = commands.refused("scope", "run", "tools")
    assert unnamed(message, "tools", "scope resume") == []
    assert commands.done("scope", "run").stdout
    commands.done("scope", "resume", "tools")
    commands.done("scope", "run", "tools")
    assert commands.json("scope", "show", "tools")["state"] == "finished"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["create", "No"], ["'No'"]),
        (["create", "tools"], ["--roots"]),
        (["create", "tools", "a b"], ["'a b'"]),
        (["create", "tools", "app>=1"], ["'app>=1'"]),
        (["create", "tools", "--roots", "none.txt"], ["none.txt"]),
        (["create", "tools", "app", "--rules", "rules.toml"], ["rule 1", "nice"]),
        (["show", "tools"], ["PYPI_ASSETS_HOME"]),
    ],
)
def test_invalid_argument_of_scope_is_named(
    commands: Commands, index: ServedIndex, arguments: list[str], named: list[str]
) -> None:
    Path("rules.toml").write_text("[[rule]]\nnice = 10000000\n")
    assert unnamed(commands.refused("scope", *arguments), *named) == []


def test_set_without_a_change_is_rejected(commands: Commands, index: ServedIndex) -> None:
    commands.refused("scope", "set", "tools", exit_code=2)
    commands.refused("scope", "create", "a", "b", "--depth", "x", exit_code=2)
