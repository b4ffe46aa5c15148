"""`pypi-assets lookup`: at a serial, by prefix, for many names, and wrong usage."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pypi_assets.cli import cli
from pypi_assets.questions.question import all_questions
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_lookup_at_an_earlier_serial(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["other-pkg>=2"])
    first = index.serial
    commands.done("crawl", "full")
    index.wheel("demo", "2.0")
    index.wheel("other", "1.0", files={"demo_module/__init__.py": ""})
    index.history.remove_release("demo", "1.0")
    commands.done("crawl", "incremental")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update")
    for question in (("module", "demo_module"), ("project", "demo"), ("project", "demo==1.0"), ("project", "other")):
        newest = commands.json("lookup", *question)
        at_serial = commands.json("lookup", *question, "--at", index.serial)
        assert at_serial == [result | {"epoch": index.serial} for result in newest]
    at_first = commands.done("lookup", "module", "demo_module", "--at", first, "--json")
    assert json.loads(at_first.stdout) == [
        {"module": "demo_module", "project": "demo", "versions": ["1.0"], "epoch": first}
    ]
    assert unnamed(at_first.stderr, first) == []
    [then] = commands.json("lookup", "project", "Demo", "--at", first)
    assert (then["filename"], then["requires_dist"]) == ("demo-1.0-py3-none-any.whl", ["other-pkg>=2"])
    nothing = commands.done("lookup", "project", "other", "--at", first)
    assert nothing.stdout == ""
    assert unnamed(nothing.stderr, first) == []
    for serial in (0, index.serial + 1):
        message = commands.refused("lookup", "module", "demo_module", "--at", serial)
        assert unnamed(message, serial, first, index.serial) == []


def test_answer_from_two_datasets_has_one_serial(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    first = index.serial
    index.wheel("other", "1.0", files={"demo_module/__init__.py": ""})
    for step in (("crawl", "incremental"), ("dump", "incremental"), ("leveldb", "update", "--dataset", "modules")):
        commands.done(*step)
    shown = commands.done("lookup", "module", "demo_module")
    assert shown.stdout == "demo\t1.0\nother\t1.0\n"
    assert unnamed(shown.stderr, index.serial) == []
    [owners] = commands.json("owners", "demo_module")
    assert (owners["serial"], [one["project"] for one in owners["candidates"]]) == (first, ["demo"])
    commands.done("leveldb", "update")
    [owners] = commands.json("owners", "demo_module")
    assert (owners["serial"], len(owners["candidates"])) == (index.serial, 2)


def test_questions_accept_names_from_standard_input(
    commands: Commands, index: ServedIndex, subtests: pytest.Subtests
) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    for question in all_questions():
        if question.name == "owners" or question.has_body:  # their answers are single arrays, and they read files
            continue
        with subtests.test(question=question.name):
            result = CliRunner().invoke(cli, [*question.command.split(), "-"], input=b"demo\ndemo==1.0\n\n")
            assert result.exit_code == 0, result.output
            lines = [json.loads(line) for line in result.stdout.splitlines()]
            assert [one["name"] for one in lines] == ["demo", "demo==1.0"]
            assert all(("results" in one) != ("error" in one) for one in lines)
            assert any("results" in one for one in lines) == (question.name != "hash")


def test_lookups_by_prefix_and_of_many_names(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["base>=1", "Base.Two; extra == 'x'"])
    index.wheel("demo-two", "2.0", requires_dist=["base"])
    index.wheel("other", "1.0")
    commands.build_versions()
    serial = index.serial

    found = commands.json("lookup", "module", "demo", "--prefix")
    assert [one["module"] for one in found] == ["demo_module", "demo_two_module"]
    assert commands.done("lookup", "module", "demo", "--prefix", "--limit", 1).stdout == "demo_module\tdemo\t1.0\n"
    found = commands.json("lookup", "project", "Demo_", "--prefix")
    assert [one["filename"] for one in found] == ["demo_two-2.0-py3-none-any.whl"]
    shown = commands.done("lookup", "dependents", "base", "--prefix").stdout.splitlines()
    assert shown == ["base\tdemo\t1.0\t\t", "base\tdemo-two\t2.0\t\t", "base-two\tdemo\t\t\t1.0"]
    nothing = commands.done("lookup", "module", "nope", "--prefix")
    assert nothing.stdout == ""
    assert unnamed(nothing.stderr, "nope", serial) == []

    def answers(*arguments: object, names: bytes) -> list[dict[str, Any]]:
        result = CliRunner().invoke(cli, ["lookup", *map(str, arguments)], input=names, catch_exceptions=False)
        assert result.exit_code == 0
        return [json.loads(line) for line in result.stdout.splitlines()]

    one, other = answers("module", "-", names=b"demo_module\n\n  nope\n")
    assert (one["name"], one["version"], one["serial"]) == ("demo_module", 1, serial)
    assert one["results"] == commands.json("lookup", "module", "demo_module")
    assert (other["name"], other["results"]) == ("nope", [])
    first, wrong, last = answers("project", "-", names=b"demo==1\ndemo>=1\nother")
    assert [len(one["results"]) for one in (first, last)] == [1, 1]
    assert (wrong["name"], "NAME==VERSION" in wrong["error"]) == ("demo>=1", True)
    [then] = answers("project", "-", "--at", serial, names=b"demo")
    assert then["results"] == first["results"]
    assert (then["version"], then["epoch"]) == (None, serial)
    found, wrong = answers("dependents", "-", names=b"base\n\xff")
    assert (len(found["results"]), "error" in wrong) == (2, True)
    assert len(answers("dependents", "-", "--limit", 1, names=b"base")[0]["results"]) == 1

    assert unnamed(commands.refused("lookup", "module", "-", "--prefix", exit_code=2), "--prefix") == []
    for dataset in ("modules", "commands"):  # the catalog has no index of prefixes or commands
        question = ("lookup", dataset.removesuffix("s"), "demo")
        assert commands.refused(*question, "--prefix", "--at", serial)
        assert commands.done(*question, "--prefix")
    assert commands.refused("lookup", "command", "demo", "--at", serial)


@pytest.mark.parametrize("what", ["module", "project", "dependents"])
def test_lookup_without_a_name_is_a_usage_error(commands: Commands, what: str) -> None:
    for name in ("", " "):
        assert unnamed(commands.refused("lookup", what, name, exit_code=2), "NAME") == []


@pytest.mark.parametrize("requirement", ["demo>=1", "demo==", "demo==1,<2", "-demo", "demo[extra]"])
def test_invalid_requirement_is_a_usage_error(commands: Commands, requirement: str) -> None:
    assert "NAME==VERSION" in commands.refused("lookup", "project", "--", requirement, exit_code=2)


def test_lookup_of_commands_and_hashes(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
    index.wheel("Demo", "1.0", entry_points="[console_scripts]\nhello = demo_module:main\nhelp = demo_module:other\n")
    index.wheel("other", "1.0")
    commands.build_versions()
    first = index.serial

    expected = [{"command": "hello", "project": "Demo", "normalized": "demo", "versions": ["1.0"]}]
    assert commands.json("lookup", "command", "hello") == expected
    assert commands.done("lookup", "command", "hel", "--prefix", "--limit", 1).stdout == "hello\tDemo\t1.0\n"
    nothing = commands.done("lookup", "command", "nope")
    assert nothing.stdout == ""
    assert unnamed(nothing.stderr, "nope", first) == []

    [demo] = commands.json("lookup", "files", "demo")
    [other] = commands.json("lookup", "files", "other")
    sha256 = demo["sha256"]
    found = {
        "sha256": sha256,
        "project": "Demo",
        "normalized": "demo",
        "version": "1.0",
        "filename": demo["filename"],
        "live_since": demo["live_since"],
    }
    assert commands.json("lookup", "hash", sha256) == [found]
    assert commands.json("lookup", "hash", sha256.upper()) == [found]
    assert commands.json("lookup", "hash", sha256[:9], "--prefix") == [found]
    assert commands.json("lookup", "hash", sha256, "--at", first) == [found | {"epoch": first}]
    both = commands.json("lookup", "hash", sha256, other["sha256"])
    assert [one["project"] for one in both] == ["Demo", "other"]
    local = tmp_path / "a file"
    local.write_bytes((index.folder / "built" / demo["filename"]).read_bytes())
    assert commands.json("lookup", "hash", "--file", local, "--file", local) == [found, found]
    row = f"Demo\t1.0\t{demo['filename']}\t{demo['live_since']}\n"
    assert commands.done("lookup", "hash", "--file", local).stdout == row
    other_row = f"{other['sha256']}\tother\t1.0\t{other['filename']}\t{other['live_since']}\n"
    for options in ((), ("--at", first)):  # several rows begin with the hash, so that they can be matched to the input
        several = commands.done("lookup", "hash", other["sha256"], "--file", local, *options)
        assert several.stdout == f"{other_row}{sha256}\t{row}"
    local.write_bytes(b"another file")
    unknown_hash = hashlib.sha256(b"another file").hexdigest()
    unknown = commands.done("lookup", "hash", "00" * 32, sha256, "--file", local)
    assert unknown.stdout == f"{sha256}\t{row}"
    by_hash, by_file, moment = unknown.stderr.splitlines()
    assert unnamed(by_hash, "00" * 32, first) == []
    assert unnamed(by_file, local, unknown_hash, first) == []
    assert unnamed(moment, first) == []
    never = commands.done("lookup", "hash", "--file", local, "--all")
    assert unnamed(never.stderr, local, unknown_hash, first) == []
    unknown = commands.done("lookup", "hash", "00" * 32)
    assert (unknown.stdout, unnamed(unknown.stderr, "00" * 32, first)) == ("", [])
    lines = CliRunner().invoke(cli, ["lookup", "hash", "-"], input=f"{sha256}\nnope\n", catch_exceptions=False)
    answers = [json.loads(line) for line in lines.stdout.splitlines()]
    assert answers[0]["results"] == [found]
    assert (answers[1]["name"], "'nope'" in answers[1]["error"]) == ("nope", True)
    assert lines.exit_code == 0
    for wrong, problem in {
        ("nope",): "'nope'",
        ("nope", "--prefix"): "'nope'",
        (): "SHA256",
        ("-", sha256): "-",
        ("--file", tmp_path / "missing"): "missing",
        ("ab", "cd", "--prefix"): "--prefix",
    }.items():
        assert problem in commands.refused("lookup", "hash", *wrong, exit_code=2)

    index.history.remove_project("demo")
    for step in (("crawl", "incremental"), ("dump", "incremental"), ("leveldb", "update")):
        commands.done(*step)
    assert commands.json("lookup", "hash", sha256) == commands.json("lookup", "command", "hello") == []
    [removed] = commands.json("lookup", "hash", sha256, "--all")
    assert removed.pop("epoch") == index.serial
    since = demo["live_since"]
    assert removed == found | {"live_since": None, "live": [[since, index.serial]]}
    shown = commands.done("lookup", "hash", sha256, "--all")
    assert shown.stdout == f"Demo\t1.0\t{demo['filename']}\t{since} to {index.serial}\n"
    assert commands.json("lookup", "hash", sha256, "--all", "--at", first) == [
        found | {"live": [[since, None]], "epoch": first}
    ]


def test_suggestions_are_printed_on_standard_error(commands: Commands, index: ServedIndex) -> None:
    index.wheel("Demo-Project", "1.0", files={"importable/__init__.py": ""})
    commands.build_versions()
    serial = index.serial
    for question, expected in {
        ("lookup", "module", "imporatble"): ["importable"],
        ("lookup", "module", "imporatble", "--at", serial): ["importable"],
        ("lookup", "module", "imporatble", "--prefix"): ["importable"],
        ("lookup", "project", "demo-projects"): ["demo-project"],
        ("lookup", "project", "demo-projects", "--at", serial): ["demo-project"],
        ("lookup", "project", "demo-project==2"): ["demo-project", "1.0"],
        ("lookup", "dependents", "importable"): ["importable", "Demo-Project"],
        ("history", "importable"): ["importable", "Demo-Project"],
        ("visits", "importable"): ["importable", "Demo-Project"],
        ("lookup", "files", "demo-projet"): ["demo-project"],
    }.items():
        result = commands.done(*question)
        assert result.stdout == ""
        [hint] = result.stderr.splitlines()[1:]
        assert unnamed(hint, *expected) == [], question
        assert commands.json(*question) == []
    for found in ("demo-project", "demo-project==1"):
        assert unnamed(commands.done("lookup", "project", found).stderr, serial) == []
    assert unnamed(commands.done("lookup", "project", "demo-", "--prefix").stderr, serial) == []
    assert len(commands.done("lookup", "dependents", "demo-project").stderr.splitlines()) == 1
    assert len(commands.done("lookup", "project", "dem-", "--prefix").stderr.splitlines()) == 1


def test_newest_versions_and_transitive_dependents(commands: Commands, index: ServedIndex) -> None:
    index.wheel("base", "1.0")
    index.wheel("base", "2.0rc1")
    index.wheel("mid", "1.0", requires_dist=["base", "once"])
    index.wheel("mid", "2.0", requires_dist=["base; extra == 'x'"])
    index.wheel("app", "1.0", requires_dist=["mid"])
    index.history.yank("app", "1.0")
    commands.build_versions()
    serial = index.serial
    for at in ((), ("--at", serial)):
        [file] = commands.json("lookup", "project", "base", "--latest", *at)
        assert file["version"] == "1.0"
        [provider] = commands.json("lookup", "module", "base_module", "--latest", *at)
        assert provider["versions"] == ["1.0"]
        [dependent] = commands.json("lookup", "dependents", "base", "--latest", *at)
        assert (dependent["always"], dependent["extra"]) == ([], ["2.0"])
        whole = commands.json("lookup", "dependents", "base", *at)
        assert [(one["always"], one["extra"]) for one in whole] == [(["1.0"], ["2.0"])]
        newest = commands.done("lookup", "dependents", "once", "--latest", *at)
        assert (newest.stdout, unnamed(newest.stderr, "once", serial)) == ("", [])
        assert len(commands.json("lookup", "dependents", "once", *at)) == 1
    assert commands.json("lookup", "dependents", "o", "--prefix", "--latest") == []
    [dependent] = commands.json("lookup", "dependents", "b", "--prefix", "--latest", "--limit", 1)
    assert dependent["required"] == "base"
    nothing = commands.done("lookup", "dependents", "once", "--transitive", "--latest")
    assert (nothing.stdout, unnamed(nothing.stderr, "once", serial)) == ("", [])
    versions = [one["version"] for one in commands.json("lookup", "project", "m", "--prefix", "--latest")]
    assert versions == ["2.0"]
    result = CliRunner().invoke(cli, ["lookup", "project", "-", "--latest"], input=b"mid\n")
    assert [one["version"] for one in json.loads(result.stdout)["results"]] == ["2.0"]

    all_steps = commands.done("lookup", "dependents", "base", "--transitive", "--header")
    assert all_steps.stdout.splitlines() == [
        "depth\trequired\tproject\talways\tmarker\textra",
        "1\tbase\tmid\t1.0\t\t2.0",
        "2\tmid\tapp\t1.0\t\t",
    ]
    assert unnamed(all_steps.stderr, "2", "1") == []
    assert unnamed(all_steps.stderr, serial) == []
    for options in (("--depth", 1), ("--limit", 1)):
        assert len(commands.json("lookup", "dependents", "base", "--transitive", *options)) == 1
    newest = commands.done("lookup", "dependents", "base", "--transitive", "--latest", "--csv").stdout_bytes
    assert newest == b'1,"base","mid","","","[""2.0""]"\r\n2,"mid","app","[""1.0""]","",""\r\n'
    nothing = commands.done("lookup", "dependents", "mud", "--transitive")
    assert unnamed(nothing.stderr, "mud", serial, "mid") == []
    for wrong, named in {
        ("base", "--transitive", "--prefix"): ["--transitive"],
        ("-", "--transitive"): ["--transitive"],
        ("base", "--depth", 1): ["--depth", "transitive"],
        ("-", "--csv"): ["JSON"],
        ("base", "--json", "--header"): ["--json", "--header"],
    }.items():
        assert unnamed(commands.refused("lookup", "dependents", *wrong, exit_code=2), *named) == [], wrong
