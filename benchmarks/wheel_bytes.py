"""Measure the bytes and requests of reading remote wheels in parts, compared with fetching them whole.

    python -m benchmarks.wheel_bytes [FOLDER ...]

Serves the wheels of each FOLDER (default .corpora/closure; `python -m benchmarks.corpora.download` fetches it) from a
devindex on loopback and reads each through HTTP ranges. It fails unless every record and extract equals the result from
the whole local file, and unless the server has received exactly the requests that the client counts.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request

from benchmarks.corpora.download import FOLDER
from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets.distributions.reader import read_distribution
from pypi_assets.index.client import IndexClient
from pypi_assets.index.models import FetchedBytes, IndexFile, ProjectPage
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Retries

KIB = 1024
SIZE_CLASSES = (32 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB, 16384 * KIB)
MAX_BYTES = 2048 * 1024**2
GOAL_SHARE, GOAL_REQUESTS = 0.03, 2.2


@dataclass(frozen=True)
class Read:
    size: int
    fetched: FetchedBytes
    used_sidecar: bool


class Requests:
    """Records the requests that the server receives."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, request: Request) -> None:
        self.paths.append(request.url.path)


def read_remotely(client: IndexClient, file: IndexFile, path: Path, requests: Requests) -> Read:
    assert file.size is not None
    requests.paths.clear()
    with client.open_ranges(
        file.url,
        sha256=file.sha256,
        size=file.size,
        max_bytes=MAX_BYTES,
        metadata_sha256=file.core_metadata_sha256,
        has_sidecar=file.core_metadata,
    ) as ranged:
        remote = read_distribution(ranged, file.filename)
        fetched = ranged.fetched
    with path.open("rb") as source:
        local = read_distribution(source, file.filename)
    assert local.record.sha256 == file.sha256
    assert remote.record == replace(local.record, sha256=None, size=None), file.filename
    assert remote.extract == local.extract, file.filename
    assert len(requests.paths) == fetched.requests, file.filename
    return Read(file.size, fetched, any(path.endswith(".metadata") for path in requests.paths))


def read_all(wheels: Sequence[Path], folder: Path) -> list[Read]:
    history = History(folder)
    for wheel in wheels:
        history.add(wheel)
    paths = {wheel.name: wheel for wheel in wheels}
    requests = Requests()
    reads = []
    with (
        running(folder, faults=requests) as url,
        IndexClient(
            url,
            changelog_url=url.removesuffix("simple/") + "pypi",
            rates=Rates(RateLimit(math.inf)),
            retries=Retries(1),
        ) as client,
    ):
        for project in client.listing().projects:
            page = client.project_page(project.normalized)
            assert isinstance(page, ProjectPage)
            reads += [read_remotely(client, file, paths[file.filename], requests) for file in page.files]
    assert len(reads) == len(wheels)
    return reads


def size_class(size: int) -> str:
    bound = next((bound for bound in SIZE_CLASSES if size <= bound), None)
    bound_kib = (bound or SIZE_CLASSES[-1]) // KIB
    text = f"{bound_kib} KiB" if bound_kib < KIB else f"{bound_kib // KIB} MiB"
    return f"> {text}" if bound is None else f"<= {text}"


def row(name: str, reads: Sequence[Read]) -> str:
    size = sum(read.size for read in reads)
    fetched = sum(read.fetched.bytes for read in reads)
    counts = [min(read.fetched.requests, 3) for read in reads]
    shares = "".join(f"{counts.count(number) / len(reads):7.0%}" for number in (1, 2, 3))
    requests = sum(read.fetched.requests for read in reads) / len(reads)
    sidecars = sum(read.used_sidecar for read in reads)
    return (
        f"{name:12}{len(reads):6}{size / 1e6:10.2f}{fetched / 1e6:10.2f}{fetched / size:8.2%}{size / fetched:8.1f}"
        f"{requests:9.2f}{shares}{sidecars:9}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", default=[FOLDER / "closure"], metavar="FOLDER")
    folders = parser.parse_args().folders
    wheels = {path.name: path for folder in folders for path in sorted(folder.glob("*.whl"))}
    if not wheels:
        parser.error(f"no wheels in {', '.join(map(str, folders))}; python -m benchmarks.corpora.download fetches them")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reads = read_all(list(wheels.values()), Path(folder))
    print(f"{'wheel':12}{'files':>6}{'MB':>10}{'fetched':>10}{'share':>8}{'ratio':>8}{'requests':>9}", end="")
    print(f"{'1':>7}{'2':>7}{'3+':>7}{'sidecar':>9}")
    for name in dict.fromkeys(size_class(read.size) for read in sorted(reads, key=lambda read: read.size)):
        print(row(name, [read for read in reads if size_class(read.size) == name]))
    print(row("all", reads))
    share = sum(read.fetched.bytes for read in reads) / sum(read.size for read in reads)
    requests = sum(read.fetched.requests for read in reads) / len(reads)
    met = "met" if share <= GOAL_SHARE and requests <= GOAL_REQUESTS else "MISSED"
    print(f"goal: at most {GOAL_SHARE:.0%} of the bytes, {GOAL_REQUESTS} requests a wheel: {met}")
    print(f"{len(reads)} records and extracts equal those of the whole files ({time.monotonic() - started:.0f} s)")


if __name__ == "__main__":
    main()
