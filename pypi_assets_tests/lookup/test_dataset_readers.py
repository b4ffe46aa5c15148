"""Readers of the datasets of modules, commands, hashes and pages."""

import hashlib
import re
from dataclasses import replace

import pytest

from pypi_assets.catalog.publications.dump_rows import providing_releases
from pypi_assets.catalog.reports.live_files import FoundFile, files_with_sha256
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
from pypi_assets.lookup.hashes_reader import (
    HashesReader,
    known_files,
    live_files,
    parse_sha256,
    parse_sha256_prefix,
)
from pypi_assets.lookup.latest import open_latest, reader_class
from pypi_assets.lookup.modules_reader import providing_projects
from pypi_assets.questions.question import find_question
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.small_catalog import SmallCatalog


def test_dataset_without_reader_module_is_an_error() -> None:
    lost = replace(DATASETS["modules"], name="lost", reader="pypi_assets.lookup.no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        reader_class(lost)


def test_prefix_results_are_ordered(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as modules:
        stream = modules.modules("demo")
        assert (stream.version, stream.serial) == (1, 100)
        assert [(one["module"], one["project"]) for one in stream] == [("demo", "demo"), ("demo.b", "demo-b")]
        assert [module["module"] for module in modules.modules("demo.")] == ["demo.b"]
        assert [module["module"] for module in modules.modules()] == ["demo", "demo.b"]
        assert list(modules.modules("x")) == []


def test_module_prefix_does_not_match_siblings(small: SmallCatalog):
    small.add(1, "Demo", "1", "demo-1.zip", modules=("space.one",), requires_dist=("two",))
    small.add(2, "Demo", "2", "demo-2.zip", modules=("space.one", "two"))
    small.add(3, "other", "1", "other-1.zip", modules=("two",), requires_dist=("space.one",))
    small.remove(4, "demo-2.zip")

    def provided(module: str, serial: int) -> object:
        return [
            (row["project"], row["versions"])
            for row in providing_projects(module, providing_releases(small.catalog, serial, module))
        ]

    assert provided("space.one", 3) == [("Demo", ["1", "2"])]
    assert provided("space", 3) == []
    assert provided("two", 2) == [("Demo", ["2"])]
    assert provided("two", 4) == [("other", ["1"])]


def test_commands_have_the_projects_that_install_them(publisher: Publisher) -> None:
    for _ in range(2):
        publisher.publish()
    small = publisher.small
    small.read("demo-1.0.tar.gz", ("demo",), ())
    small.read("demo_b-1.0.tar.gz", ("demo.b", "other"), ())
    small.read("other-2.tar.gz", ("demo",), ())
    full_dump(small.catalog, publisher.storage, 1, since=small.catalog.clock())
    build_version("commands", storage=publisher.storage, catalog=small.catalog)
    with open_latest(CommandsReader, publisher.storage) as reader:
        answer = reader.command("demo")
        assert (answer.version, answer.serial) == (reader.version, publisher.serial)
        assert answer.results == (
            {"command": "demo", "project": "demo", "normalized": "demo", "versions": ["1.0"]},
            {"command": "demo", "project": "other", "normalized": "other", "versions": ["1", "2"]},
        )
        assert set(answer.results[0]) == set(CommandResult.__annotations__)
        stream = reader.commands("demo.")
        assert (stream.version, stream.serial) == (reader.version, publisher.serial)
        assert [(one["command"], one["normalized"]) for one in stream] == [("demo.b", "demo-b")]
        assert [command["command"] for command in reader.commands()] == ["demo", "demo", "demo.b", "other"]
        assert reader.command("dem").results == ()
        assert list(reader.commands("x")) == []


HASH = "0a" * 32


def test_removed_file_is_known_with_its_times(small: SmallCatalog):
    small.add(1, "Demo", "1", "demo-1.zip")
    small.remove(3, "demo-1.zip")
    small.show_again(5, "demo-1.zip")
    sha256 = hashlib.sha256(b"demo-1.zip").hexdigest()

    def known(serial: int) -> object:
        found = known_files(sha256, files_with_sha256(small.catalog, serial, sha256))
        return [(file["filename"], file["live_since"], file["live"]) for file in found]

    assert known(2) == [("demo-1.zip", 1, [(1, None)])]
    assert known(4) == [("demo-1.zip", None, [(1, 3)])]
    assert known(5) == [("demo-1.zip", 5, [(1, 3), (5, None)])]
    assert list(live_files(known_files(sha256, files_with_sha256(small.catalog, 4, sha256)))) == []


@pytest.mark.parametrize("text", [HASH, HASH.upper(), f" {HASH}\n"])
def test_sha256_is_lowercased(text: str) -> None:
    assert parse_sha256(text) == parse_sha256_prefix(text) == HASH


@pytest.mark.parametrize(
    "wrong", ["", HASH[:-1], HASH + "0", HASH[:-1] + "g", f"{HASH[:31]} {HASH[:32]}", "\u0660" * 64]
)
def test_invalid_sha256_is_rejected(wrong: str) -> None:
    with pytest.raises(LookupNameError, match="64"):
        parse_sha256(wrong)


def test_sha256_prefix_has_1_to_64_digits() -> None:
    assert [parse_sha256_prefix(text) for text in ("A", " 0b ", HASH)] == ["a", "0b", HASH]
    for text in ("", " ", "x", "0x1", HASH + "0"):
        with pytest.raises(LookupNameError, match=re.escape(repr(text))):
            parse_sha256_prefix(text)


def test_hashes_and_prefixes_find_live_files(publisher: Publisher) -> None:
    build_version("hashes", storage=publisher.storage, catalog=publisher.small.catalog)
    hashes = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("demo-1.0.tar.gz", "demo_b-1.0.tar.gz")}
    with open_latest(HashesReader, publisher.storage) as reader:
        answer = reader.file(hashes["demo_b-1.0.tar.gz"].upper())
        assert (answer.version, answer.serial) == (reader.version, 100)
        assert answer.results == (
            {
                "sha256": hashes["demo_b-1.0.tar.gz"],
                "project": "demo-b",
                "normalized": "demo-b",
                "version": "1.0",
                "filename": "demo_b-1.0.tar.gz",
                "live_since": 2,
            },
        )
        assert reader.file("00" * 32).results == ()
        by_hash = sorted(hashes, key=hashes.__getitem__)
        assert [file["filename"] for file in reader.files()] == by_hash
        for name, sha256 in hashes.items():
            for length in (8, 64):
                assert [file["filename"] for file in reader.files(sha256[:length].upper())] == [name]
        with pytest.raises(LookupNameError):
            reader.file("demo")
        with pytest.raises(LookupNameError):
            reader.files("demo")


def test_times_are_text_only_in_tables() -> None:
    found = FoundFile("Demo", "demo", "1", "demo-1.zip", ((1, 3), (5, None)))
    [result] = known_files(HASH, [found])
    assert result["live"] == [(1, 3), (5, None)]
    rows = find_question("hash").rows
    assert rows is not None
    assert next(iter(rows(result)))["live"] == "1 to 3, since 5"
