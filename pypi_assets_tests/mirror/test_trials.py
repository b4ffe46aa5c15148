"""LevelDB versions of a source are opened in a separate process before a reader sees them."""

import io
from array import array
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.leveldbs.datasets.depgraph.edge_file import write_edge_file
from pypi_assets.leveldbs.format.open_leveldb import check_table, flush, open_leveldb
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.mirror import trials
from pypi_assets.mirror.mirror_state import mirror_status
from pypi_assets.mirror.sources import RefusedSourceError
from pypi_assets.mirror.trials import Trials
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.mirror.conftest import Mirrors, Origin, assert_whole
from pypi_assets_tests.mirror.hostile_tables import (
    HOSTILE,
    HUGE,
    footer,
    republished,
    tamper,
    with_huge_block,
    with_huge_index,
)


def leveldb(path: Path) -> Path:
    """Write a LevelDB with a table and return the table's path."""
    with open_leveldb(path, "made", create=True) as db:
        for number in range(1_000):
            db.put(b"%06d" % number, b"x" * 100)
        flush(db)
    return max(path.glob("*.ldb"))


def test_aborting_version_is_detected_and_the_next_one_is_tried(tmp_path: Path) -> None:
    with closing(Trials(open_storage("memory:///"), None, "source")) as tried:
        for number, change in enumerate(HOSTILE):
            table = leveldb(tmp_path / f"bad{number}")
            table.write_bytes(change(table.read_bytes()))
            assert isinstance(tried._tried(table.parent, "bad", 60, "modules"), str)
            assert tried._tried(leveldb(tmp_path / f"good{number}").parent, "good", 60, "modules") is None
        table = leveldb(tmp_path / "damaged")
        table.write_bytes(bytes(100) + table.read_bytes()[100:])
        assert isinstance(tried._tried(table.parent, "damaged", 60, "modules"), str)


def test_edges_that_cannot_be_read_are_a_problem(tmp_path: Path) -> None:
    folder = leveldb(tmp_path / "db").parent
    edges: dict[str, Any] = {
        "names": [b"a", b"b"],
        "release": array("I", [0, 0]),
        "place": array("I"),
        "newest": (array("I", [0, 0, 1]), array("I", [0])),
        "requirements": array("I", [1]),
        "older": (array("I", [0, 0, 0]), array("I")),
        "deleted": (array("I", [0, 0, 0]), array("I")),
        "versions": [b"1"],
        "lists": [b"[]", b'[["*>1"]]'],
        "conditions": bytes([3, 0]),
    }
    hostile: list[dict[str, Any]] = [
        {"release": array("I", [0, 7])},
        {"newest": (array("I", [0, 0, 1]), array("I", [2]))},
        {"newest": (array("I", [0, 9, 1]), array("I", [0]))},
        {"requirements": array("I", [2])},
        {"requirements": array("I", [0])},
        {"names": [b"b", b"a"]},
        {"versions": [b"\xff"]},
        {"lists": [b"[]", b"{}"]},
        {"conditions": b""},
        {"older": (array("I", [0]), array("I"))},
    ]
    with closing(Trials(open_storage("memory:///"), None, "source")) as tried:
        for changes in ({}, *hostile):
            write_edge_file(folder / "00001.edges", base=None, content_hash="", **{**edges, **changes})
            problem = tried._tried(folder, "edges", 60, "depgraph")
            assert (problem is None) == (changes == {}), (changes, problem)
        assert tried._tried(folder, "edges", 60, "modules") is None


def test_slow_trial_is_terminated(tmp_path: Path) -> None:
    good = leveldb(tmp_path / "good").parent
    with closing(Trials(open_storage("memory:///"), None, "source")) as tried:
        assert isinstance(tried._tried(good, "good", 0, "modules"), str)
        assert tried._process is None
        assert tried._tried(good, "good", 60, "modules") is None


def test_version_that_cannot_be_opened_is_not_accepted(
    changing_origin: Origin, mirrors: Mirrors, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    first = mirrors.of(changing_origin.storage.url)
    first.run()
    version = published_versions(first.storage, "modules")[-1]
    changing_origin.publish()
    for change in HOSTILE:
        with subtests.test(change=change.__name__):
            hostile = republished(changing_origin.storage, tmp_path / change.__name__)
            tamper(hostile, "modules", change)
            mirror = mirrors.of(hostile.url)
            with pytest.raises(RefusedSourceError):
                mirror.run()
            assert mirror_status(mirror.storage).state == "refused"
            assert published_versions(mirror.storage, "modules") == [version]
            assert_whole(mirror.storage)
            with open_latest(ModulesReader, mirror.storage) as modules:
                assert [result["project"] for result in modules.module("yaml").results] == ["PyYAML", "yaml-copy"]
    first.run()
    assert published_versions(first.storage, "modules")[-1] > version
    assert mirror_status(first.storage).state == "following"


def test_version_with_an_invalid_footer_is_never_opened(
    origin: Origin, mirrors: Mirrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = republished(origin.storage, tmp_path / "hostile")
    tamper(hostile, "modules", with_huge_index)
    monkeypatch.setattr(trials, "_run", None)
    mirror = mirrors.of(hostile.url)
    mirror.at_once = 1
    with pytest.raises(RefusedSourceError):
        mirror.run()
    assert published_versions(mirror.storage, "modules") == []


def test_footer_must_refer_to_earlier_positions(tmp_path: Path, subtests: pytest.Subtests) -> None:
    table = leveldb(tmp_path / "made").read_bytes()
    check_table(io.BytesIO(table))
    check_table(io.BytesIO(with_huge_block(table)))  # its footer is valid
    end = len(table) - 48
    for number in (HUGE, 2**64 - 6, 2**40, end, end - 4):
        for wrong in (((0, 8), (0, number)), ((0, 8), (number, 8)), ((0, number), (0, 8)), ((number, 0), (0, 8))):
            with subtests.test(wrong=wrong), pytest.raises(ValueError, match=r"footer|lie"):
                check_table(io.BytesIO(table[:-48] + footer(*wrong)))
    for content in (b"", table[:47], table[:-1], table[:-48] + b"\xff" * 40 + table[-8:]):
        with subtests.test(size=len(content)), pytest.raises(ValueError, match=r"footer|bytes|end"):
            check_table(io.BytesIO(content))
