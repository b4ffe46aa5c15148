"""Redacted text is in no file of the journal, and the chain verifies, even after kills."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import orjson
import pytest
from jsonschema import Draft202012Validator

from pypi_assets.catalog.publications.journal_segments import Takedown, add_takedown, all_takedowns, lift_takedown
from pypi_assets.catalog.reports.journal_format import TAKEN_DOWN, JournalStream, Record
from pypi_assets.journal import publishing
from pypi_assets.journal.comparing import compare_stream
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.publishing import begin_generation, complete_takedowns, write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import read_head
from pypi_assets.journal.takedowns import TakedownError, Taking, wanted_takedown
from pypi_assets.journal.unused_segments import clean_journal
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.journal.written import plain_files, records_of, simple_record, write_streams
from pypi_assets_tests.kills import killed_at
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LATER = 4e9
SCHEMA = Draft202012Validator(orjson.loads((files("pypi_assets.journal") / "record.schema.json").read_bytes()))


@pytest.fixture
def small(tmp_path: Path, storage: Storage) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    for serial in (10, 20):
        small.add(serial, "secret", f"{serial}.0", f"secret-{serial}.0.tar.gz")
        small.add(serial, "other", f"{serial}.0", f"other-{serial}.0.tar.gz")
        small.complete(serial)
    list(write_missing(small.catalog, storage))
    yield small
    small.catalog.close()


def records(storage: Storage) -> list[Record]:
    return records_of(Journal(storage))


def with_secrets(storage: Storage, text: bytes = b"secret") -> list[str]:
    """Return the journal files that contain the text."""
    return [path for path, content in plain_files(storage).items() if text in content]


def require_sound(storage: Storage) -> None:
    for stream in JournalStream:
        state = verify_stream(storage, stream)
        assert state.is_sound, state.fault


def take(small: SmallCatalog, storage: Storage, wanted: Takedown) -> int:
    add_takedown(small.catalog, wanted)
    return complete_takedowns(small.catalog, storage)


def test_redacted_project_is_in_no_file_and_the_chain_verifies(small: SmallCatalog, storage: Storage) -> None:
    before = records(storage)
    heads = {stream: read_head(storage, stream) for stream in JournalStream}
    assert with_secrets(storage)
    reader = Journal(storage).lines(Cursor.after_serial(0), Journal(storage).heads())
    count = take(small, storage, wanted_takedown("a court", "Secret", hides_name=True))
    assert with_secrets(storage) == []
    require_sound(storage)
    after = records(storage)
    assert [Cursor.of(one) for one in after] == [Cursor.of(one) for one in before]
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(differing) == count == sum(one["normalized"] == "secret" for one in before)
    for old, new in differing:
        assert (old["normalized"], new["kind"], new["project"], new["reason"]) == (
            "secret",
            TAKEN_DOWN,
            None,
            "a court",
        )
        SCHEMA.validate(new)
    for stream, head in heads.items():  # hashes of the chain that are stored elsewhere stay valid
        now = read_head(storage, stream)
        assert head is not None
        assert now is not None
        assert (now.number, now.digest) == (head.number, head.digest)
    assert len(list(reader)) == len(before)  # a running reader continues with the new files
    assert complete_takedowns(small.catalog, storage) == 0


def test_redaction_applies_to_later_records_and_is_announced(small: SmallCatalog, storage: Storage) -> None:
    small.add(30, "secret", "30.0", "secret-30.0.tar.gz")
    small.complete(30)
    assert take(small, storage, wanted_takedown("a court", "secret", hides_name=True)) > 0
    list(write_missing(small.catalog, storage))
    begin_generation(small.catalog, storage, JournalStream.OBSERVED)
    list(write_missing(small.catalog, storage))
    assert with_secrets(storage) == []
    require_sound(storage)
    small.complete(40)
    list(write_missing(small.catalog, storage))
    [announced] = [record for record in records(storage) if record["kind"] == "records taken down"]
    assert announced["of_serial"] == 10
    SCHEMA.validate(announced)
    [row] = all_takedowns_of(small)
    assert lift_takedown(small.catalog, row.id)
    assert not lift_takedown(small.catalog, row.id)
    small.add(50, "secret", "50.0", "secret-50.0.tar.gz")
    small.complete(50)
    list(write_missing(small.catalog, storage))
    assert with_secrets(storage)


def all_takedowns_of(small: SmallCatalog) -> list[Takedown]:
    with small.catalog.read() as connection:
        return all_takedowns(connection)


def test_release_file_or_record_can_be_redacted(small: SmallCatalog, storage: Storage) -> None:
    assert take(small, storage, wanted_takedown("x", "secret", version="10")) > 0
    assert take(small, storage, wanted_takedown("x", "other", filename="other-20.0.tar.gz")) > 0
    assert with_secrets(storage, b"secret-10.0") == with_secrets(storage, b"other-20.0") == []
    assert with_secrets(storage, b"secret-20.0")
    assert with_secrets(storage, b"other-10.0")
    left = next(record for record in records(storage) if record.get("filename") == "secret-20.0.tar.gz")
    place = f"{left['stream']}:{left['serial']}:{left['ordinal']}"
    assert take(small, storage, wanted_takedown("x", record=place)) == 1
    shown = next(record for record in records(storage) if Cursor.of(record) == Cursor.of(left))
    assert (shown["kind"], shown["project"]) == (TAKEN_DOWN, "secret")
    assert take(small, storage, wanted_takedown("y", "secret", hides_name=True)) > 0
    assert with_secrets(storage) == []
    require_sound(storage)
    assert clean_journal(small.catalog, storage, LATER) == []
    head = read_head(storage, "observed")
    assert head is not None
    assert head.takedowns is not None
    assert head.takedowns.number == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"project": "a", "record": "index:1:0"},
        {"record": "index:1"},
        {"record": "other:1:0"},
        {"record": "index:1:0", "version": "1"},
    ],
)
def test_redaction_without_a_match_is_rejected(arguments: dict[str, str]) -> None:
    with pytest.raises(TakedownError):
        wanted_takedown("x", **arguments)
    with pytest.raises(TakedownError):
        wanted_takedown(" ", "a")


def test_names_from_a_redacted_file_or_release_are_in_no_comparison(tmp_path: Path) -> None:
    cases = (("demo-10.0", {"filename": "demo-10.0.tar.gz"}), ("demo-10.0", {"version": "10"}))
    for number, (stem, named) in enumerate((*cases, ("demo-9", {"filename": "demo-9.tar.gz"}))):
        storage, folder = open_storage("memory:///"), tmp_path / str(number)
        folder.mkdir()
        small = small_catalog(folder)
        for serial, name, module in ((5, "demo-5.0", "early"), (10, stem, "hidden"), (20, "demo-20.0", "shown")):
            small.add(serial, "demo", f"{serial}.0", f"{name}.tar.gz", modules=(module,))
            small.complete(serial)
        list(write_missing(small.catalog, storage))
        kinds = [one["kind"] for one in records(storage) if "hidden" in orjson.dumps(one).decode()]
        assert kinds == ["file read", "release compared", "new provider", "release compared"]
        take(small, storage, wanted_takedown("x", "demo", **named))
        assert with_secrets(storage, b"hidden") == []
        assert all(with_secrets(storage, module) for module in (b"early", b"shown"))
        require_sound(storage)
        small.catalog.close()


def test_next_writer_completes_a_redaction_killed_at_any_write(small: SmallCatalog, storage: Storage) -> None:
    add_takedown(small.catalog, wanted_takedown("x", "secret", hides_name=True))
    step = 0
    while with_secrets(storage):
        step += 1
        with killed_at(step, (Storage, "put"), (Storage, "delete"), moments=["before"]) as reached:
            complete_takedowns(small.catalog, storage)
        if reached:
            require_sound(storage)
            step += step % 2  # otherwise this one starts where the last one was stopped
    assert step > 5
    require_sound(storage)
    list(write_missing(small.catalog, storage))
    assert [takedown.done_at is not None for takedown in all_takedowns_of(small)] == [True]
    small.complete(30)
    list(write_missing(small.catalog, storage))
    assert [record["of_serial"] for record in records(storage) if record["kind"] == "records taken down"] == [10]
    require_sound(storage)


def test_segment_without_head_after_a_kill_is_not_lost(small: SmallCatalog, storage: Storage) -> None:
    small.add(30, "secret", "30.0", "secret-30.0.tar.gz")
    small.complete(30)
    with killed_at(1, (publishing, "write_head")) as reached:
        list(write_missing(small.catalog, storage))
    assert reached
    assert take(small, storage, wanted_takedown("x", "secret", hides_name=True)) > 0
    list(write_missing(small.catalog, storage))
    require_sound(storage)
    assert with_secrets(storage) == []


def test_segment_started_before_a_redaction_is_written_again(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.add(30, "secret", "30.0", "secret-30.0.tar.gz")
    small.complete(30)
    original = publishing.record_segment

    def late(*arguments: object) -> object:
        monkeypatch.setattr(publishing, "record_segment", original)
        take(small, storage, wanted_takedown("x", "secret", hides_name=True))
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(publishing, "record_segment", late)
    list(write_missing(small.catalog, storage))
    clean_journal(small.catalog, storage, LATER)
    assert with_secrets(storage) == []
    require_sound(storage)


def test_changed_takedown_file_is_detected(small: SmallCatalog, storage: Storage) -> None:
    take(small, storage, wanted_takedown("x", "secret"))
    path = "journal/observed/0001/takedowns/00000001.json"
    storage.put(path, storage.get(path).replace(b'"at":1', b'"at":2'))
    state = verify_stream(storage, JournalStream.OBSERVED)
    assert state.fault is not None
    assert path in state.fault.problem


def test_operator_without_the_redaction_has_otherwise_equal_records(
    small: SmallCatalog, storage: Storage, tmp_path: Path
) -> None:
    some = [simple_record(serial, "unknown", name) for serial in (1, 2, 3) for name in ("secret", "other")]
    taken = Taking([replace(wanted_takedown("x", "secret"), added_at=1.0)])
    ours = write_streams(open_storage("memory:///"), {JournalStream.INDEX: some}, 3)
    theirs = write_streams(open_storage("memory:///"), {JournalStream.INDEX: [taken.record(one) for one in some]}, 3)
    for one, other in ((ours, theirs), (theirs, ours)):
        comparison = compare_stream(one, other, JournalStream.INDEX)
        assert (comparison.equal, comparison.differing, comparison.first) == (3, 0, None)


def test_visits_that_name_a_redacted_file_are_replaced() -> None:
    """Other visits of the project stay, and files of a release are found by their names."""
    shown = [["secret-1.0.tar.gz", "00", False], ["secret-1.0-py3-none-any.whl", "01", False]]
    common = {"base": None, "gone": [], "statuses": [], "snapshot": "0"}
    visits = [
        simple_record(1, "visit full", "secret", changed=shown, **common),
        simple_record(2, "visit full", "secret", changed=[["secret-2.0.tar.gz", "02", False]], **common),
        simple_record(3, "visit full", "secret", **(common | {"gone": ["secret-1.0.tar.gz"]}), changed=[]),
        simple_record(4, "visit full", "secret", changed=[], **common),
        simple_record(5, "visit full", "other", changed=shown, **common),
    ]
    for number, record in enumerate(visits):
        record |= {"stream": "visits", "ordinal": number}
    for wanted, taken in (
        (wanted_takedown("a court", "secret", filename="secret-1.0.tar.gz"), {1, 3}),
        (wanted_takedown("a court", "secret", "1"), {1, 3}),
        (wanted_takedown("a court", "secret", "2.0"), {2}),
        (wanted_takedown("a court", "secret"), {1, 2, 3, 4}),
        (wanted_takedown("a court", record="visits:4:3"), {4}),
    ):
        replaced = {new["serial"] for new in Taking([wanted]).records(visits) if new["kind"] == TAKEN_DOWN}
        assert replaced == taken, wanted
