"""XML-RPC with the client of the standard library: rows of the index, faults as on PyPI, and hostile bodies."""

import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.index.client import IndexClient
from pypi_assets.journal.record_reader import Journal
from pypi_assets.service import mirror_methods
from pypi_assets.service.mirror_methods import CALL
from pypi_assets.service.xmlrpc_messages import text_in_xml
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.journal.written import simple_record, write_journal, write_streams
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.drawn_journal import DrawnJournal
from pypi_assets_tests.service.published import Client, Published, fill, published_index

Row = list[Any]
LARGEST = 2**31 + 7


def called(url: str, method: str, *arguments: Any) -> Any:
    """Return the result of a call by the client of the standard library, to a service or an index."""
    with xmlrpc.client.ServerProxy(url.removesuffix("simple/") + "pypi", allow_none=True) as proxy:
        return getattr(proxy, method)(*arguments)


def fault_of(url: str, method: str, *arguments: Any) -> xmlrpc.client.Fault:
    with pytest.raises(xmlrpc.client.Fault) as caught:
        called(url, method, *arguments)
    return caught.value


def post(client: Client, body: bytes, content_type: str = "text/xml") -> Any:
    return client.request("POST", "/pypi", data=body, headers={"Content-Type": content_type})


def paged_rows(url: str, since: int = 0) -> Iterator[Row]:
    """Yield the rows as a mirror reads them: page by page, up to an empty page."""
    while page := called(url, "changelog_since_serial", since):
        yield from page
        since = page[-1][4]


def test_rows_equal_the_rows_of_the_index(journaled_client: Client, journaled: Published):
    ours, origin = journaled_client.url, journaled.index.url
    rows = called(origin, "changelog_since_serial", 0)
    assert [type(value) for value in rows[0]] == [str, type(None), int, str, int]
    for since in (0, -1, 7, journaled.index.serial - 1, journaled.index.serial, journaled.index.serial + 5):
        assert called(ours, "changelog_since_serial", since) == [row for row in rows if row[4] > since], since
    assert called(ours, "changelog_last_serial") == called(origin, "changelog_last_serial") == journaled.index.serial


def test_pages_are_limited_and_lose_no_row(
    journaled_client: Client, journaled: Published, monkeypatch: pytest.MonkeyPatch
):
    rows = called(journaled.index.url, "changelog_since_serial", 0)
    monkeypatch.setattr(mirror_methods, "PAGE_ROWS", 3)
    assert called(journaled_client.url, "changelog_since_serial", 0) == rows[:3]
    assert list(paged_rows(journaled_client.url)) == rows


def test_list_has_the_projects_and_serials_of_the_index(journaled_client: Client, journaled: Published):
    found = called(journaled_client.url, "list_packages_with_serial")
    assert found == called(journaled.index.url, "list_packages_with_serial")
    assert {"PyYAML", "Other.App"} <= found.keys()
    listed = journaled_client.get("/simple/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}).json()
    assert {one["name"]: one["_last-serial"] for one in listed["projects"]} == found


def test_own_client_reads_the_changelog(journaled_client: Client, journaled: Published):
    with IndexClient(f"{journaled_client.url}simple/", changelog_url=f"{journaled_client.url}pypi") as client:
        assert client.last_serial() == journaled.index.serial
        [page] = client.changelog(0, journaled.index.serial)
        with IndexClient(journaled.index.url, changelog_url=journaled.index.url.replace("simple/", "pypi")) as origin:
            assert page == origin.changelog_page(0)


def test_events_end_at_the_serial_of_the_other_answers(changing: Published):
    write_journal(changing)
    published = changing.index.serial
    changing.add("wheel", "later", "1.0")
    crawl_incremental(changing.index.crawler(changing.catalog))
    write_journal(changing)
    assert changing.index.serial > published
    with changing.client() as client:
        assert called(client.url, "changelog_last_serial") == published
        assert max(row[4] for row in paged_rows(client.url)) == published
        assert "later" not in called(client.url, "list_packages_with_serial")
    changing.publish()
    with changing.client() as client:
        assert called(client.url, "changelog_last_serial") == changing.index.serial
        assert "later" in called(client.url, "list_packages_with_serial")


def test_missing_journal_is_a_fault_that_names_the_command(client: Client):
    for method, arguments in (("changelog_last_serial", ()), ("changelog_since_serial", (0,))):
        fault = fault_of(client.url, method, *arguments)
        assert fault.faultCode == -32601
        assert unnamed(fault.faultString, "journal write") == []
    assert called(client.url, "list_packages_with_serial")


def test_missing_catalog_is_a_fault(journaled: Published, tmp_path: Path):
    with journaled.client(database_url=f"sqlite:///{tmp_path}/none.sqlite") as client:
        fault = fault_of(client.url, "list_packages_with_serial")
        assert fault.faultCode == -32403
        assert unnamed(fault.faultString, "catalog") == []
        assert called(client.url, "changelog_last_serial") == journaled.index.serial


def test_nothing_published_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clear_settings(monkeypatch)
    drawn = DrawnJournal(tmp_path / "home")
    drawn.add()
    with drawn.client() as client:
        fault = fault_of(client.url, "changelog_last_serial")
        assert fault.faultCode == -32403
        assert unnamed(fault.faultString, "crawl full") == []


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("changelog_since_serial", (), -32602),
        ("changelog_since_serial", (True,), -32602),
        ("changelog_since_serial", ("1",), -32602),
        ("changelog_since_serial", (1, 2), -32602),
        ("changelog_last_serial", (1,), -32602),
        ("search", ({"name": "x"},), -32601),
    ],
)
def test_faults_equal_those_of_the_index(
    journaled_client: Client, journaled: Published, method: str, arguments: tuple[Any, ...], code: int
):
    ours, origin = (fault_of(url, method, *arguments) for url in (journaled_client.url, journaled.index.url))
    assert (ours.faultCode, ours.faultString) == (origin.faultCode, origin.faultString)
    assert ours.faultCode == code


