"""If scopes select the followed projects, answers about other projects have a note instead of looking empty."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypi_assets.cli import cli
from pypi_assets.cli.followed_notes import among
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.cli.commands import Commands, commands_in
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

NOT_FOLLOWED = ["scope create NAME outside", "scope run NAME"]
"""Commands named by a note on a project that is not followed."""
NOT_SEARCHED = ["scope create NAME PROJECT ..."]
"""Commands named by a note if unfollowed projects were not searched."""


@pytest.fixture
def scoped(commands: Commands, index: ServedIndex) -> ServedIndex:
    """Follow and publish `app` and its requirement `library`, but not `outside`."""
    hello = "[console_scripts]\nhello = app_module:main\n"
    index.wheel("app", "1.0", requires_dist=["library"], entry_points=hello)
    index.wheel("library", "1.0")
    index.wheel("outside", "1.0", requires_dist=["library"], entry_points=hello)
    commands.done("scope", "create", "mine", "app")
    commands.done("scope", "run")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    return index


def test_lookups_report_number_of_followed_projects_and_reason_of_empty_answer(
    commands: Commands, scoped: ServedIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serial = scoped.serial
    storage = open_storage((commands.home / "storage").as_uri())
    [directory] = committed_directories(storage)
    published = read_published(storage, "modules", 1)
    assert (read_manifest(storage, directory).followed_projects, published.manifest.followed_projects) == (2, 2)
    for command, name in (("dependents", "library"), ("module", "app_module"), ("command", "hello")):
        [row] = commands.json("lookup", command, name)
        assert (row.get("normalized", row.get("project")), row["followed_projects"]) == ("app", 2)
        shown = commands.done("lookup", command, name).stderr
        assert unnamed(shown, serial, "2") == []
    for at in ((), ("--at", serial)):
        nothing = commands.done("lookup", "module", "outside_module", *at)
        assert unnamed(nothing.stderr, "outside_module", serial, 2) == []
        assert commands_in(nothing.stderr) == NOT_SEARCHED
        nothing = commands.done("lookup", "project", "outside", *at)
        assert (nothing.stdout, commands_in(nothing.stderr.splitlines()[1])) == ("", NOT_FOLLOWED)
    transitive = commands.done("lookup", "dependents", "outside", "--transitive")
    assert commands_in(transitive.stderr)[-1:] == NOT_SEARCHED
    assert commands_in(commands.done("lookup", "module", "outside", "--prefix").stderr)[-1:] == NOT_SEARCHED
    transitive = commands.done("lookup", "dependents", "library", "--transitive")
    assert unnamed(transitive.stderr, 2) == []
    lines = CliRunner().invoke(cli, ["lookup", "project", "-"], input=b"app\noutside\n").stdout.splitlines()
    known, unknown = map(json.loads, lines)
    assert (known["followed_projects"], "note" in known) == (2, False)
    assert (unknown["results"], commands_in(unknown["note"])) == ([], NOT_FOLLOWED)

    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", (commands.home / "storage").as_uri())
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "mirror"))
    mirrored = commands.done("lookup", "project", "outside").stderr
    assert unnamed(mirrored, "outside") == []


def test_purl_of_unfollowed_project_has_a_note(commands: Commands, scoped: ServedIndex) -> None:
    for at in ((), ("--at", scoped.serial)):
        [unknown] = commands.json("lookup", "purl", "pkg:pypi/outside@1.0", *at)
        assert (unknown["exists"], unnamed(unknown["error"], "outside", 2)) == (False, [])
        [other_version] = commands.json("lookup", "purl", "pkg:pypi/library@9", *at)
        assert (other_version["exists"], other_version["error"]) == (False, None)


def test_catalog_commands_report_unfollowed_projects(commands: Commands, scoped: ServedIndex) -> None:
    serial = scoped.serial
    files = commands.done("lookup", "files")
    assert len(files.stdout.splitlines()) == 2
    assert unnamed(files.stderr, serial, "2") == []
    for command in (("lookup", "files"), ("history",), ("visits",)):
        shown = commands.done(*command, "outside")
        assert (shown.stdout, commands_in(shown.stderr)) == ("", NOT_FOLLOWED)
        assert commands_in(commands.done(*command, "App").stderr) == []


@pytest.mark.nightly
def test_project_has_answers_while_it_is_followed(commands: Commands, scoped: ServedIndex) -> None:
    scoped.history.remove_release("outside", "1.0")
    removed = scoped.serial
    scoped.wheel("outside", "2.0")
    commands.done("crawl", "incremental")
    scoped.wheel("app", "2.0", requires_dist=["outside"])
    commands.done("crawl", "incremental")
    lag = commands.done("lookup", "project", "outside").stderr
    assert unnamed(lag, "outside") == []
    [found] = commands.json("lookup", "files", "outside")
    assert found["version"] == "2.0"
    known_since = ("outside", removed - 1, removed)
    for command in (("lookup", "files"), ("lookup", "project")):
        assert unnamed(commands.refused(*command, "outside", "--at", removed - 1), *known_since) == []
    dependents = commands.done("lookup", "dependents", "outside", "--at", removed - 1)  # searches followed projects
    assert (dependents.stdout, unnamed(dependents.stderr, "outside", removed - 1)) == ("", [])
    names = CliRunner().invoke(cli, ["lookup", "project", "-", "--at", str(removed - 1)], input=b"outside\napp\n")
    early, other = map(json.loads, names.stdout.splitlines())
    assert (unnamed(early["error"], *known_since), len(other["results"])) == ([], 1)

    scoped.history.remove_release("app", "2.0")
    commands.done("crawl", "incremental")
    commands.done("scope", "prune", "mine")
    pruned = scoped.serial
    scoped.wheel("library", "2.0")
    commands.done("crawl", "incremental")
    assert unnamed(commands.done("lookup", "files", "outside").stderr, "outside", pruned + 1) == []
    assert unnamed(commands.done("history", "outside").stderr, "outside", pruned + 1) == []
    assert commands.json("lookup", "files", "outside", "--at", pruned)


def test_notes_are_absent_if_all_projects_are_followed() -> None:
    assert among(None) == ""
    assert unnamed(among(1), "1") == []
