"""The RSS feeds: PyPI's form, conditional requests, and readers that miss no item however rarely they poll."""

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.journal.cursors import Cursor
from pypi_assets.service import feeds
from pypi_assets_tests.journal.written import simple_record, write_journal, write_streams
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import BEGAN, Client, Published

UPDATES, PACKAGES = "/rss/updates.xml", "/rss/packages.xml"
ATOM = "{http://www.w3.org/2005/Atom}"


@dataclass(frozen=True)
class Feed:
    """A parsed feed: the fields of its items, the newest first, and its links."""

    items: list[dict[str, str]]
    links: dict[str, str]

    @property
    def titles(self) -> list[str]:
        return [item["title"] for item in self.items]


def read(client: Client, address: str) -> Feed:
    answer = client.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/rss+xml; charset=utf-8")
    return parsed(answer.content, client)


def parsed(body: bytes, client: Client) -> Feed:
    root = ET.fromstring(body)
    assert (root.tag, root.attrib) == ("rss", {"version": "2.0"})
    [channel] = root
    assert all(channel.findtext(name) for name in ("title", "link", "description", "language"))
    links = {link.attrib["rel"]: link.attrib["href"].removeprefix(client.url) for link in channel.iter(f"{ATOM}link")}
    assert links.keys() == {"self", "next"}
    return Feed([{part.tag: part.text or "" for part in item} for item in channel.iter("item")], links)


@dataclass
class SlowReader:
    """Stores the link `next`, and follows it at each poll until an answer has no item."""

    client: Client
    address: str

    def poll(self) -> list[str]:
        """Return the serials of the new items, in the order of the index."""
        serials: list[str] = []
        while (feed := read(self.client, self.address)).items:
            serials += [item["guid"] for item in reversed(feed.items)]
            self.address = feed.links["next"]
        self.address = feed.links["next"]
        return serials


def test_updates_have_the_form_of_the_index(journaled_client: Client):
    feed = read(journaled_client, UPDATES)
    assert feed.titles == [
        "demo 2.1",
        "gone 1.0",
        "demo 2.0",
        "Other.App 0.1",
        "demo 1.0",
        "yaml-copy 1.0",
        "PyYAML 6.0",
    ]
    first = feed.items[-1]
    assert first["link"] == f"{journaled_client.url}release/pyyaml/6.0/"
    assert parsedate_to_datetime(first["pubDate"]) == BEGAN
    assert journaled_client.get("/release/pyyaml/6.0/").status_code == 200
    assert feed.links["self"] == "rss/updates.xml"


def test_packages_have_the_form_of_the_index(journaled_client: Client):
    feed = read(journaled_client, PACKAGES)
    assert [re.sub(" added to .*", "", title) for title in feed.titles] == [
        "gone",
        "Other.App",
        "demo",
        "yaml-copy",
        "PyYAML",
    ]
    assert feed.items[1]["link"] == f"{journaled_client.url}project/other-app/"


def test_known_feed_is_not_sent_again(journaled_client: Client, journaled: Published):
    for path in (UPDATES, PACKAGES):
        answer = journaled_client.get(path)
        assert answer.headers["x-pypi-last-serial"] == str(journaled.index.serial)
        again = journaled_client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        since = read(journaled_client, path).links["next"]
        assert read(journaled_client, since) == Feed([], {"self": since, "next": since})
        head = journaled_client.request("HEAD", path)
        assert (head.status_code, head.headers["etag"]) == (200, answer.headers["etag"])


def test_feed_with_a_new_item_is_sent_although_no_time_is_later(changing: Published):
    write_journal(changing)
    with changing.client() as client:
        before = client.get(UPDATES)
    changing.index.wheel("late", "1.0", at=BEGAN)  # the clock of the index went back
    changing.publish()
    write_journal(changing)
    with changing.client() as client:
        since = before.headers.get("last-modified", before.headers["date"])
        answer = client.get(UPDATES, headers={"If-Modified-Since": since})
        assert answer.status_code == 200
        assert parsed(answer.content, client).titles[0] == "late 1.0"


