"""Computed updates of file rows: page facts, files to read, vanished files and logged changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.derived.file_history import FileHistory
from pypi_assets.catalog.derived.file_updates import (
    CORRECTED,
    REPLACED,
    ChangeRow,
    FileUpdate,
    NewestPage,
    ParsedNames,
    ProjectInputs,
    ProjectUpdate,
    compute_update,
    fold_inputs,
    logged_changes,
)
from pypi_assets.catalog.derived.project_state import Interval, IntervalChange
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.derived.stored_files import PageFacts, StoredFile, facts_digest
from pypi_assets.catalog.ledger.range_ledger import Seals
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import CatalogProject
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage

PROJECT = CatalogProject(1, "demo", "Demo", 0, None)
NAME = "demo-1.0.tar.gz"
FACTS = PageFacts(url="https://example.org/a", sha256="a" * 64, size=1)
NOTHING_SEALED = Seals(0, ())


def stored(facts: PageFacts = FACTS, outcome: str = ReadOutcome.DATA, version: str = "1.0") -> StoredFile:
    return StoredFile(7, PROJECT.id, NAME, 3, 5, version, outcome, None, 1, facts)


def history(*live: Interval, version: str = "1.0", changes: tuple[IntervalChange, ...] = ()) -> FileHistory:
    return FileHistory(NAME, version, live, (), changes)


def update_of(row: StoredFile | None, shown: PageFacts | None, past: FileHistory | None = None) -> FileUpdate:
    return FileUpdate(NAME, row, shown, 6, past or history(Interval(3, None)), id=7)


@pytest.mark.parametrize(
    ("row", "shown", "has_new_facts", "is_to_be_read"),
    [
        (None, FACTS, False, False),
        (stored(), None, False, False),
        (stored(), FACTS, False, False),
        (stored(), FACTS._replace(yanked_reason="broken"), True, False),
        (stored(), FACTS._replace(sha256="b" * 64), True, True),
        (stored(FACTS._replace(sha256=None)), FACTS, True, False),
        (stored(PageFacts()), FACTS, True, True),
    ],
)
def test_known_file_is_reread_for_first_url_or_new_hash(row, shown, has_new_facts, is_to_be_read):
    update = update_of(row, shown)
    assert (update.has_new_facts, update.is_to_be_read) == (has_new_facts, is_to_be_read)
    assert update.corrected_at == (6 if has_new_facts else None)


def test_file_known_from_events_vanishes_if_a_newer_page_lacks_it():
    added_at_3 = history(Interval(3, 5), changes=(IntervalChange(3, "add file"), IntervalChange(5, "unexplained")))
    unread = stored(PageFacts(), ReadOutcome.PENDING)
    assert [update_of(unread, None, added_at_3).has_vanished(page) for page in (None, 2, 4, 5, 9)] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert update_of(None, None, added_at_3).has_vanished(5)
    assert not update_of(stored(FACTS, ReadOutcome.PENDING), None, added_at_3).has_vanished(5)
    assert not update_of(stored(PageFacts(), ReadOutcome.DATA), None, added_at_3).has_vanished(5)
    assert not update_of(unread, FACTS, added_at_3).has_vanished(5)


def test_file_moved_to_another_release_is_corrected_at_its_last_change():
    moved = history(
        Interval(3, None), version="2.0", changes=(IntervalChange(3, "add file"), IntervalChange(8, "add file"))
    )
    assert update_of(stored(version="1.0"), None, moved).corrected_at == 8


boundaries = st.lists(st.integers(1, 30), unique=True, max_size=6).map(sorted)


def intervals(serials: list[int]) -> tuple[Interval, ...]:
    ends = [*serials[1::2], None] if len(serials) % 2 else serials[1::2]
    return tuple(Interval(start, end) for start, end in zip(serials[::2], ends, strict=True))


@given(old=boundaries, new=boundaries)
def test_only_differing_boundaries_are_logged(old: list[int], new: list[int]):
    causes = tuple(IntervalChange(serial, "add file") for serial in new)
    file = replace(update_of(stored(), None, history(*intervals(new), changes=causes)), old_live=intervals(old))
    project = ProjectUpdate(PROJECT, None, None, [file])  # no name of the project is parsed
    found = list(logged_changes([project], NOTHING_SEALED))
    starts_and_ends = [
        {("start", serial) for serial in serials[::2]} | {("end", serial) for serial in serials[1::2]}
        for serials in (old, new)
    ]
    differing = {serial for _, serial in starts_and_ends[0] ^ starts_and_ends[1]}
    assert found == [
        ChangeRow(7, serial, "add file" if serial in new else CORRECTED, serial) for serial in sorted(differing)
    ]


def test_change_below_a_seal_is_logged_after_it():
    file = update_of(stored(), None, history(Interval(3, None), changes=(IntervalChange(3, "add file"),)))
    project = ProjectUpdate(PROJECT, None, None, [file])
    sealed = Seals(20, (SerialRange(10, 15),))
    assert list(logged_changes([project], sealed)) == [ChangeRow(7, 3, "add file", 21)]


def test_page_older_than_stored_facts_replaces_none():
    event = ChangelogEvent("Demo", "1.0", 0, f"add source file {NAME}", 3)
    file = IndexFile(NAME, "https://example.org/b", "b" * 64, 2, None, None, False, None, False, None)
    for page_serial, shown in ((4, None), (5, PageFacts.of(file)), (6, PageFacts.of(file))):
        page = ProjectPage("Demo", page_serial, "active", (file,))
        inputs = ProjectInputs(
            project=PROJECT,
            names=ParsedNames(PROJECT),
            page=page,
            facts={NAME: facts_digest(file)},
            events_through=9,
            events=[event],
            sightings=[Sighting(4, 4, {NAME: False}, is_page=True)],
            newest=NewestPage(4, ()),
            checkpoint=None,
            files={NAME: stored()},  # facts from the page at serial 5
            live={7: (Interval(3, None),)},
        )
        folded = fold_inputs(inputs)
        assert folded is not None
        [update] = compute_update(inputs, folded).files
        assert (update.shown, update.page_serial) == (shown, max(page_serial, 5))
        assert update.old_live == update.history.live == (Interval(3, None),)


@pytest.mark.parametrize(
    ("row", "shown", "shown_generation", "generation"),
    [
        (None, FACTS, 3, 3),
        (stored(), FACTS, 1, 1),
        (stored(), FACTS._replace(sha256="b" * 64), 1, 2),
        (stored(), FACTS._replace(sha256="b" * 64), 4, 4),
        (stored(FACTS._replace(sha256=None)), FACTS._replace(sha256=None), 2, 2),
        (stored(FACTS._replace(sha256=None)), FACTS, 1, 1),
        (stored(PageFacts()), FACTS, 1, 1),
    ],
)
def test_new_hash_is_the_next_generation(row, shown, shown_generation, generation):
    update = update_of(row, shown)
    update.shown_generation = shown_generation
    assert update.generation == generation
    assert update.is_replaced == (row is not None and row.facts.url is not None and generation > 1)


def test_replacement_is_logged_at_its_page_serial():
    update = update_of(stored(), FACTS._replace(sha256="b" * 64), history(Interval(3, None)))
    update.old_live = (Interval(3, None),)
    project = ProjectUpdate(PROJECT, ParsedNames(PROJECT), 6, [update])
    assert list(logged_changes([project], NOTHING_SEALED)) == [ChangeRow(7, 6, REPLACED, 6)]


def test_page_without_hash_keeps_the_hash_of_read_bytes():
    shown = IndexFile(NAME, "https://example.org/a", None, 1, None, None, False, None, False, None)
    inputs = ProjectInputs(
        PROJECT,
        ParsedNames(PROJECT),
        ProjectPage("demo", 6, "active", (shown,)),
        {NAME: 1},
        6,
        [],
        [],
        NewestPage(5, [NAME]),
        None,
        {NAME: stored()},
    )
    folded = fold_inputs(inputs)
    assert folded is not None
    [file] = compute_update(inputs, folded).files
    assert file.shown is not None
    assert (file.shown.sha256, file.is_to_be_read) == ("a" * 64, False)
