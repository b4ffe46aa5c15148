"""Atom feeds, as feedparser reads them: newest first, bounded, with links to pages, and hostile text as text alone."""

from collections.abc import Iterator
from xml.etree import ElementTree

import feedparser
import pytest

from pypi_assets.service import change_feeds
from pypi_assets.service.change_feeds import MOST_ENTRIES, change_page, change_summary, change_title
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.hostile_index import HOSTILE, HostileAnswers, upload
from pypi_assets_tests.journal.written import simple_record, write_journal
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published, published_index

PROJECT_FEED = "/v1/projects/{}/changes.atom"
MODULE_FEED = "/v1/modules/{}/changes.atom"


def feed(client: Client, path: str) -> feedparser.FeedParserDict:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
    found = feedparser.parse(answer.content, response_headers=dict(answer.headers))
    assert (found.bozo, found.version) == (False, "atom10")
    assert found.feed.title
    assert found.feed.id
    assert found.feed.updated
    assert found.feed.author
    assert len({one.id for one in found.entries}) == len(found.entries)
    assert all(one.id.startswith("urn:uuid:") and one.title and one.updated_parsed for one in found.entries)
    return found


def test_a_project_s_feed_has_what_changed_of_its_files(journaled_client: Client, journaled: Published):
    found = feed(journaled_client, PROJECT_FEED.format("Demo"))
    assert [one.title for one in found.entries] == [
        "demo 2.1: file added: demo-2.1-py3-none-any.whl",
        "demo 2.0: file yanked: demo-2.0-py3-none-any.whl",
        "demo 2.0: file added: demo-2.0-py3-none-any.whl",
        "demo 1.0: file added: demo-1.0.tar.gz",
        "demo 1.0: file added: demo-1.0-py3-none-any.whl",
    ]
    yanked = found.entries[1]
    assert yanked.link == "/release/demo/2.0/"
    assert "broken" in yanked.summary
    assert [tag.term for tag in yanked.tags] == ["file yanked"]
    assert found.feed.updated == found.entries[0].updated
    assert found.feed.link == "/project/demo/"
    assert unnamed(found.feed.subtitle, 0, journaled.index.serial) == []
    for entry in found.entries:
        assert journaled_client.get(entry.link).status_code == 200


def test_a_module_s_feed_has_the_files_that_name_it(journaled_client: Client):
    found = feed(journaled_client, MODULE_FEED.format("yaml"))
    assert {one.title for one in found.entries} == {
        "PyYAML 6.0: file read: pyyaml-6.0-py3-none-any.whl",
        "PyYAML 6.0: new provider: yaml",
        "yaml-copy 1.0: file read: yaml_copy-1.0-py3-none-any.whl",
        "yaml-copy 1.0: new provider: yaml",
    }
    assert found.feed.link == "/import/yaml/"
    [gained] = [
        one for one in feed(journaled_client, MODULE_FEED.format("demo.new")).entries if "compared" in one.title
    ]
    assert "demo.new" in gained.summary
    assert feed(journaled_client, MODULE_FEED.format("nothing.has.it")).entries == []


@pytest.mark.nightly
def test_a_feed_is_the_same_until_more_is_published_and_bounded(changing: Published, monkeypatch: pytest.MonkeyPatch):
    for number in range(8):
        changing.add("wheel", "many", f"{number}.0")
    changing.publish()
    write_journal(changing)
    monkeypatch.setattr(change_feeds, "MOST_ENTRIES", 5)
    with changing.client() as client:
        first = client.get(PROJECT_FEED.format("many"))
        titles = [one.title for one in feed(client, PROJECT_FEED.format("many")).entries]
        assert [title.split(":")[0] for title in titles] == [f"many {number}.0" for number in (7, 6, 5, 4, 3)]
        again = client.get(PROJECT_FEED.format("many"), headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304
        changing.add("wheel", "many", "9.0")
        changing.publish()
        write_journal(changing)
        assert feed(client, PROJECT_FEED.format("many")).entries[0].title.startswith("many 9.0")
    assert MOST_ENTRIES == 50


def test_without_a_journal_the_problem_names_the_command(client: Client):
    for path in (PROJECT_FEED.format("demo"), MODULE_FEED.format("yaml")):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "pypi-assets journal write" in answer.json()["detail"]


@pytest.fixture
def hostile(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    clear_settings(monkeypatch)
    with published_index(tmp_path / "hostile") as one:
        upload(one.index)
        one.index.faults = HostileAnswers(one.index)
        one.publish_first()
        write_journal(one)
        with one.client() as client:
            yield client


def test_hostile_texts_are_text_in_a_feed(hostile: Client):
    texts = []
    for path in (PROJECT_FEED.format("evil"), PROJECT_FEED.format("fields"), MODULE_FEED.format("good")):
        body = hostile.get(path).content
        names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(body).iter()}
        assert names <= {
            *("feed", "id", "title", "subtitle", "updated", "author", "name"),
            *("link", "entry", "category", "summary"),
        }
        found = feed(hostile, path)
        texts += [one[name] for one in found.entries for name in ("title", "summary")]
        assert all(one.link.startswith("/") and not one.link.startswith("//") for one in found.entries)
        kinds = [one[name] for one in found.entries for name in ("title_detail", "summary_detail")]
        assert {kind.type for kind in kinds} == {"text/plain"}
    assert any("<script>" in text for text in texts)
    assert not any(mark in text for text in texts for mark in "\x1b\x00\u202e\n")


def test_what_a_change_is_called_and_where_it_is_shown():
    read = simple_record(3, "file read", "demo", stream="content", version="a/b", filename=HOSTILE)
    assert change_title(read).startswith("demo a/b: file read: =cmd")
    assert change_page(read) == "/project/demo/"
    assert change_page({**read, "version": "1.0"}) == "/release/demo/1.0/"
    epoch = simple_record(9, "epoch changed", "", stream="observed") | {"normalized": None, "of_serial": 4}
    assert (change_title(epoch), change_page(epoch)) == ("epoch changed", None)
    assert unnamed(change_summary(epoch), 4, 9) == []
