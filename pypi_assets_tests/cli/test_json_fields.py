"""The fields of the JSON output of commands keep their names, because other programs rely on them."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from pypi_assets.components import storage_from
from pypi_assets.resolve.solvability import write_day
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.lookup.test_advisories import record, stored
from pypi_assets_tests.resolve.test_solvability_files import MADE
from pypi_assets_tests.served_index import ServedIndex

FIELDS = json.loads((Path(__file__).parent.parent / "data" / "json-fields.json").read_text())
"""The paths of the fields of each command. `[]` stands for the items of an array. New fields are added here."""

FIELDS_OF_SCOPES = json.loads((Path(__file__).parent.parent / "data" / "json-fields-of-scopes.json").read_text())
"""The paths of the fields of each command, if scopes decide what is followed."""


def fields_of(value: Any, path: str = "") -> set[str]:
    if isinstance(value, list):
        return {field for item in value for field in fields_of(item, f"{path}[]")}
    if isinstance(value, dict):
        below = {field for name, item in value.items() for field in fields_of(item, f"{path}.{name}")}
        return below | {f"{path}.{name}" for name in value}
    return set()


@pytest.mark.nightly
def test_json_fields_are_unchanged(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = {command: set(fields) for command, fields in FIELDS.items()}

    def run(command: str, *arguments: object) -> None:
        printed = json.loads(commands.run(*command.split(), *arguments, "--json").stdout)
        missing[command] -= fields_of(printed)

    index.wheel("demo", "1.0", requires_dist=["other-pkg>=2"])
    index.wheel("other-pkg", "2.0")
    index.wheel("hidden", "1.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    index.faults = lambda request: Response(status_code=503) if "/hidden/" in request.url.path else None
    run("admin indexes")
    run("crawl full")
    run("failures list")
    run("failures list", "--project", "broken")
    run("failures show", "broken")
    index.faults = None
    run("failures retry")
    run("scope create", "mine", "demo")
    run("scope run", "mine")
    run("scope list")
    run("scope show", "mine")
    run("scope why", "mine", "demo")
    run("scope rules", "mine")
    run("scope prune", "mine")
    run("scope remove", "mine")
    run("dump full", "--shards", "1")
    run("dump parquet")
    run("dump tables")
    run("leveldb update")
    first = index.serial
    index.wheel("demo", "2.0")
    index.history.yank("demo", "1.0")
    run("crawl incremental")
    index.wheel("demo", "3.0")
    run("crawl incremental")
    run("dump incremental")
    run("dump redo", "--shards", "1")
    run("admin restore")
    monkeypatch.setenv("PYPI_ASSETS_SUPERSEDED_KEPT_HOURS", "0")
    run("dump clean", "--dry-run")
    run("leveldb list")
    run("leveldb fetch", "modules", "--into", tmp_path / "fetched")
    run("leveldb verify")
    run("lookup module", "demo_module")
    run("owners", "demo_module")
    run("lookup project", "demo")
    run("lookup dependents", "other-pkg")
    run("lookup dependents --transitive", "other-pkg")
    run("impact", "other-pkg", "--at", first)
    run("lookup breaks", "other-pkg==1.0")
    run("impact --osv", stored(tmp_path / "osv", one=record("other-pkg", versions=["2.0"])))
    run("impact --solve --osv", tmp_path / "osv", "--python", "3.12", "--platform", "linux-x86_64")
    run("resolve", "demo", "--python", "3.12", "--platform", "linux-x86_64")
    run("resolve", "demo", "other-pkg>9", "--python", "3.12", "--platform", "linux-x86_64")
    run("blame", "demo", "--good", first, "--python", "3.12", "--platform", "linux-x86_64")
    run("admin report removals")
    write_day(storage_from(load_settings()), MADE)
    run("admin report solvability")
    run("lookup page", "demo")
    run("lookup files")
    run("history", "demo", "--all")
    run("history", "broken")
    run("queue")
    run("visits", "demo")
    run("visits", "demo", "--compare", 1, 2)
    run("visits", "--state", "stale")
    index.wheel("demo", "3.9")
    run("visit", "demo")
    run("admin ranges", "--all")
    run("admin audit", "--share", 100)
    run("admin reprocess", "--older-than-version", 1000)
    run("admin extracts clean", "--dry-run")
    run("admin prune")
    run("admin inspect", index.folder / "built" / "broken-1.0-py3-none-any.whl")
    run("admin inspect", "--from-extract", "demo-1.0-py3-none-any.whl")
    run("admin migrate")
    index.wheel("demo", "4.0")
    run("status")
    assert {command: fields for command, fields in missing.items() if fields} == {}


def test_json_fields_with_scopes_are_unchanged(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
    missing = {command: set(fields) for command, fields in FIELDS_OF_SCOPES.items()}

    def run(command: str, *arguments: object) -> None:
        missing[command] -= fields_of(json.loads(commands.run(*command.split(), *arguments, "--json").stdout))

    index.wheel("app", "1.0", requires_dist=["library"], entry_points="[console_scripts]\nhello = app_module:main\n")
    index.wheel("library", "1.0")
    run("scope create", "mine", "app")
    run("scope run")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    run("lookup module", "app_module")
    run("lookup dependents", "library")
    run("lookup command", "hello")
    run("status")
    run("scope list")
    run("scope show", "mine")
    run("scope why", "mine", "library")
    run("scope rules", "mine")
    run("scope prune", "mine")
    run("scope remove", "mine")
    assert {command: fields for command, fields in missing.items() if fields} == {}
