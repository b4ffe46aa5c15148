"""Delivers the journal to webhooks: each change at least once, and the changes of one project in order.

First, new deliveries are stored, in the same transaction that moves the webhook's consumer. Then the oldest delivery of
each project is posted, and deleted once it was received. A failed delivery is retried after growing pauses, and all
later deliveries of its project wait for it. After the last pause it becomes a dead letter, and the later ones continue.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import orjson

from pypi_assets.catalog.coordination.clock_steps import ClockSteps
from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.journal_deliveries import (
    Letter,
    NewLetter,
    count_letters,
    delete_letter,
    due_letters,
    note_failure,
)
from pypi_assets.catalog.publications.journal_segments import all_takedowns
from pypi_assets.catalog.reports.journal_format import Record
from pypi_assets.journal.consumers import JournalConsumer
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.tailing import Scan, beginning
from pypi_assets.journal.takedowns import Taking
from pypi_assets.journal.webhooks import Sender, Webhook

PAUSES_S = (5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 28_800.0)
"""The pauses before each further attempt, a day and a half in total. A random tenth at most is added to each."""
MOST_BODY_BYTES = 256 * 1024
MOST_WAITING = 10_000
"""The most stored deliveries of a webhook. Once these wait, no more are stored, and the journal is read later."""
_RECORDS_AT_A_TIME = 1_000
_LETTERS_AT_A_TIME = 100
_FAILURES_IN_A_ROW = 5
"""After this many failures in a row, the receiver counts as down, and its other deliveries wait for the next round."""
_LEASE_TTL_S = 60.0
_SEEN_EVERY_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of one round for a webhook: the deliveries that were received, failed, died, and are still waiting.

    `missed` are the serials that were pruned from the journal before their deliveries were stored.
    """

    webhook: str
    received: int
    failed: int
    died: int
    waiting: int
    missed: SerialRange | None = None


def deliver(
    catalog: Catalog,
    journal: Journal,
    webhooks: Sequence[Webhook],
    sender: Sender,
    *,
    pauses_s: Sequence[float] = PAUSES_S,
) -> list[Delivered]:
    """Run one round: store new deliveries for each webhook, and post those that are due.

    Each webhook has its own thread, so a slow receiver does not delay the others. A webhook that another process serves
    is skipped. A new webhook receives only changes that are published after its first round. Raises NoJournalError.
    """
    if not webhooks:
        return []
    ClockSteps().follow(catalog)

    def serve(webhook: Webhook) -> Delivered | None:
        return deliver_to(catalog, journal, webhook, sender, pauses_s=pauses_s)

    with ThreadPoolExecutor(len(webhooks), "webhooks") as threads:
        return [delivered for delivered in threads.map(serve, webhooks) if delivered is not None]


def deliver_to(
    catalog: Catalog, journal: Journal, webhook: Webhook, sender: Sender, *, pauses_s: Sequence[float] = PAUSES_S
) -> Delivered | None:
    """Run the round of one webhook. Returns None if another process serves it. Raises NoJournalError."""
    if not _has_work(catalog, journal, webhook):
        with catalog.read() as connection:
            return Delivered(webhook.name, 0, 0, 0, count_letters(connection, webhook.consumer))
    try:
        with lease(catalog, webhook.consumer, _LEASE_TTL_S) as held:
            return _DeliveryRound(catalog, journal, webhook, sender, renewing(held), pauses_s).run()
    except LeaseTakenError:
        return None


def _has_work(catalog: Catalog, journal: Journal, webhook: Webhook) -> bool:
    """Check whether there is something to store or post, or whether the consumer's last activity is to be recorded."""
    now, reader = catalog.clock(), _reader(catalog, journal, webhook)
    with catalog.read() as connection:
        is_due = bool(due_letters(connection, webhook.consumer, now, 1))
    return is_due or reader.cursor is None or reader.seen_at < now - _SEEN_EVERY_S or reader.has_more()


def _reader(catalog: Catalog, journal: Journal, webhook: Webhook) -> JournalConsumer:
    return JournalConsumer(catalog, journal, webhook.consumer, webhook.wanted).find()


