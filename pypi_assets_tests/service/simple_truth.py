"""Installers choose the same pins from `/at/N/simple/` as from the index when it was at serial N.

Unmodified pip and uv resolve random requirements twice: against the service, and against a devindex that is replayed to
N. `python -m pypi_assets_tests.service.simple_truth --pairs 500` prints each pair that differs, and counts.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from packaging.utils import canonicalize_name
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.devindex import served_pages
from pypi_assets.devindex.history import History
from pypi_assets.service.server import running
from pypi_assets.service.service import open_service
from pypi_assets_tests.installers import Answer, resolve_by_pip, resolve_by_uv
from pypi_assets_tests.service.forked_pip import ForkedPip, forked_pip
from pypi_assets_tests.service.published import Published, published_index
from pypi_assets_tests.service.resolvable_index import BEGAN, NAMES, SDIST_NAMES, SPECIFIERS, ResolvableIndex
from pypi_assets_tests.waiting import until

KINDS = ("pip", "uv", "pip with sdists")
_SHOWN_CHARACTERS = 1_500


@dataclass(frozen=True, slots=True)
class Pair:
    """Requirements, the serial at which an installer resolves them, and its further options."""

    installer: str
    requirements: tuple[str, ...]
    serial: int
    options: tuple[str, ...] = ()


@dataclass
class Seen:
    """Counts of the results. `origin_requests` counts file requests to the index while pip resolved wheels from our
    pages.
    """

    pairs: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    pins: int = 0
    origin_requests: int = 0
    differing: list[str] = field(default_factory=list)


@dataclass
class Truth:
    """The service at `ours`, the replayed devindex at `theirs`, and a counter of requests to the index."""

    index: ResolvableIndex
    ours: str
    theirs: str
    pip: ForkedPip
    folder: Path
    requested: list[str]

    def compare(self, pair: Pair, seen: Seen) -> None:
        """Resolve the pair on both sides and record the result."""
        seen.pairs[pair.installer] += 1
        self.requested.clear()
        ours = self._resolve(pair, f"{self.ours}at/{pair.serial}/simple/")
        if pair.installer == "pip" and "--require-hashes" not in pair.options:
            seen.origin_requests += len(self.requested)
        theirs = self._resolve(pair, f"{self.theirs}{pair.serial}/simple/")
        if ours.pins != theirs.pins:
            printed = f"{ours.printed[-_SHOWN_CHARACTERS:]}\n{theirs.printed[-_SHOWN_CHARACTERS:]}"
            seen.differing.append(f"{pair}\n  ours:   {ours.pins}\n  theirs: {theirs.pins}\n{printed}")
        elif ours.pins:
            seen.resolved[pair.installer] += 1
            seen.pins += len(ours.pins)

    def hashed(self, pair: Pair) -> Pair | None:
        """Return the pair's pins with the hashes from our page, or None if the pair has no resolution."""
        if not self._resolve(pair, f"{self.ours}at/{pair.serial}/simple/").pins:
            return None
        pins = []
        for item in json.loads((self.folder / "report.json").read_text())["install"]:
            sha256 = item["download_info"]["archive_info"]["hashes"]["sha256"]
            pins.append(f"{item['metadata']['name']}=={item['metadata']['version']} --hash=sha256:{sha256}")
        return Pair("pip", tuple(pins), pair.serial, ("--require-hashes",))

    def _resolve(self, pair: Pair, index_url: str) -> Answer:
        if pair.installer == "uv":
            return resolve_by_uv(index_url, pair.requirements, self.folder, ["--no-cache", *pair.options])
        kinds = ["--no-build-isolation"] if pair.installer == "pip with sdists" else ["--only-binary=:all:"]
        return resolve_by_pip(self.pip, index_url, pair.requirements, self.folder, [*kinds, *pair.options])


