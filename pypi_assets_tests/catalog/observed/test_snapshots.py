"""Snapshots: each set of files is stored once, and reads back as the page showed it."""

import hashlib
import json
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, func, select, update

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.observed.snapshots import (
    LONGEST_CHAIN,
    read_snapshots,
    snapshot_content,
    store_snapshots,
    summarize_snapshots,
    walk_snapshots,
)
from pypi_assets.catalog.tables import snapshots
from pypi_assets.index.models import IndexFile
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming

pages = st.dictionaries(
    st.text(min_size=1, max_size=5), st.tuples(st.sampled_from(["a" * 64, "b" * 64, None]), st.booleans()), max_size=4
)


def files(page: dict[str, tuple[str | None, bool]]) -> list[IndexFile]:
    return [
        IndexFile(name, f"https://example.org/{number}", sha256, number, None, None, yanked, None, False, None)
        for number, (name, (sha256, yanked)) in enumerate(page.items())
    ]


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shown=st.lists(pages, max_size=6), data=st.data())
def test_pages_with_equal_files_share_a_snapshot_in_any_order(catalog: Catalog, shown, data):
    contents = [snapshot_content(data.draw(st.permutations(files(page)))) for page in shown]
    with catalog.write() as connection:
        ids = store_snapshots(connection, contents)
        assert store_snapshots(connection, reversed(contents)) == ids
        found = dict(read_snapshots(connection, set(ids.values())))
        digests = connection.scalars(select(snapshots.c.sha256)).all()
        assert len(digests) == connection.scalar(select(func.count(snapshots.c.sha256.distinct())))
    assert len(ids) == len({tuple(sorted(page.items())) for page in shown})
    for page, content in zip(shown, contents, strict=True):
        listed = [[name, sha256, yanked] for name, (sha256, yanked) in sorted(page.items())]
        assert found[ids[content]].files == listed


def shown_after(number: int, count: int = 300) -> list[IndexFile]:
    """Return the page content of a project after `number` more releases. Some older files are missing."""
    return files(
        {
            f"demo-{release}.0.tar.gz": (hashlib.sha256(f"{release}".encode()).hexdigest(), release % 50 == number % 50)
            for release in range(count + number)
            if release % 7 or release >= count + number - 20
        }
    )


def history_of(connection: Connection, pages: int) -> list[tuple[int, bytes]]:
    """Store `pages` successive pages of one project, and return the id and content of each."""
    stored: list[tuple[int, bytes]] = []
    for number in range(pages):
        content = snapshot_content(shown_after(number))
        after = {content: stored[-1][0]} if stored else None
        stored.append((store_snapshots(connection, [content], after)[content], content))
    return stored


def test_small_changes_are_stored_as_short_chains_of_differences(catalog: Catalog):
    with catalog.write() as connection:
        stored = history_of(connection, 70)
        found = dict(read_snapshots(connection, [snapshot_id for snapshot_id, _ in stored]))
        rows = {row.id: row for row in connection.execute(select(snapshots))}
    for snapshot_id, content in stored:
        assert json.dumps(found[snapshot_id].files, separators=(",", ":")).encode() == content
        assert found[snapshot_id].sha256 == hashlib.sha256(content).hexdigest()
        length, row = 0, rows[snapshot_id]
        while row.base_id is not None:
            length, row = length + 1, rows[row.base_id]
        assert length <= 7 < LONGEST_CHAIN  # 70 has seven binary digits
        assert rows[snapshot_id].files == len(found[snapshot_id].entries)
    assert [row.base_id is None for row in rows.values()].count(True) == 1
    size = sum(len(row.content) for row in rows.values())
    assert size < 70 * len(zlib.compress(stored[0][1])) / 12


