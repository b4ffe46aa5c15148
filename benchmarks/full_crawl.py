"""Measure a full crawl, end to end, compared with a bare loop of the same client that sends the same requests.

    python -m benchmarks.full_crawl [--files 2000] [--connections 8] [--rounds 3]

Serves generated wheels from a devindex in a separate process, on loopback. The first crawl records its requests: each
project page, and each file or every part of it. The bare loop sends the same requests through the same client, with as
many connections, and discards the responses. Crawls and bare loops alternate. Runs on Linux, which reports the
processor time of each process.
"""

import argparse
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pypi_assets.catalog.coordination.rates import SharedRate
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.components import catalog_from, crawler_from, readers_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.devindex.history import History
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.index.client import IndexClient
from pypi_assets.index.models import FetchedBytes, NotModified, ProjectPage
from pypi_assets.index.ranged_files import RangedFile
from pypi_assets.index.rate import Rates
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.settings import Settings, load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.builders import make_wheel

FILES_PER_PROJECT = 4
MODULES = 20
REQUESTS_PER_SECOND = 10_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of some work: seconds by the clock, and of the processor for each process that took part."""

    seconds: float
    client: float
    readers: float
    server: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A crawl and a bare loop after it, the crawl's catalog, and the cost of each file in the bare loop."""

    crawled: Cost
    looped: Cost
    catalog: Catalog
    fetched: list[FetchedBytes]


@dataclass(slots=True)
class Requests:
    """The requests of a crawl to its client. `opened` has the reads of each opened file."""

    projects: list[str] = field(default_factory=list)
    opened: list[tuple[str, dict[str, Any], list[Callable[[RangedFile], object]]]] = field(default_factory=list)
    streamed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


class NotedFile(RangedFile):
    """A file that records its reads."""

    noted: list[Callable[[RangedFile], object]]

    def read_at(self, offset: int, size: int) -> bytes:
        self.noted.append(lambda file: file.read_at(offset, size))
        return super().read_at(offset, size)

    def sidecar(self) -> bytes | None:
        self.noted.append(RangedFile.sidecar)
        return super().sidecar()

    def whole(self) -> BinaryIO:
        self.noted.append(lambda file: file.whole().read())
        return super().whole()


class NotingClient(IndexClient):
    """A client that records its requests."""

    requests: Requests

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage | NotModified:
        self.requests.projects.append(project)
        return super().project_page(project, etag=etag)

    def open_ranges(self, url: str, **promised: Any) -> RangedFile:
        file = NotedFile(self._transport, url, **promised)
        file.noted = []
        self.requests.opened.append((url, promised, file.noted))
        return file

    def stream_file(self, url: str, consume: Callable[[BinaryIO], Any], **promised: Any) -> tuple[Any, FetchedBytes]:
        self.requests.streamed.append((url, promised))
        return super().stream_file(url, consume, **promised)


def generate(folder: Path, files: int) -> None:
    """Fill an index with wheels of `MODULES` modules each, with `FILES_PER_PROJECT` versions a project."""
    built = folder / "built"
    built.mkdir()
    history = History(folder / "index")
    for number in range(files):
        name, version = f"project-{number // FILES_PER_PROJECT}", f"{number % FILES_PER_PROJECT}.0"
        modules = {f"package{number // FILES_PER_PROJECT}/module{m}.py": f"# {'x' * 300}\n" for m in range(MODULES)}
        history.add(make_wheel(built, name, version, files=modules, requires_dist=["requests>=2", "attrs"]))


def client_for(settings: Settings, catalog: Catalog, kind: type[IndexClient]) -> Any:
    """Return a client of `kind`, created like in `index_from`."""
    return kind(
        settings.index_url,
        changelog_url=settings.resolved_changelog_url,
        max_connections=settings.max_connections,
        rates=Rates(
            SharedRate(catalog, "requests", settings.requests_per_second),
            SharedRate(catalog, "changelog", settings.requests_per_second),
        ),
    )


def measured(work: Callable[[], None], server: int) -> Cost:
    """Return the cost of `work` in this process, in its ended child processes, and in the server."""
    before = _processor_seconds(server)
    started = time.monotonic()
    work()
    seconds = time.monotonic() - started
    client, readers, served = (
        after - until_then for after, until_then in zip(_processor_seconds(server), before, strict=True)
    )
    return Cost(seconds, client, readers, served)


def _processor_seconds(server: int) -> tuple[float, float, float]:
    ours, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    user, system = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[11:13]
    ticks = int(user) + int(system)
    return ours.ru_utime + ours.ru_stime, children.ru_utime + children.ru_stime, ticks / os.sysconf("SC_CLK_TCK")