def draw_pair(index: ResolvableIndex, installer: str, drawn: random.Random) -> Pair:
    """Return random requirements at a random serial, mostly of projects that existed then."""
    serial = drawn.choice(index.serials)
    sources = {canonicalize_name(name) for name in SDIST_NAMES}
    there = sorted(index.history.state_at(serial).projects)
    wheels, sdists = [name for name in there if name not in sources], [name for name in there if name in sources]
    wanted = drawn.sample(wheels, min(len(wheels), drawn.choice([1, 1, 1, 2, 3])))
    if installer == "pip with sdists" and sdists:
        wanted[:1] = [drawn.choice(sdists)]
    if drawn.random() < 0.1 or not wanted:
        wanted.append(drawn.choice(NAMES))
    wanted = [drawn.choice([name, name.upper(), name.replace("-", "_")]) for name in wanted]
    extras = [drawn.choice(["", "", "", "[more]", "[odd-name]"]) for _ in wanted]
    requirements = tuple(
        f"{name}{extra}{drawn.choice(SPECIFIERS)}" for name, extra in zip(dict.fromkeys(wanted), extras, strict=False)
    )
    until = BEGAN + timedelta(hours=drawn.uniform(0, 7 * len(index.serials)))
    options: list[str] = []
    if drawn.random() < 0.15:
        options += ["--pre"] if installer != "uv" else ["--prerelease=allow"]
    if drawn.random() < 0.2:
        name = "--exclude-newer" if installer == "uv" else "--uploaded-prior-to"
        options.append(f"{name}={until.isoformat()}")
    return Pair(installer, requirements, serial, tuple(options))


@contextmanager
def resolvable(folder: Path, files: int, seed: int) -> Iterator[Truth]:
    """Yield an index of `files` files that was crawled while they were uploaded, its service and its replay."""
    drawn = random.Random(seed)
    with ExitStack() as stack:
        published: Published = stack.enter_context(published_index(folder))
        published.index.wheel("first", "1.0", at=BEGAN)
        crawl_full(published.index.crawler(published.catalog))

        def crawl() -> None:
            crawl_incremental(published.index.crawler(published.catalog))

        index = ResolvableIndex(folder / "built", published.index.history, crawl, drawn)
        index.fill(files)
        requested: list[str] = []

        def count(request: Request) -> Response | None:
            requested.append(request.url.path)
            return None

        published.index.faults = count
        # To check hashes, pip downloads files, even those that are quarantined by now.
        service = open_service(published.settings(service_allow_quarantined=True))
        stack.callback(service.close)
        ours = stack.enter_context(running(service))
        theirs = stack.enter_context(_replayed(published.index.history, published.index.url.removesuffix("/simple/")))
        pip = stack.enter_context(forked_pip())
        yield Truth(index, ours, theirs, pip, folder, requested)


@contextmanager
def _replayed(history: History, base: str) -> Iterator[str]:
    """Serve a devindex's pages as of a serial below `/SERIAL/simple/`. Their files are at `base`."""

    def page(request: Request) -> Response:
        project = history.state_at(request.path_params["serial"]).project(request.path_params["project"])
        if project is None:
            return Response(status_code=404)
        form = served_pages.choose(request.headers.get("accept"))
        rendered = (
            served_pages.simple_project_json if form == served_pages.V1_JSON else served_pages.simple_project_html
        )
        return Response(rendered(project, base), media_type=form)

    app = Starlette(routes=[Route("/{serial:int}/simple/{project}/", page)])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, name="replayed")
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


def resolve_pairs(truth: Truth, pairs: int, seed: int, kinds: Sequence[str] = KINDS) -> Seen:
    """Resolve `pairs` random pairs with each kind of installer. Every fifth pip pair also resolves its pins with
    hashes.
    """
    seen, drawn = Seen(), random.Random(seed)
    for number in range(pairs):
        for kind in kinds:
            pair = draw_pair(truth.index, kind, drawn)
            truth.compare(pair, seen)
            if kind == "pip" and number % 5 == 0 and (hashed := truth.hashed(pair)):
                truth.compare(hashed, seen)
    return seen


def report(seen: Seen, files: int, serials: int, seconds: float) -> dict[str, Any]:
    """Return the counts as a JSON document for people."""
    return {
        "files": files,
        "serials": serials,
        "pairs": dict(seen.pairs),
        "resolved": dict(seen.resolved),
        "pins": seen.pins,
        "origin_requests_by_pip": seen.origin_requests,
        "differing": len(seen.differing),
        "seconds": round(seconds, 1),
    }


def main() -> int:
    """Print the counts. Return 1 if a pair differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500, help="by each installer")
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    began = time.monotonic()
    try:
        with resolvable(folder, options.files, options.seed) as truth:
            seen = resolve_pairs(truth, options.pairs, options.seed, options.kinds)
            index = truth.index
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for one in seen.differing:
        sys.stdout.write(f"{one}\n\n")
    sys.stdout.write(
        json.dumps(report(seen, index.files, len(index.serials), time.monotonic() - began), indent=1) + "\n"
    )
    return 1 if seen.differing or seen.origin_requests else 0


if __name__ == "__main__":
    sys.exit(main())