@pytest.mark.nightly
def test_slow_reader_misses_no_release(changing: Published, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feeds, "MOST_ITEMS", 3)
    write_journal(changing)
    with changing.client() as client:
        newest = read(client, UPDATES)
        assert newest.titles == ["demo 2.1", "gone 1.0", "demo 2.0"]
        reader, other = SlowReader(client, newest.links["next"]), SlowReader(client, newest.links["next"])
        assert reader.poll() == []
    for number in range(8):
        changing.add("wheel", f"new-{number}", "1.0")
        changing.index.history.yank(f"new-{number}", "1.0", at=changing.at())
    changing.publish()
    write_journal(changing)
    with changing.client() as client:
        reader.client = client
        found = reader.poll()
        assert len(found) == len(set(found)) == 8
        assert read(client, UPDATES).titles == ["new-7 1.0", "new-6 1.0", "new-5 1.0"]
        changing.index.history.remove_project("new-0", at=changing.at())
        changing.add("sdist", "new-0", "1.0")
        changing.publish()
        write_journal(changing)
    with changing.client() as client:
        reader.client = other.client = client
        [again] = reader.poll()
        assert other.poll() == [*found, again]
        assert reader.poll() == other.poll() == []


def test_items_end_at_the_serial_of_the_other_answers(changing: Published):
    changing.add("wheel", "later", "1.0")
    crawl_incremental(changing.index.crawler(changing.catalog))
    write_journal(changing)
    with changing.client() as client:
        feed = read(client, UPDATES)
        assert "later 1.0" not in feed.titles
        assert read(client, feed.links["next"]).items == []
    changing.publish()
    with changing.client() as client:
        assert read(client, feed.links["next"]).titles == ["later 1.0"]


def drawn_records(random_: random.Random, count: int) -> list[Record]:
    """Return records of an index stream: about half of them new releases, the others roles, files and gaps."""
    records = []
    for serial in range(1, count + 1):
        release = simple_record(serial, "ignored", f"p{serial}", version="1.0", action="new release")
        role = simple_record(serial, "ignored", "p", action="add Owner someone")
        file = simple_record(serial, "add file", "p", version="1.0", action='add "action":"new release" file x')
        gap = simple_record(serial, "gap", "p", until=serial + 3)
        records.append(random_.choice([release, release, release, role, file, gap]))
    return records


@pytest.mark.parametrize("seed", range(5))
def test_readers_at_random_times_get_each_item_once(
    changing: Published, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random_ = random.Random(seed)
    monkeypatch.setattr(feeds, "MOST_ITEMS", random_.choice([1, 2, 7]))
    monkeypatch.setattr("pypi_assets.service.index_events._RECORDS_AT_ONCE", random_.choice([1, 3, 50]))
    records = drawn_records(random_, changing.index.serial)
    expected = [str(one["serial"]) for one in records if one.get("action") == "new release"]
    beginning = f"{UPDATES}?since={Cursor.after_serial(0)}"
    received: list[list[str]] = [[] for _ in range(3)]
    addresses = [beginning] * 3
    cuts: list[int] = []
    with changing.client() as client:
        for through in [*sorted(random_.sample(range(1, len(records)), 4)), len(records)]:
            write_streams(
                changing.storage, {JournalStream.INDEX: [dict(one) for one in records[:through]]}, through, cuts=cuts
            )
            cuts.append(through)
            for number in range(3):
                if random_.random() < 0.6 or through == len(records):
                    reader = SlowReader(client, addresses[number])
                    received[number] += reader.poll()
                    addresses[number] = reader.address
    assert received == [expected] * 3


def test_wrong_cursors_are_problems(journaled_client: Client, journaled: Published):
    for query, status in (("abcdef", 404), ("a", 400), ("now", 400), ("%00", 400)):
        answer = journaled_client.get(f"{UPDATES}?since={query}")
        assert (answer.status_code, answer.json()["parameter"] if status == 404 else "since") == (status, "since")


def test_cursor_before_the_journal_is_gone(changing: Published):
    write_streams(changing.storage, {JournalStream.INDEX: []}, changing.index.serial, start=4)
    with changing.client() as client:
        answer = client.get(f"{UPDATES}?since={Cursor.after_serial(2)}")
        assert (answer.status_code, answer.json()["parameter"]) == (410, "since")
        assert read(client, UPDATES).items == []


def test_missing_journal_is_a_problem_that_names_the_command(client: Client):
    for path in (UPDATES, f"{PACKAGES}?since={Cursor.after_serial(2)}"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["type"]) == (503, "/docs#not-built-yet")
        assert unnamed(answer.json()["detail"], "journal write") == []


def test_texts_of_the_index_are_escaped(changing: Published):
    record = simple_record(1, "ignored", "<b>&", version='"1"]]>\x1b', action="new release")
    write_streams(changing.storage, {JournalStream.INDEX: [record]}, changing.index.serial)
    with changing.client() as client:
        [item] = read(client, UPDATES).items
    assert item["title"] == '<b>& "1"]]>'
    assert datetime.fromtimestamp(record["at"], UTC) == parsedate_to_datetime(item["pubDate"])
