"""Files come from the one host that the first pages agree on, whichever process reads first, and from no other."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Barrier, Thread
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.index_state import known_file_origin
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import distribution_data, distributions
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.file_origin_choice import FIRST_PAGES
from pypi_assets.crawl.full_crawl import crawl_full, list_index, read_shards, visit_shards
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.file_origins import FileOrigin, agreed_file_origin
from pypi_assets.index.models import ProjectPage
from pypi_assets.index.urls import HostRule, host_rule
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import follower
from pypi_assets_tests.examples import examples
from pypi_assets_tests.model_index import URL, ModelIndex, ModelReaders
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.served_index import JSON, ServedIndex


def origin_of(catalog: Catalog) -> str | None:
    with catalog.read() as connection:
        return known_file_origin(connection)


def outcomes(catalog: Catalog) -> dict[str, str]:
    is_its = distribution_data.c.distribution_id == distributions.c.id
    query = select(distributions.c.filename, distribution_data.c.outcome).join(distribution_data, is_its)
    with catalog.read() as connection:
        return {row.filename: row.outcome for row in connection.execute(query)}


def errors(catalog: Catalog) -> list[str]:
    with catalog.read() as connection:
        return [failure.text for failure in list_failures(connection, max_attempts=50)]


def name_hosts(index: ServedIndex, hosts: dict[str, str]) -> None:
    """The pages of these projects name their files under another host of the same server."""

    def page(request: Request) -> Response | None:
        project = request.url.path.removeprefix("/simple/").removesuffix("/")
        if project not in hosts:
            return None
        index.faults = None
        document = json.loads(index.page(project))
        index.faults = page
        for file in document["files"]:
            url = urljoin(f"{index.url}{project}/", file["url"])
            file["url"] = url.replace("127.0.0.1", hosts[project])
        return Response(json.dumps(document), media_type=JSON)

    index.faults = page


def trusting(index: ServedIndex, catalog: Catalog, notified: list[str] | None = None) -> Crawler:
    notify: Callable[[str], None] = (lambda _: None) if notified is None else notified.append
    return index.crawler(catalog, trusts_first_file_host=True, notify=notify, connections=1)


def test_the_host_that_the_first_pages_name_is_trusted_and_reported_once(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    name_hosts(index, {"one": "localhost", "two": "localhost", "later": "localhost"})
    notified: list[str] = []
    crawl_full(trusting(index, catalog, notified))
    port = urlsplit(index.url).port
    assert origin_of(catalog) == f"http://localhost:{port}"
    assert set(outcomes(catalog).values()) == {"data"}
    [message] = notified
    assert mentions(message, f"localhost:{port}", "PYPI_ASSETS_ALLOWED_FILE_HOSTS")
    index.wheel("later", "1.0")
    crawl_incremental(trusting(index, catalog, notified))
    assert set(outcomes(catalog).values()) == {"data"}
    assert len(notified) == 1


def test_a_later_page_with_another_host_fails_by_name_until_a_list_has_it(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("one", "1.0")
    name_hosts(index, {"one": "localhost", "later": "other.localhost"})
    crawl_full(trusting(index, catalog))
    later = index.wheel("later", "1.0")
    crawl_incremental(trusting(index, catalog))
    port = urlsplit(index.url).port
    assert outcomes(catalog)[later] == "error"
    [text] = errors(catalog)
    setting = f"""PYPI_ASSETS_ALLOWED_FILE_HOSTS='["localhost:{port}", "other.localhost:{port}"]'"""
    assert mentions(text, "other.localhost", setting, "pypi-assets failures retry --kind refused")
    name_hosts(index, {"later": "localhost"})  # the list decides alone, whatever was trusted
    index.history.yank("later", "1.0")
    listing = replace(trusting(index, catalog), trusts_first_file_host=False)
    crawl_incremental(replace(listing, index=index.client(allowed_file_hosts=["localhost"])))
    retry(replace(listing, index=index.client(allowed_file_hosts=["localhost"])))
    assert outcomes(catalog)[later] == "data"
    assert origin_of(catalog) == f"http://localhost:{port}"


def test_first_pages_that_disagree_end_the_crawl_and_a_list_continues_it(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    name_hosts(index, {"one": "localhost", "two": "other.localhost"})
    with pytest.raises(RefusedError, match=r"localhost:\d+, other\.localhost:\d+"):
        crawl_full(trusting(index, catalog))
    assert origin_of(catalog) is None
    assert set(outcomes(catalog).values()) == {"pending"}
    name_hosts(index, {})
    listing = replace(trusting(index, catalog), trusts_first_file_host=False)
    crawl_full(replace(listing, index=index.client(allowed_file_hosts=["localhost"])))
    assert sorted(outcomes(catalog).values()) == ["data", "error"]
    assert origin_of(catalog) is None


def test_files_on_the_index_itself_need_no_other_host(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("one", "1.0")
    name_hosts(index, {"later": "localhost"})
    notified: list[str] = []
    crawl_full(trusting(index, catalog, notified))
    assert (origin_of(catalog), notified) == ("", [])
    later = index.wheel("later", "1.0")
    crawl_incremental(trusting(index, catalog))
    assert outcomes(catalog)[later] == "error"
    [text] = errors(catalog)
    assert mentions(text, "localhost", "PYPI_ASSETS_ALLOWED_FILE_HOSTS")


def test_pages_without_files_decide_nothing(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("empty", "1.0")
    index.history.remove_release("empty", "1.0")
    crawl_full(trusting(index, catalog))
    assert origin_of(catalog) is None
    index.wheel("one", "1.0")
    name_hosts(index, {"one": "localhost"})
    crawl_incremental(trusting(index, catalog))
    assert str(origin_of(catalog)).startswith("http://localhost:")


def test_processes_that_choose_at_once_make_one_choice(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("one", "1.0")
    name_hosts(index, {"one": "localhost"})
    crawler = trusting(index, catalog)
    crawl, _ = list_index(crawler)
    visit_shards(crawler, crawl)
    barrier, notified = Barrier(4), list[str]()

    def read() -> None:
        mine = trusting(index, catalog, notified)
        barrier.wait()
        read_shards(mine, crawl)

    threads = [Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(notified) == 1
    assert set(outcomes(catalog).values()) == {"data"}


HOSTS = ("index.example.org", "a.example.com", "b.example.com", "internal")


@dataclass
class HostedIndex(ModelIndex):
    """An index whose projects name hosts of their own. `client` stands for a process: it knows what it has seen."""

    hosts: dict[str, str] = field(default_factory=dict)
    rule: HostRule = field(default_factory=lambda: host_rule(URL, URL, []))
    is_name_unknown: bool = False

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage:
        page = super().project_page(project, etag=etag)
        host = self.hosts.get(project, HOSTS[0])
        return replace(page, files=tuple(replace(file, url=f"https://{host}/{file.filename}") for file in page.files))

    def agreed_file_origin(self, urls: list[str]) -> FileOrigin | None:
        def check(origin: str) -> None:
            if self.is_name_unknown:
                self.is_name_unknown = False
                raise TransientError("the name cannot be resolved", origin)

        return agreed_file_origin(urls, self.rule, is_index_here=False, check=check)

    def trust_file_origin(self, origin: str) -> None:
        self.rule = replace(self.rule, file_origin=origin)

    def _fetch(self, url: str) -> None:
        self.rule.check(url)
        super()._fetch(url)


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(HOSTS), st.booleans(), st.booleans()), min_size=1, max_size=FIRST_PAGES + 4),
    st.booleans(),
)
def test_whatever_the_order_files_are_requested_from_one_host_at_most(
    uploads: list[tuple[str, bool, bool]], is_name_unknown: bool
) -> None:
    """Each upload brings a project of a host, maybe a crawl, and maybe a new process."""
    index, catalog = HostedIndex(is_name_unknown=is_name_unknown), follower("xmlrpc").catalog
    chosen: str | None = None
    for number, (host, is_crawled, is_new_process) in enumerate(uploads):
        index.hosts[f"p{number:02}"] = host
        index.do("add", f"p{number:02}", "1.0", f"p{number:02}-1.0.tar.gz")
        if is_new_process:
            index.rule = host_rule(URL, URL, [])
        if not is_crawled and number + 1 < len(uploads):
            continue
        first = {host for host, _, _ in uploads[: number + 1][:FIRST_PAGES]}
        others = first - {HOSTS[0]}
        try:
            crawl_once(index, catalog)
        except RefusedError:
            assert chosen is None
            assert HOSTS[0] not in first
            assert others not in ({HOSTS[1]}, {HOSTS[2]})
            break
        if chosen is None:
            chosen = f"https://{others.pop()}" if others in ({HOSTS[1]}, {HOSTS[2]}) else ""
        assert origin_of(catalog) == chosen
    requested = {urlsplit(url).hostname for url in index.fetched}
    assert requested <= {HOSTS[0], urlsplit(chosen or "").hostname}


def crawl_once(index: HostedIndex, catalog: Catalog) -> None:
    crawler = Crawler(
        index=index,  # type: ignore[arg-type]
        catalog=catalog,
        storage=open_storage("memory:///"),
        readers=ModelReaders(),  # type: ignore[arg-type]
        connections=1,
        retry_pause_s=0.001,
        trusts_first_file_host=True,
        sleep=lambda _: None,
    )
    crawl_full(crawler)