class _DeliveryRound:
    def __init__(
        self,
        catalog: Catalog,
        journal: Journal,
        webhook: Webhook,
        sender: Sender,
        renew: Callable[[int], None],
        pauses_s: Sequence[float],
    ) -> None:
        self._catalog, self._journal, self._webhook, self._sender = catalog, journal, webhook, sender
        self._renew, self._pauses_s = renew, pauses_s
        self._received = self._failed = self._died = self._in_a_row = 0
        self._missed: SerialRange | None = None

    def run(self) -> Delivered:
        is_more = True
        while is_more:
            before = self._received
            is_more = self._store()
            self._post_due()
            is_more = is_more and self._received > before
        with self._catalog.read() as connection:
            waiting = count_letters(connection, self._webhook.consumer)
        return Delivered(self._webhook.name, self._received, self._failed, self._died, waiting, self._missed)

    def _store(self) -> bool:
        """Store deliveries unless too many wait. Returns whether there can be more to store once these are posted."""
        reader = _reader(self._catalog, self._journal, self._webhook)
        with self._catalog.read() as connection:
            room = MOST_WAITING - count_letters(connection, reader.name)
        if reader.cursor is None:
            reader.move(Cursor.after_serial(min(head.through for head in self._journal.heads())))
            return False
        if room <= 0:
            return True
        at, begins = reader.cursor, beginning(self._journal)
        if at.whole_serial < begins.serial:
            self._missed, at = SerialRange(at.whole_serial, begins.serial), begins
        scan = Scan(self._journal, at, self._webhook.wanted)
        records: list[Record] = []
        for number, (place, line) in enumerate(scan):
            if number % _RECORDS_AT_A_TIME == 0:
                self._renew(0)
            if line is None:
                continue
            records.append(orjson.loads(line))
            if len(records) == _RECORDS_AT_A_TIME:
                letters = list(letters_of_records(records))
                if not reader.move(Cursor(*place), letters):
                    return False
                room -= len(letters)
                records.clear()
                if room <= 0:
                    return True
        reader.move(scan.end, list(letters_of_records(records)))
        return False

    def _post_due(self) -> None:
        while self._in_a_row < _FAILURES_IN_A_ROW:
            with self._catalog.read() as connection:
                due = due_letters(connection, self._webhook.consumer, self._catalog.clock(), _LETTERS_AT_A_TIME)
                taking = Taking(all_takedowns(connection))
            for letter in due:
                self._renew(0)
                self._post(_without(letter, taking))
                if self._in_a_row >= _FAILURES_IN_A_ROW:
                    return
            if not due:
                return

    def _post(self, letter: Letter) -> None:
        body = body_of(self._webhook, letter)
        failure = self._sender.post(self._webhook, body, f"{letter.id}", self._catalog.clock())
        if failure is None:
            delete_letter(self._catalog, letter.id)
            self._received, self._in_a_row = self._received + 1, 0
            return
        is_dead = letter.attempts >= len(self._pauses_s)
        pause = 0.0 if is_dead else self._pauses_s[letter.attempts] * random.uniform(1, 1.1)
        due_at = self._catalog.clock() + max(pause, failure.retry_after_s)
        note_failure(self._catalog, letter, due_at, failure.text, is_dead=is_dead)
        self._failed, self._died = self._failed + 1, self._died + is_dead
        self._in_a_row += 1


def body_of(webhook: Webhook, letter: Letter) -> bytes:
    """Return the body to post. It is the same for each attempt, except for records that were taken down in between."""
    head = orjson.dumps({"webhook": webhook.name, "project": letter.project or None, "cursor": letter.cursor})
    return head[:-1] + b',"changes":' + letter.content + b"}"


def _without(letter: Letter, taking: Taking) -> Letter:
    """Return the delivery without records that were taken down after it was stored."""
    if not taking.takedowns:
        return letter
    records = list(taking.records(orjson.loads(letter.content)))
    project = letter.project if any(record["normalized"] for record in records) else ""
    return replace(letter, project=project, content=orjson.dumps(records))


def letters_of_records(records: Sequence[Record]) -> Iterator[NewLetter]:
    """Yield deliveries of at most MOST_BODY_BYTES, each for one project, in the order of their first records.

    A larger record is delivered without its lists and long texts, and with `is_cut` set. The journal has the whole
    record.
    """
    of_projects: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        of_projects[record["normalized"] or ""].append(record)
    for project, of_project in of_projects.items():
        lines: list[bytes] = []
        size, last = 0, of_project[0]
        for record in of_project:
            line = _bounded(record)
            if lines and size + len(line) > MOST_BODY_BYTES:
                yield _letter(project, last, lines)
                lines, size = [], 0
            lines.append(line)
            size, last = size + len(line) + 1, record
        yield _letter(project, last, lines)


def _letter(project: str, last: Record, lines: Sequence[bytes]) -> NewLetter:
    return NewLetter(project, str(Cursor.of(last)), b"[" + b",".join(lines) + b"]")


def _bounded(record: Record) -> bytes:
    line = orjson.dumps(record)
    if len(line) <= MOST_BODY_BYTES:
        return line
    kept = {
        name: value
        for name, value in record.items()
        if value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 1_000)
    }
    return orjson.dumps({**kept, "is_cut": True})