def crawl(settings: Settings, kind: type[IndexClient], requests: Requests) -> Catalog:
    """Crawl everything into a new catalog."""
    catalog = catalog_from(settings)
    with client_for(settings, catalog, kind) as client, readers_from(settings) as readers:
        if isinstance(client, NotingClient):
            client.requests = requests
        crawl_full(crawler_from(settings, client, catalog, storage_from(settings), readers))
    return catalog


def bare_loop(settings: Settings, catalog: Catalog, requests: Requests) -> list[FetchedBytes]:
    """Send the requests of a crawl and discard the responses; return the cost of the files."""

    def opened(what: tuple[str, dict[str, Any], list[Callable[[RangedFile], object]]]) -> FetchedBytes:
        url, promised, noted = what
        with client.open_ranges(url, **promised) as file:
            for read in noted:
                read(file)
            return file.fetched

    def streamed(what: tuple[str, dict[str, Any]]) -> FetchedBytes:
        return client.fetch_file(what[0], io.BytesIO(), **what[1])

    with client_for(settings, catalog, IndexClient) as client, ThreadPoolExecutor(settings.max_connections) as pool:
        client.listing()
        for _ in pool.map(client.project_page, requests.projects):
            pass
        return [*pool.map(opened, requests.opened), *pool.map(streamed, requests.streamed)]


def take_turns(settings: Settings, kind: type[IndexClient], requests: Requests, server: int) -> Turn:
    """Crawl into a new catalog, and then run the bare loop of the same `requests`. A NotingClient records them."""
    catalogs: list[Catalog] = []
    fetched: list[FetchedBytes] = []
    crawled = measured(lambda: catalogs.append(crawl(settings, kind, requests)), server)
    [catalog] = catalogs
    looped = measured(lambda: fetched.extend(bare_loop(settings, catalog, requests)), server)
    return Turn(crawled, looped, catalog, fetched)


def print_costs(what: str, costs: Sequence[Cost], files: int, bare_seconds: float) -> None:
    """Print one line of the table, with medians."""
    seconds, client, readers, server = (
        statistics.median(getattr(cost, part) for cost in costs) for part in ("seconds", "client", "readers", "server")
    )
    print(
        f"{what:24}{seconds:9.2f}{files / seconds:9.0f}{bare_seconds / seconds:7.2f}"
        f"{client:10.2f}{readers:9.2f}{server:8.2f}{client + readers + server:7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    requests = Requests()
    turns: list[Turn] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, options.files)
        command = [Path(sys.executable).with_name("pypi-assets"), "devindex", "serve", folder / "index"]
        with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().strip()
                for number in range(options.rounds):
                    settings = load_settings(
                        home=folder / f"home{number}",
                        index_url=url,
                        requests_per_second=REQUESTS_PER_SECOND,
                        max_connections=options.connections,
                    )
                    turns.append(take_turns(settings, IndexClient if turns else NotingClient, requests, server.pid))
            finally:
                server.terminate()
        for turn in turns:
            assert catalog_status(turn.catalog).outcomes["data"] == options.files
        catalog = turns[-1].catalog
        storage = open_storage((folder / "storage").as_uri())
        later = []
        for what, work in (
            ("full dump, 16 shards", lambda: full_dump(catalog, storage, 16)),
            ("modules from scratch", lambda: build_version("modules", storage=storage, catalog=catalog)),
            ("depgraph from scratch", lambda: build_version("depgraph", storage=storage, catalog=catalog)),
        ):
            started = time.monotonic()
            work()
            later.append((what, time.monotonic() - started))
        for turn in turns:
            turn.catalog.close()
    file_requests = sum(one.requests for one in turns[0].fetched)
    size = sum(one.bytes for one in turns[0].fetched)
    print(
        f"{options.files} wheels: {len(requests.projects)} requests for pages, {file_requests} for files"
        f" ({size / 1e6:.1f} MB); {options.connections} connections, {os.cpu_count()} cores, load before {load:.1f};"
        f" medians of {options.rounds}"
    )
    print(f"{'':24}{'':25}  seconds of the processors")
    print(f"{'':24}{'seconds':>9}{'files/s':>9}{'ratio':>7}{'client':>10}{'readers':>9}{'server':>8}{'all':>7}")
    bare_seconds = statistics.median(turn.looped.seconds for turn in turns)
    print_costs("bare loop", [turn.looped for turn in turns], options.files, bare_seconds)
    print_costs("full crawl", [turn.crawled for turn in turns], options.files, bare_seconds)
    for what, seconds in later:
        print(f"{what:24}{seconds:9.2f}{options.files / seconds:9.0f}")


if __name__ == "__main__":
    main()