def test_methods_are_listed(journaled_client: Client):
    assert called(journaled_client.url, "system.listMethods") == [
        "changelog_last_serial",
        "changelog_since_serial",
        "list_packages_with_serial",
        "system.listMethods",
    ]


def test_hostile_bodies_are_faults_or_problems(journaled_client: Client):
    entities = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    call = b"<methodCall><methodName>changelog_last_serial</methodName><params>%s</params></methodCall>"
    number = b"<param><value><int>%s</int></value></param>"
    for body in (
        b"",
        b"<nonsense",
        b"<methodCall/>",
        b"<methodCall><params><param/></params></methodCall>",
        entities + call % b"",
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + call % b"",
        call % (number % b"nine"),
        call % b"</value></array>",
        b"\xff\xfe" + call % b"",
        b"<methodResponse><fault><value><int>1</int></value></fault></methodResponse>",
    ):
        answer = post(journaled_client, body)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/xml; charset=utf-8"), body
        with pytest.raises(xmlrpc.client.Fault) as caught:
            xmlrpc.client.loads(answer.content)
        assert caught.value.faultCode == -32700, body
    deep = call % (b"<param>" + b"<value><array><data>" * 500 + b"</data></array></value>" * 500 + b"</param>")
    with pytest.raises(xmlrpc.client.Fault):
        xmlrpc.client.loads(post(journaled_client, deep).content)
    huge = call.replace(b"last", b"since") % (number % (b"9" * 5_000))
    assert xmlrpc.client.loads(post(journaled_client, huge).content) == (([],), None)
    assert post(journaled_client, call % (b" " * 70_000)).status_code == 413
    assert post(journaled_client, call % b"", "application/json").status_code == 415
    assert journaled_client.get("/pypi").status_code == 405
    assert called(journaled_client.url, "changelog_last_serial")


def test_odd_values_arrive_unchanged_except_for_characters_that_xml_lacks():
    odd = "a<b>&amp;\"'\t\x0b\ud7ff é \U0001d4b3"
    record = simple_record(3, "unknown", "demo", version=odd, action=odd) | {"project": odd}
    assert mirror_methods._row(orjson.dumps(record))[3] == odd
    body = b"".join(mirror_methods.render_rows([(odd, None, 0, odd, LARGEST), ("b", "1", -LARGEST, "", 1)]))
    ((rows,), _) = xmlrpc.client.loads(body)
    without = odd.replace("\x0b", "")
    assert rows == [[without, None, 0, without, LARGEST], ["b", "1", -LARGEST, "", 1]]
    assert text_in_xml("\x00\ufffe\ud800a") == "a"


@pytest.mark.nightly
def test_gap_is_a_fault_and_not_an_empty_answer(changing: Published):
    """The events between two lists of projects are unknown, so a mirror must not believe that there were none."""
    write_journal(changing)
    before = changing.index.serial
    for step in (1, 3):  # a single serial is a gap too
        for number in range(step):
            changing.add("wheel", "demo", f"3.{step}.{number}")
        crawl_incremental(changing.index.crawler(changing.catalog, lister="simple"))
        list(write_missing_ranges(changing.catalog, changing.storage))
        changing.build()
        write_journal(changing)
    through = changing.index.serial
    with changing.client() as client:
        assert called(client.url, "changelog_since_serial", before - 2)[-1][4] == before
        for since in range(before, through):
            fault = fault_of(client.url, "changelog_since_serial", since)
            assert fault.faultCode == -32602
            assert unnamed(fault.faultString, "/simple/") == []
        assert called(client.url, "changelog_since_serial", through) == []


def test_start_before_the_journal_is_a_fault_with_its_beginning(changing: Published):
    first = changing.index.serial
    write_streams(changing.storage, {JournalStream.INDEX: []}, first, start=4)
    assert Journal(changing.storage).head("index").start == 4
    with changing.client() as client:
        fault = fault_of(client.url, "changelog_since_serial", 3)
        assert fault.faultCode == -32602
        assert unnamed(fault.faultString, 4, "/simple/") == []
        assert called(client.url, "changelog_since_serial", 4) == []
        assert called(client.url, "changelog_last_serial") == first


def test_follower_of_an_index_without_history_continues_after_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clear_settings(monkeypatch)
    with published_index(tmp_path) as index:
        fill(index)
        index.publish_first(with_history=False)
        write_journal(index)
        listed = index.index.serial
        with index.client() as client:
            assert called(client.url, "changelog_last_serial") == listed
            assert fault_of(client.url, "changelog_since_serial", 0).faultCode == -32602
            assert called(client.url, "changelog_since_serial", listed) == []
        index.add("wheel", "later", "1.0")
        index.publish()
        write_journal(index)
        with index.client() as client:
            rows = called(client.url, "changelog_since_serial", listed)
            assert rows == called(index.index.url, "changelog_since_serial", listed) != []
            assert called(client.url, "changelog_last_serial") == index.index.serial


def test_call_is_documented(journaled_client: Client):
    described = journaled_client.get("/openapi.json").json()["paths"]["/pypi"]["post"]
    assert list(described["requestBody"]["content"]) == ["text/xml"] == list(CALL.media_types)