def test_chain_ends_when_the_page_is_mostly_new(catalog: Catalog):
    with catalog.write() as connection:
        before, _ = history_of(connection, 3)[-1]
        content = snapshot_content(files({"other-1.0.zip": ("a" * 64, False)}))
        [other] = store_snapshots(connection, [content], {content: before}).values()
        row = connection.execute(select(snapshots).where(snapshots.c.id == other)).one()
    assert (row.base_id, row.number, zlib.decompress(row.content)) == (None, 0, content)


def test_summaries_have_hash_and_file_count(catalog: Catalog):
    with catalog.write() as connection:
        stored = history_of(connection, 3)
        summaries = summarize_snapshots(connection, [id_ for id_, _ in stored])
    assert [(summaries[id_].sha256, summaries[id_].files) for id_, _ in stored] == [
        (hashlib.sha256(content).hexdigest(), len(json.loads(content))) for _, content in stored
    ]


def test_corrupt_base_is_detected_by_all_dependents(catalog: Catalog):
    with catalog.write() as connection:
        stored = history_of(connection, 4)
        damaged = zlib.compress(snapshot_content(shown_after(0)[:60] + shown_after(0)[61:]))
        connection.execute(update(snapshots).where(snapshots.c.id == stored[0][0]).values(content=damaged))
        for snapshot_id, _ in stored:
            with pytest.raises(CatalogError, match=naming(snapshot_id)):
                list(read_snapshots(connection, [snapshot_id]))


def test_walk_in_any_order_equals_reading_each_snapshot(catalog: Catalog):
    with catalog.write() as connection:
        ids = [snapshot_id for snapshot_id, _ in history_of(connection, 40)]
        other = snapshot_content(files({"other-1.0.zip": ("a" * 64, True)}))
        ids += store_snapshots(connection, [other], {other: ids[-1]}).values()  # begins a new chain
        shown = {
            snapshot_id: {name: yanked for name, (_, yanked) in snapshot.entries.items()}
            for snapshot_id, snapshot in read_snapshots(connection, ids)
        }
        mixed = sorted(ids, key=lambda id_: hashlib.sha256(str(id_).encode()).digest())
        for order in (ids, ids[::-1], mixed, ids[:5] * 2):
            walk = walk_snapshots(connection, {1: order})[1]
            assert [dict(walk.shown(id_)) for id_ in order] == [shown[id_] for id_ in order]


def test_ordered_walk_applies_each_difference_once_and_holds_one_page(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    with catalog.write() as connection:
        ids = [snapshot_id for snapshot_id, _ in history_of(connection, 64)]
        walk = walk_snapshots(connection, {1: ids})[1]
    decoded: list[bytes] = []
    decompress = zlib.decompress
    monkeypatch.setattr(zlib, "decompress", lambda content: decoded.append(content) or decompress(content))
    assert len({id(walk.shown(id_)) for id_ in ids}) == 1
    assert len(decoded) == len(ids)


@pytest.mark.parametrize("number", [0, 3], ids=["full value", "newest"])
def test_walk_detects_corrupt_full_value_and_corrupt_newest_snapshot(catalog: Catalog, number: int):
    with catalog.write() as connection:
        ids = [snapshot_id for snapshot_id, _ in history_of(connection, 4)]
        damaged = zlib.compress(b"[]" if number == 0 else b"[[],[]]")
        connection.execute(update(snapshots).where(snapshots.c.id == ids[number]).values(content=damaged))
        walk = walk_snapshots(connection, {1: ids})[1]
        with pytest.raises(CatalogError, match=naming(ids[number])):
            list(map(walk.shown, ids))


@pytest.mark.parametrize("name", ["\x7f", "é.zip", "\ud800", '"\\', "\0\n"])
def test_snapshot_name_is_the_hash_of_escaped_json(name: str):
    content = snapshot_content(files({name: (None, True), "a": ("a" * 64, False)}))
    listed = sorted([[name, None, True], ["a", "a" * 64, False]], key=lambda entry: entry[0])
    assert content == json.dumps(listed, separators=(",", ":")).encode()
