"""Measure how fast sdists are read, compared with pkginfo and tarfile, and the share of each step.

    python -m benchmarks.read_sdists [FOLDER]

`FOLDER` contains sdists, by default the pairs that `python -m benchmarks.corpora.download` fetches. First, every
.tar.gz in it must give the same names and contents as tarfile. Then the mix is read in one process, in each way in each
of five rounds. Figures are medians, and ratios compare figures of the same round.
"""

import argparse
import hashlib
import io
import statistics
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pkginfo

from benchmarks.corpora.download import FOLDER
from pypi_assets.distributions.archives import trimmed
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, ReadLimits
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.sdists import is_wanted
from pypi_assets.distributions.sources import SequentialSource
from pypi_assets.distributions.tars import extract_tar, inflated

ROUNDS = 5
MIX = (
    *("requests", "click", "jinja2", "pygments", "sqlalchemy", "setuptools", "rich", "flask", "packaging", "urllib3"),
    *("attrs", "pluggy", "certifi", "markupsafe", "itsdangerous", "blinker", "six", "platformdirs", "wheel", "tqdm"),
    *("typing_extensions", "anyio", "httpx", "greenlet", "werkzeug"),
)
"""25 files, 23 MB, 148 MB inflated."""


def by_tarfile(path: Path) -> tuple[list[str], dict[str, bytes]]:
    """Return the names of all files, and the content of the wanted small ones."""
    names, files = [], {}
    with tarfile.open(path) as archive:
        for info in archive:
            if info.isreg() or info.issym() or info.islnk():
                names.append(info.name.removeprefix("./"))
            if info.isreg() and is_wanted(names[-1]) and (member := archive.extractfile(info)) is not None:
                files[names[-1]] = member.read()
    return names, files


def sequential(content: bytes, *, hash_content: bool = False) -> SequentialSource:
    return SequentialSource(io.BytesIO(content), Budget(ReadLimits()), hash_content=hash_content)


def extract_alone(content: bytes) -> Extract:
    return extract_tar(sequential(content), is_wanted, Budget(ReadLimits()))


def inflate_alone(content: bytes) -> int:
    return sum(map(len, inflated(sequential(content), Budget(ReadLimits()), [])))


def read(path: Path, *, hash_content: bool) -> Extract:
    with path.open("rb") as source:
        return read_distribution(source, path.name, hash_content=hash_content).extract


def read_by_others(path: Path) -> None:
    pkginfo.SDist(str(path))
    by_tarfile(path)


def check(paths: list[Path]) -> None:
    """Raise ValueError if tarfile reads other names or contents from one of `paths`."""
    for path in paths:
        names, files = by_tarfile(path)
        found = extract_alone(path.read_bytes())
        kept = {name: trimmed(name, content) for name, content in files.items()}
        if found.error or set(found.paths) != set(names) or found.files != kept:
            raise ValueError(f"{path.name}: not what tarfile sees; {found.error}")
    print(f"{len(paths)} sdists: names and contents as tarfile sees them")


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER / "pairs")
    folder: Path = parser.parse_args().folder
    check(sorted(folder.glob("*.tar.gz")))
    paths = [next(folder.glob(f"{name}-[0-9]*.tar.gz")) for name in MIX]
    contents = [path.read_bytes() for path in paths]
    extracts = [(read(path, hash_content=False), path.name) for path in paths]
    size, inflated_size = sum(map(len, contents)), sum(map(inflate_alone, contents))
    members = sum(len(extract.paths) for extract, _ in extracts)
    print(f"{len(paths)} sdists, {size / 1e6:.1f} MB, {inflated_size / 1e6:.1f} MB inflated, {members} files\n")

    works: dict[str, Callable[[], object]] = {
        "pkginfo and tarfile": lambda: [read_by_others(path) for path in paths],
        "tarfile alone": lambda: [by_tarfile(path) for path in paths],
        "read_distribution": lambda: [read(path, hash_content=True) for path in paths],
        "without the hash": lambda: [read(path, hash_content=False) for path in paths],
        "inflating": lambda: [inflate_alone(content) for content in contents],
        "inflating and walking": lambda: [extract_alone(content) for content in contents],
        "sha256": lambda: [hashlib.sha256(content).digest() for content in contents],
        "make_record": lambda: [make_record(extract, name) for extract, name in extracts],
    }
    rounds = [{name: milliseconds(work) for name, work in works.items()} for _ in range(ROUNDS)]
    for name in works:
        spent = statistics.median(times[name] for times in rounds)
        ratio = statistics.median(times["pkginfo and tarfile"] / times[name] for times in rounds)
        share = statistics.median(times[name] / times["read_distribution"] for times in rounds)
        print(f"{name:<22} {spent:>7.1f} ms {len(paths) / spent * 1000:>7.0f}/s {ratio:>6.1f}x {share:>7.0%}")


if __name__ == "__main__":
    main()
