"""The file lists each top-level name once with its best candidates. It is complete or missing, never partial."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pypi_assets.export import module_owners as module
from pypi_assets.export.module_owners import export_top_level
from pypi_assets.lookup.import_owners import owners
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.prepared import publish
from pypi_assets_tests.small_catalog import small_catalog

NAMES = ["a", "a0", "a_b", "b", "größe", "tests"]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublishedSnapshot]:
    small = small_catalog(tmp_path_factory.mktemp("catalog"))
    small.add(1, "a", "1.0", "a-1.0.zip", modules=("a", "a.b", "a.b.c", "tests", "tests.x"))
    small.add(2, "A.B", "1.0", "a.b-1.0.zip", modules=("a_b", "a0", "tests"), requires_dist=("a",))
    small.add(3, "c", "1.0", "c-1.0.zip", modules=("a", "b.c", "b", "größe", "größe.a"))
    small.complete(100)
    storage = open_storage(tmp_path_factory.mktemp("storage").as_uri())
    publish(small.catalog, storage, "modules", "depgraph")
    opened = PublishedSets(storage).open_newest()
    assert opened is not None
    yield PublishedSnapshot(opened.reader, opened.opened)
    small.catalog.close()


def test_each_top_level_name_has_its_candidates(
    snapshot: PublishedSnapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_NAMES", 2)
    reported: list[int] = []
    written = export_top_level(snapshot, tmp_path / "owners.jsonl", progress=reported.append)
    header, *lines = map(orjson.loads, (tmp_path / "owners.jsonl").read_bytes().splitlines())
    assert header == {"format": 1, "serial": 100, "most": 3}
    assert written == (100, len(NAMES), (tmp_path / "owners.jsonl").stat().st_size)
    assert [line[0] for line in lines] == NAMES
    assert reported == [2, 4, 6, 6]
    for (name, count, junk, best), found in zip(lines, owners(snapshot, NAMES), strict=True):
        candidates = found["candidates"]
        assert (found["module"], count, junk) == (name, len(candidates), int(name == "tests"))
        assert best == [
            [candidate["project"], candidate["score"], candidate["reasons"]["dependents"]] for candidate in candidates
        ]


def test_compression_is_deterministic_and_candidates_are_limited(snapshot: PublishedSnapshot, tmp_path: Path) -> None:
    for name in ("one.gz", "two.gz"):
        export_top_level(snapshot, tmp_path / name, 1)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    lines = gzip.decompress((tmp_path / "one.gz").read_bytes()).splitlines()
    assert [len(orjson.loads(line)[3]) for line in lines[1:]] == [1] * len(NAMES)


def test_failure_keeps_the_previous_file(snapshot: PublishedSnapshot, tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "owners.jsonl").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        export_top_level(snapshot, tmp_path / "owners.jsonl", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["owners.jsonl"]
    assert (tmp_path / "owners.jsonl").read_text() == "before"
