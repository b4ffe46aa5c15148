"""Which files have a sha256: now, at any serial, and also those that were removed."""

import hashlib
import re
from pathlib import Path

import pytest

from pypi_assets.catalog.reports.live_files import FoundFile, files_with_sha256
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.hashes_reader import (
    HashesReader,
    hash_of_file,
    known_files,
    live_files,
    parse_sha256,
    parse_sha256_prefix,
)
from pypi_assets.lookup.latest import open_latest
from pypi_assets.questions.question import find_question
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.small_catalog import small_catalog

HASH = "0a" * 32


def test_a_removed_file_is_known_with_its_times(tmp_path: Path):
    small = small_catalog(tmp_path)
    small.add(1, "Demo", "1", "demo-1.zip")
    small.remove(3, "demo-1.zip")
    small.show_again(5, "demo-1.zip")
    sha256 = hashlib.sha256(b"demo-1.zip").hexdigest()

    def known(serial: int) -> object:
        found = known_files(sha256, files_with_sha256(small.catalog, serial, sha256))
        return [(one["filename"], one["live_since"], one["live"]) for one in found]

    assert known(2) == [("demo-1.zip", 1, [(1, None)])]
    assert known(4) == [("demo-1.zip", None, [(1, 3)])]
    assert known(5) == [("demo-1.zip", 5, [(1, 3), (5, None)])]
    assert list(live_files(known_files(sha256, files_with_sha256(small.catalog, 4, sha256)))) == []
    small.catalog.close()


@pytest.mark.parametrize("text", [HASH, HASH.upper(), f" {HASH}\n"])
def test_a_sha256_is_read_in_lower_case(text: str) -> None:
    assert parse_sha256(text) == parse_sha256_prefix(text) == HASH


@pytest.mark.parametrize(
    "wrong", ["", HASH[:-1], HASH + "0", HASH[:-1] + "g", f"{HASH[:31]} {HASH[:32]}", "\u0660" * 64]
)
def test_what_is_not_a_sha256_is_refused(wrong: str) -> None:
    with pytest.raises(LookupNameError, match="64"):
        parse_sha256(wrong)


def test_the_beginning_of_a_sha256_has_one_to_64_digits() -> None:
    assert [parse_sha256_prefix(text) for text in ("A", " 0b ", HASH)] == ["a", "0b", HASH]
    for text in ("", " ", "x", "0x1", HASH + "0"):
        with pytest.raises(LookupNameError, match=re.escape(repr(text))):
            parse_sha256_prefix(text)


def test_the_hash_of_a_file_is_of_its_bytes(tmp_path: Path) -> None:
    for content in (b"", b"content" * 100_000):
        (tmp_path / "file").write_bytes(content)
        assert hash_of_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
    with pytest.raises(FileNotFoundError):
        hash_of_file(tmp_path / "missing")


def test_hashes_and_their_beginnings_lead_to_live_files(publisher: Publisher) -> None:
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
        assert [one["filename"] for one in reader.files()] == by_hash
        for name, sha256 in hashes.items():
            for length in (8, 64):
                assert [one["filename"] for one in reader.files(sha256[:length].upper())] == [name]
        with pytest.raises(LookupNameError):
            reader.file("demo")
        with pytest.raises(LookupNameError):
            reader.files("demo")


def test_times_are_shown_as_text_in_tables_only() -> None:
    found = FoundFile("Demo", "demo", "1", "demo-1.zip", ((1, 3), (5, None)))
    [result] = known_files(HASH, [found])
    assert result["live"] == [(1, 3), (5, None)]
    rows = find_question("hash").rows
    assert rows is not None
    assert next(iter(rows(result)))["live"] == "1 to 3, since 5"
