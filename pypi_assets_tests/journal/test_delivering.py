"""Delivery to webhooks: at least once and in order for each project, despite failing receivers and kills."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.publications.journal_deliveries import find_consumer, letters_of, resend_letters
from pypi_assets.catalog.publications.journal_segments import add_takedown
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.index.connections import Network
from pypi_assets.journal import consumers, delivering
from pypi_assets.journal.delivering import Delivered, deliver, letters_of_records
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import Pruned, write_head
from pypi_assets.journal.takedowns import wanted_takedown
from pypi_assets.journal.webhooks import Sender, Webhook
from pypi_assets.storage.store import Storage
from pypi_assets_tests.journal.hook_receiver import SECRET, Receiver, receiving
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.kills import killed_at
from pypi_assets_tests.waiting import until

AT_ONCE = (0.0,) * 5


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


@pytest.fixture
def sender() -> Iterator[Sender]:
    one = Sender(Network(), allows_private=True, timeout_s=60)
    yield one
    one.close()


class Growing:
    """A growing journal: three projects in turn, one record for each serial."""

    def __init__(self, storage: Storage) -> None:
        self.storage, self.through, self._cuts = storage, 0, []
        self.grow(3)

    def grow(self, count: int) -> Journal:
        self.through += count
        records = [simple_record(serial, "add file", f"p{serial % 3}") for serial in range(1, self.through + 1)]
        self.journal = write_streams(self.storage, {JournalStream.INDEX: records}, self.through, cuts=self._cuts)
        self._cuts.append(self.through)
        return self.journal

    def serials(self, project: str, above: int = 3) -> list[int]:
        return [serial for serial in range(above + 1, self.through + 1) if f"p{serial % 3}" == project]


@pytest.fixture
def growing(storage: Storage) -> Growing:
    return Growing(storage)


def hook(receiver: Receiver, name: str = "one", **parts: list[str]) -> Webhook:
    return Webhook(name, receiver.url, RecordFilter.parse(**parts), SECRET)


def rest(catalog: Catalog) -> list[tuple[str, int, bool]]:
    with catalog.read() as connection:
        return [(letter.project, letter.attempts, letter.is_dead) for letter in letters_of(connection)]


def test_records_after_the_first_poll_are_received_in_order(
    catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender
):
    hooks = [hook(receiver)]
    assert deliver(catalog, growing.journal, hooks, sender) == [Delivered("one", 0, 0, 0, 0)]
    growing.grow(20)
    assert deliver(catalog, growing.journal, hooks, sender) == [Delivered("one", 3, 0, 0, 0)]
    for project in ("p0", "p1", "p2"):
        assert receiver.serials(project) == growing.serials(project)
    assert {letter["webhook"] for letter in receiver.letters} == {"one"}
    assert deliver(catalog, growing.journal, hooks, sender) == [Delivered("one", 0, 0, 0, 0)]
    with catalog.read() as connection:
        consumer = find_consumer(connection, "webhook one")
    assert consumer is not None
    assert consumer.serial == growing.through


def test_letters_have_unique_numbers(catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender):
    for _ in range(3):
        deliver(catalog, growing.journal, [hook(receiver)], sender)
        growing.grow(1)
        deliver(catalog, growing.journal, [hook(receiver)], sender)
    assert len(receiver.letters) == 3
    assert len(set(receiver.deliveries)) == 3  # a receiver skips duplicates by this number


def test_records_pruned_before_delivery_are_named(
    catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender
):
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender)
    growing.grow(10)
    growing.grow(10)
    for head in growing.journal.heads():
        write_head(growing.storage, replace(head, pruned=Pruned(2, 13)))
    assert deliver(catalog, growing.journal, hooks, sender) == [Delivered("one", 3, 0, 0, 0, SerialRange(3, 13))]
    assert receiver.serials("p1") == growing.serials("p1", above=13)
    assert deliver(catalog, growing.journal, hooks, sender) == [Delivered("one", 0, 0, 0, 0)]


def test_webhook_receives_only_matching_records(catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender):
    hooks = [hook(receiver, projects=["p1"])]
    deliver(catalog, growing.journal, hooks, sender)
    growing.grow(20)
    deliver(catalog, growing.journal, hooks, sender)
    assert {letter["project"] for letter in receiver.letters} == {"p1"}
    assert receiver.serials("p1") == growing.serials("p1")


def test_failed_letter_blocks_only_its_project(catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender):
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender, pauses_s=(30.0,))
    receiver.status = lambda body: 500 if body["project"] == "p1" else 200
    for _ in range(3):
        growing.grow(5)
        deliver(catalog, growing.journal, hooks, sender, pauses_s=(30.0,))
    assert len(receiver.refused) == 1  # the project's later letters wait
    assert receiver.serials("p0") == growing.serials("p0")
    assert rest(catalog) == [("p1", 1, False), ("p1", 0, False), ("p1", 0, False)]
    receiver.status = lambda _body: 200
    later = time.time() + 60
    object.__setattr__(catalog, "clock", lambda: later)
    deliver(catalog, growing.journal, hooks, Sender(Network(), allows_private=True), pauses_s=(30.0,))
    assert receiver.serials("p1") == growing.serials("p1")


def test_letter_is_dead_after_the_last_retry_and_can_be_sent_again(
    catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender
):
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender)
    growing.grow(3)
    receiver.status = lambda body: 500 if body["project"] == "p1" else 200
    done = [deliver(catalog, growing.journal, hooks, sender, pauses_s=(0.0, 0.0))[0] for _ in range(2)]
    assert sum(one.died for one in done) == 1
    assert rest(catalog) == [("p1", 3, True)]
    growing.grow(3)
    receiver.status = lambda _body: 200
    deliver(catalog, growing.journal, hooks, sender)
    assert receiver.serials("p1") == growing.serials("p1")[1:]  # later letters are delivered
    assert resend_letters(catalog, "webhook other") == 0
    assert resend_letters(catalog, "webhook one") == 1
    deliver(catalog, growing.journal, hooks, sender)
    assert sorted(receiver.serials("p1")) == growing.serials("p1")
    assert rest(catalog) == []


def test_redacted_records_in_waiting_letters_are_not_delivered(
    catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender
):
    open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender)
    growing.grow(3)
    receiver.status = lambda _body: 500
    deliver(catalog, growing.journal, hooks, sender, pauses_s=(0.0,) * 20)
    assert len(rest(catalog)) == 3
    add_takedown(catalog, wanted_takedown("personal data", record="index:5:0"))
    add_takedown(catalog, wanted_takedown("order of a court", "p1", hides_name=True))
    receiver.status = lambda _body: 200
    received = len(receiver.letters)
    deliver(catalog, growing.journal, hooks, sender)
    letters = {letter["changes"][0]["serial"]: letter for letter in receiver.letters[received:]}
    assert {serial: one["project"] for serial, one in letters.items()} == {4: None, 5: "p2", 6: "p0"}
    kinds = {
        serial: (change["kind"], change.get("reason")) for serial, one in letters.items() for change in one["changes"]
    }
    assert kinds == {4: ("taken down", "order of a court"), 5: ("taken down", "personal data"), 6: ("add file", None)}
    assert "p1" not in str(letters[4])


def test_unavailable_receiver_costs_few_attempts_and_loses_nothing(
    catalog: Catalog, storage: Storage, receiver: Receiver, sender: Sender
):
    def written(through: int) -> Journal:
        records = [simple_record(serial, "add file", f"q{serial}") for serial in range(1, through + 1)]
        return write_streams(storage, {JournalStream.INDEX: records}, through)

    hooks = [hook(receiver)]
    deliver(catalog, written(1), hooks, sender)
    receiver.status = lambda _body: 503
    journal = written(40)
    [done] = deliver(catalog, journal, hooks, sender, pauses_s=(30.0,))
    assert (done.received, done.failed, done.waiting) == (0, 5, 39)
    receiver.status = lambda _body: 200
    later = time.time() + 60
    object.__setattr__(catalog, "clock", lambda: later)
    sender_later = Sender(Network(), allows_private=True)
    receiver.refused.clear()
    [done] = deliver(catalog, journal, hooks, sender_later, pauses_s=(30.0,))
    assert (done.received, done.waiting) == (39, 0)


def test_slow_receiver_does_not_block_others(catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender):
    with receiving() as slow:
        hooks = [hook(slow, "slow"), hook(receiver, "quick")]
        deliver(catalog, growing.journal, hooks, sender)
        growing.grow(3)
        slow.may_answer.clear()
        thread = threading.Thread(target=deliver, args=(catalog, growing.journal, hooks, sender))
        thread.start()
        until(lambda: len(receiver.letters) == 3)
        assert slow.letters == []
        slow.may_answer.set()
        thread.join()
        assert slow.serials("p1") == receiver.serials("p1") == growing.serials("p1")


def test_number_of_waiting_letters_is_bounded(
    catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delivering, "MOST_WAITING", 6)
    monkeypatch.setattr(delivering, "_RECORDS_AT_A_TIME", 5)
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender)
    growing.grow(60)
    receiver.status = lambda _body: 500
    for _ in range(3):
        [done] = deliver(catalog, growing.journal, hooks, sender, pauses_s=AT_ONCE * 10)
        assert done.waiting <= 8
    receiver.status = lambda _body: 200
    deliver(catalog, growing.journal, hooks, sender)
    for project in ("p0", "p1", "p2"):
        assert receiver.serials(project) == growing.serials(project)


STEPS = ("store_letters", "delete_letter", "note_failure", "due_letters")


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_kill_at_any_step_repeats_but_loses_nothing(
    catalog: Catalog,
    growing: Growing,
    receiver: Receiver,
    sender: Sender,
    step: str,
    is_done: bool,
):
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender)
    growing.grow(12)
    failures = iter([500, 200, 200, 500])
    receiver.status = lambda _body: next(failures, 200)
    call = 1 if step == "store_letters" else 2
    caller = consumers if step == "store_letters" else delivering
    with killed_at(2 * call - 1 + is_done, (caller, step)) as reached:
        deliver(catalog, growing.journal, hooks, sender, pauses_s=AT_ONCE)
    assert reached
    for _ in range(3):
        deliver(catalog, growing.journal, hooks, sender, pauses_s=AT_ONCE)
    assert rest(catalog) == []
    for project in ("p0", "p1", "p2"):
        received = list(dict.fromkeys(receiver.serials(project)))
        assert received == growing.serials(project)


def test_letters_are_bounded_and_have_one_project_each():
    small = [simple_record(serial, "add file", f"p{serial % 2}") for serial in range(1, 9)]
    large = [simple_record(serial, "file read", "p0", modules=["m" * 1_000] * 150) for serial in range(9, 12)]
    huge = [simple_record(12, "file read", "p0", modules=["m" * 1_000] * 1_000, summary="x" * 2_000)]
    for record in small + large + huge:
        record["stream"] = "index"
    letters = list(letters_of_records([*small, *large, *huge, *small[:1]]))
    assert {letter.project for letter in letters} == {"p0", "p1"}
    assert all(len(letter.content) < delivering.MOST_BODY_BYTES * 1.1 for letter in letters)
    of_p0 = [record for letter in letters if letter.project == "p0" for record in orjson.loads(letter.content)]
    assert [record["serial"] for record in of_p0] == [2, 4, 6, 8, 9, 10, 11, 12]
    assert of_p0[-1]["is_cut"]
    assert "modules" not in of_p0[-1]
    assert of_p0[-2]["modules"] == large[-1]["modules"]
    for one, two in pairwise(letter.cursor for letter in letters if letter.project == "p0"):
        assert one != two


@pytest.mark.nightly
def test_two_concurrent_processes_deliver_each_letter_in_order(
    catalog: Catalog, growing: Growing, receiver: Receiver, sender: Sender
):
    hooks = [hook(receiver)]
    deliver(catalog, growing.journal, hooks, sender)
    is_over = threading.Event()

    def delivered() -> int:
        return sum(len(letter["changes"]) for letter in receiver.letters)

    def run() -> None:
        while not is_over.is_set():
            deliver(catalog, growing.journal, hooks, sender)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 6):
        growing.grow(6)
        until(lambda at_least=6 * number - 5: delivered() >= at_least)
    until(lambda: delivered() >= 30)
    is_over.set()
    for thread in threads:
        thread.join()
    for project in ("p0", "p1", "p2"):
        assert receiver.serials(project) == growing.serials(project)
