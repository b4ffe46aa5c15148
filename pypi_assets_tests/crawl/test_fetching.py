"""Fetching a distribution: in parts if this transfers less, whole if parts cannot be trusted."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Barrier, Thread
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.index_state import known_file_origin
from pypi_assets.catalog.reads.stored_contents import StoredLists
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import distribution_data, distributions, read_queue
from pypi_assets.catalog.work.read_queue import PendingRead
from pypi_assets.crawl import fetching
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.fetching import FIRST_PAGES, in_bundles
from pypi_assets.crawl.full_crawl import crawl_full, list_index, read_shards, visit_shards
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.file_origins import FileOrigin, agreed_file_origin
from pypi_assets.index.models import ProjectPage
from pypi_assets.index.urls import HostRule, host_rule
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import follower
from pypi_assets_tests.distributions.pooled_files import let_readers_leave_marks
from pypi_assets_tests.examples import examples
from pypi_assets_tests.file_faults import (
    answers_ranges,
    answers_sidecars,
    ignores_ranges,
    is_file,
    is_sidecar,
)
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
    """Make the pages of these projects refer to files on another host name of the same server."""

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


def test_host_of_the_first_pages_is_trusted_and_reported_once(catalog: Catalog, index: ServedIndex) -> None:
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


def test_later_page_with_another_host_fails_until_the_host_is_listed(catalog: Catalog, index: ServedIndex) -> None:
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
    name_hosts(index, {"later": "localhost"})  # the list alone decides, and overrides earlier trust
    index.history.yank("later", "1.0")
    listing = replace(trusting(index, catalog), trusts_first_file_host=False)
    crawl_incremental(replace(listing, index=index.client(allowed_file_hosts=["localhost"])))
    retry(replace(listing, index=index.client(allowed_file_hosts=["localhost"])))
    assert outcomes(catalog)[later] == "data"
    assert origin_of(catalog) == f"http://localhost:{port}"


def test_disagreeing_first_pages_end_the_crawl_until_a_list_is_set(catalog: Catalog, index: ServedIndex) -> None:
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


def test_files_on_the_index_host_need_no_other_host(catalog: Catalog, index: ServedIndex) -> None:
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


def test_pages_without_files_select_no_host(catalog: Catalog, index: ServedIndex) -> None:
    index.wheel("empty", "1.0")
    index.history.remove_release("empty", "1.0")
    crawl_full(trusting(index, catalog))
    assert origin_of(catalog) is None
    index.wheel("one", "1.0")
    name_hosts(index, {"one": "localhost"})
    crawl_incremental(trusting(index, catalog))
    assert str(origin_of(catalog)).startswith("http://localhost:")


def test_concurrent_processes_select_one_host(catalog: Catalog, index: ServedIndex) -> None:
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
    """An index whose projects use separate hosts. `client` represents a process with its observations."""

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
def test_files_are_requested_from_one_host_at_most_in_any_order(
    uploads: list[tuple[str, bool, bool]], is_name_unknown: bool
) -> None:
    """Each upload adds a project on a host, and may add a crawl and a new process."""
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


PADDING = {f"big/data{number}.bin": random.Random(number).randbytes(100_000) for number in range(4)}


def read_data(catalog: Catalog, filename: str):
    with catalog.read() as connection:
        return connection.execute(
            select(distribution_data, distributions.c.size)
            .join(distributions, distributions.c.id == distribution_data.c.distribution_id)
            .where(distributions.c.filename == filename)
        ).one()


def counted(index: ServedIndex, fault: Callable[[Request], Response | None] | None = None) -> list[str]:
    """Install `fault`, and return a list that collects the path of each request for a file or sidecar."""
    requested: list[str] = []

    def answer(request: Request) -> Response | None:
        if is_file(request) or is_sidecar(request):
            requested.append(request.url.path)
        return fault(request) if fault else None

    index.faults = answer
    return requested


def big_wheel(index: ServedIndex) -> str:
    return index.wheel("big", "1.0", files={"big/__init__.py": "", **PADDING}, requires_dist=["small>=1"])


def test_large_wheel_is_read_from_its_end_only(index: ServedIndex, catalog: Catalog):
    filename = big_wheel(index)
    requested = counted(index)
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert (data.outcome, data.requests) == ("data", 1)
    assert len(requested) == 1
    assert data.bytes_fetched < data.size // 10
    assert data.seconds > 0


def test_small_wheel_is_fetched_in_one_request(index: ServedIndex, catalog: Catalog):
    filename = index.wheel("small", "1.0")
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert (data.requests, data.bytes_fetched) == (1, data.size)


@pytest.mark.nightly
def test_failure_of_one_small_file_affects_no_other(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    monkeypatch.setattr(fetching, "_TOGETHER", 100)
    expected = {
        index.wheel("first", "1.0"): ("data", None),
        index.wheel("gone", "1.0"): ("gave up", "gone"),
        index.sdist("second", "1.0"): ("data", None),
        index.wheel("busy", "1.0"): ("gave up", "transient"),
        index.wheel("forbidden", "1.0"): ("error", "refused"),
        index.wheel("spoiled", "1.0"): ("error", "wrong content"),
        index.raw("broken-1.0-py3-none-any.whl", b"no zip"): ("error", "corrupt archive"),
        index.raw("program-1.0.win32.exe", b"MZ"): ("unsupported", "unsupported kind"),
        index.wheel("crash", "1.0"): ("error", "reader failure"),
        index.sdist("late_crash", "1.0"): ("error", "reader failure"),
        index.sdist("raise", "1.0"): ("error", "reader failure"),
        index.wheel("last", "1.0"): ("data", None),
    }
    wrong = {"gone": (404, b""), "busy": (503, b""), "forbidden": (403, b""), "spoiled": (200, b"else")}

    def answer(request: Request) -> Response | None:
        status, content = wrong.get(request.url.path.rpartition("/")[2].partition("-")[0], (0, b""))
        return Response(content, status) if status else None

    requested = counted(index, answer)
    with ReaderPool(ReadLimits(), size=1) as readers:
        together = []
        read_together = readers.read_together
        monkeypatch.setattr(readers, "read_together", lambda files: together.append(len(files)) or read_together(files))
        crawl_full(index.crawler(catalog, readers=readers, connections=1, retry_deadline_s=0))
    assert together == [7]
    for filename, outcome in expected.items():
        data = read_data(catalog, filename)
        assert (data.outcome, data.error_kind) == outcome, filename
        assert data.requests == sum(path.endswith(filename) for path in requested), filename
        is_kept = outcome[1] in {None, "corrupt archive"} or filename.startswith("late_crash")
        assert (data.pack_id is not None) == is_kept, filename


@pytest.mark.parametrize(("count", "together"), [(0, 0), (1, 1), (4, 1), (5, 2), (31, 8), (32, 8), (33, 8), (99, 8)])
def test_small_files_are_shared_among_connections(index: ServedIndex, catalog: Catalog, count: int, together: int):
    def pending(number: int, size: int | None) -> PendingRead:
        return PendingRead(
            number, "demo", f"demo-{number}.zip", "", None, size, 0, None, 0, False, None, DistributionKind.SDIST
        )

    large = [pending(number, size) for number, size in enumerate((None, 32_769, 10**9))]
    small = [pending(number, 32_768) for number in range(1000, 1000 + count)]
    bundles = in_bundles(index.crawler(catalog, connections=4), [*small, *large])
    assert bundles[:3] == [[read] for read in large]
    assert [read for bundle in bundles[3:] for read in bundle] == small
    assert {len(bundle) for bundle in bundles[3:-1]} <= {together}
    assert len(bundles[-1]) <= max(together, 1)


@pytest.mark.nightly
def test_claims_do_not_exceed_the_setting(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    # On a slow machine, results still claimed could wait to be stored while the next reads run.
    monkeypatch.setattr("pypi_assets.crawl.draining._GATHER_S", 60.0)
    for number in range(12):
        index.wheel(f"small{number}", "1.0")
        index.sdist(f"large{number % 3}", f"{number}.0", files={"large.py": ""} | PADDING)
    claimed = []

    def count(_: Request) -> None:
        with catalog.read() as connection:
            claimed.append(connection.scalar(select(func.count()).where(read_queue.c.claimed_by.is_not(None))))

    index.faults = count
    result = crawl_full(index.crawler(catalog, in_flight=7, connections=2))
    assert result.reads.data == 24
    assert max(claimed) == 7


@pytest.mark.nightly
@pytest.mark.parametrize(("times", "outcome"), [(1, "data"), (2, "error")])
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_wrong_bytes_are_believed_when_repeated(
    index: ServedIndex, catalog: Catalog, kind: str, times: int, outcome: str
):
    filename = getattr(index, kind)("spoiled", "1.0")
    plan = f'[[fault]]\nkind = "wrong-bytes"\nrequests = {list(range(1, times + 1))}'
    requested = counted(index, FaultPlan(plan))
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert (data.outcome, data.error_kind) == (outcome, "wrong content" if outcome == "error" else None)
    assert len(requested) == 2


def test_sdist_is_read_as_a_stream(index: ServedIndex, catalog: Catalog):
    filename = index.sdist("source", "1.0")
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert (data.outcome, data.requests, data.bytes_fetched) == ("data", 1, data.size)


@pytest.mark.nightly
@pytest.mark.parametrize("case", ["ignored", "other total", "416", "bytes of another file"])
def test_whole_file_is_read_if_ranges_cannot_be_trusted(index: ServedIndex, catalog: Catalog, case: str):
    filename = big_wheel(index)
    content = (index.folder / "built" / filename).read_bytes()
    faults = {
        "ignored": ignores_ranges,
        "other total": answers_ranges(content, total=len(content) + 1),
        "416": answers_ranges(content, status=416),
        "bytes of another file": answers_ranges(b"\1" * len(content)),
    }
    requested = counted(index, faults[case])
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert (data.outcome, data.error_kind) == ("data", None)
    assert data.requests == len(requested)
    assert (data.requests == 1) == (case == "ignored")
    assert data.bytes_fetched >= data.size


def test_metadata_with_wrong_hash_is_read_from_the_whole_file(index: ServedIndex, catalog: Catalog):
    """A byte range has no hash, but the METADATA in it has one."""
    filename = big_wheel(index)
    good = (index.folder / "built" / filename).read_bytes()
    other = ServedIndex(index.folder / "other")
    name = other.wheel("big", "1.0", files={"big/__init__.py": "", **PADDING}, requires_dist=["malice>=1"])
    forged = (other.folder / "built" / name).read_bytes()
    forged = forged[: len(good)].rjust(len(good), b"\0")
    counted(index, answers_ranges(forged))
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert data.outcome == "data"
    assert data.bytes_fetched > len(good)
    with catalog.read() as connection:
        assert StoredLists(connection).load([data.requires_dist_id]) == {data.requires_dist_id: ["small>=1"]}


@pytest.mark.parametrize("status", [404, 200])
def test_missing_or_wrong_sidecar_loses_nothing(index: ServedIndex, catalog: Catalog, status: int):
    """METADATA is at the start of this wheel, far from the central directory."""
    files = {"early-1.0.dist-info/METADATA": "", "early/__init__.py": "", **PADDING}
    filename = index.wheel("early", "1.0", files=files, requires_dist=["small>=1"])
    requested = counted(index, answers_sidecars(status, b"Metadata-Version: 2.1\nName: forged\nVersion: 1.0\n"))
    crawl_full(index.crawler(catalog))
    data = read_data(catalog, filename)
    assert any(path.endswith(".metadata") for path in requested)
    assert data.outcome == "data"
    assert "forged" not in (data.details or "")
    assert data.bytes_fetched < data.size // 2


@pytest.mark.nightly
@pytest.mark.parametrize("is_small", [True, False])
def test_reader_that_dies_affects_only_its_file(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, is_small: bool
):
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    padding = {} if is_small else PADDING
    good = index.sdist("good", "1.0", files={"good.py": ""} | padding)
    bad = index.sdist("crash", "1.0", files={"bad.py": ""} | padding)
    with ReaderPool(ReadLimits(), size=1) as readers:
        result = crawl_full(index.crawler(catalog, readers=readers))
    assert (result.reads.data, result.reads.errors) == (1, 1)
    assert read_data(catalog, good).outcome == "data"
    data = read_data(catalog, bad)
    assert (data.outcome, data.error_kind) == ("error", "reader failure")
    assert "SIGSEGV" in data.error_text
    assert (data.requests, data.bytes_fetched) == ((1, data.size) if is_small else (2, 2 * data.size))


def test_read_that_takes_too_long_is_not_retried(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    filename = index.sdist("spin", "1.0", files={"bad.py": ""} | PADDING)
    with ReaderPool(ReadLimits(seconds=0.1), size=1) as readers:
        calls = []
        read = readers.read
        monkeypatch.setattr(readers, "read", lambda *args, **options: calls.append(args) or read(*args, **options))
        crawl_full(index.crawler(catalog, readers=readers))
    data = read_data(catalog, filename)
    assert (data.outcome, data.error_kind, data.requests) == ("error", "limit exceeded", 1)
    assert data.error_text == "reading takes more than 0.1 seconds"
    assert len(calls) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["once", "late_once"])
def test_reader_killed_once_loses_no_file(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, fault: str
):
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    let_readers_leave_marks(monkeypatch, index.folder)
    files = [index.sdist(fault, "1.0"), index.wheel(fault, "2.0")]
    with ReaderPool(ReadLimits(), size=1) as readers:
        result = crawl_full(index.crawler(catalog, readers=readers))
    assert len(list(index.folder.glob("*.killed"))) == 2
    assert (result.reads.data, result.reads.errors) == (2, 0)
    for filename in files:
        assert read_data(catalog, filename).outcome == "data"


def test_failing_reader_is_not_retried(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    filename = index.sdist("late_raise", "1.0")
    with ReaderPool(ReadLimits(), size=1) as readers:
        crawl_full(index.crawler(catalog, readers=readers))
    data = read_data(catalog, filename)
    assert (data.outcome, data.error_kind, data.requests) == ("error", "reader failure", 1)
    assert data.pack_id is not None
