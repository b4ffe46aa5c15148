"""Dumps of any size with PyPI's skew, made from the modules and requirements of real distributions.

    python -m benchmarks.generated FOLDER [--rows 1000000] [--seed 0]
    python -m benchmarks.generated --collect [CORPORA]

The first command writes a full dump below the storage FOLDER. Projects have 11 releases and 27 files on average; half
of them have four releases or fewer, and a few have thousands of files. Each project has the modules and the
requirements of a real distribution, under its own name. Its files share them, with a few changes from time to time. The
second command reads these lists from the distributions of CORPORA (see benchmarks/corpora/download.py) and stores them
in real_lists.json.gz.

The same seed gives the same rows, and more rows mean more projects.
"""

import argparse
import gzip
import hashlib
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from random import Random

import orjson

from benchmarks.corpora.download import FOLDER
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import DumpFile, DumpFormat, DumpKind
from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.dumps.dump_format import Row, write_rows
from pypi_assets.dumps.dump_manifest import DumpManifest, file_path, shard_of, write_manifest
from pypi_assets.storage.store import Storage, open_storage

LISTS = Path(__file__).with_name("real_lists.json.gz")
SERIAL = 40_000_000
_MEDIAN_RELEASES, _SPREAD = 4, 1.42  # of a log-normal distribution with a mean of 11
_KINDS = (("sdist", 20), ("wheel", 15), ("both", 55), ("platforms", 10))
_MEDIAN_PLATFORM_WHEELS, _PLATFORM_SPREAD = 7, 0.8
RELEASES_A_LIST = 4
_WORDS = ("auto", "cloud", "data", "deep", "flow", "http", "json", "lite", "micro", "net", "py", "smart", "tiny", "web")
_NOTHING_READ: Row = dict.fromkeys(
    (
        "summary",
        "license_expression",
        "license",
        "license_classifiers",
        "console_scripts",
        "gui_scripts",
        "entry_point_groups",
        "project_urls",
        "import_names",
    )
)
_PLATFORMS = [
    f"cp3{minor}-cp3{minor}-{platform}"
    for minor in range(14, 7, -1)
    for platform in (
        "manylinux2014_x86_64.manylinux_2_17_x86_64",
        "win_amd64",
        "macosx_11_0_arm64",
        "musllinux_1_2_x86_64",
        "macosx_10_9_x86_64",
        "manylinux2014_aarch64.manylinux_2_17_aarch64",
        "win32",
        "musllinux_1_2_aarch64",
    )
]


@dataclass(frozen=True, slots=True)
class RealLists:
    """The modules and requirements of a real distribution. `top` is the package with most of its modules."""

    top: str
    modules: tuple[str, ...]
    requires_dist: tuple[str, ...]
    provides_extra: tuple[str, ...]
    requires_python: str | None


@dataclass(frozen=True, slots=True)
class Project:
    """A project of `releases` releases and at most `files` files. `seed` and `number` determine everything else."""

    seed: int
    number: int
    releases: int
    suffixes: tuple[str, ...]
    files: int

    @property
    def name(self) -> str:
        """Return the display name. The normalized names of all projects are different."""
        words = Random(f"{self.seed}/{self.number}/name")
        first, second = words.choice(_WORDS), words.choice(_WORDS)
        return f"{first.title() if words.random() < 0.2 else first}-{second}{self.number}"

    @property
    def normalized(self) -> str:
        return self.name.lower()


@cache
def real_lists() -> tuple[RealLists, ...]:
    return tuple(
        RealLists(top, tuple(modules), tuple(requires), tuple(extras), python)
        for top, modules, requires, extras, python in orjson.loads(gzip.decompress(LISTS.read_bytes()))
    )


def collect(corpora: Path) -> int:
    """Read the lists of all distributions of the folder, each once; return their number."""
    found: set[tuple[object, ...]] = set()
    for path in corpora.glob("*/*"):
        if path.name.endswith((".whl", ".tar.gz")):
            record = read_path(path)
            if record.modules and record.requires_dist is not None:
                top = Counter(module.partition(".")[0] for module in record.modules).most_common(1)[0][0]
                found.add((top, record.modules, record.requires_dist, record.provides_extra, record.requires_python))
    ordered = sorted(found, key=repr)
    LISTS.write_bytes(gzip.compress(orjson.dumps(ordered), 9, mtime=0))
    return len(ordered)


def generate_projects(rows: int, seed: int = 0) -> Iterator[Project]:
    """Yield as many projects as have `rows` files together. The last one is truncated."""
    number = 0
    while rows > 0:
        draw = Random(f"{seed}/{number}/size")
        releases = max(1, round(draw.lognormvariate(math.log(_MEDIAN_RELEASES), _SPREAD)))
        kind = draw.choices([kind for kind, _ in _KINDS], [weight for _, weight in _KINDS])[0]
        suffixes = {"sdist": (".tar.gz",), "wheel": ("-py3-none-any.whl",)}.get(kind, ("-py3-none-any.whl", ".tar.gz"))
        if kind == "platforms":
            suffixes = platform_suffixes(
                round(draw.lognormvariate(math.log(_MEDIAN_PLATFORM_WHEELS), _PLATFORM_SPREAD))
            )
        files = min(rows, releases * len(suffixes))
        yield Project(seed, number, releases, suffixes, files)
        rows -= files
        number += 1


def platform_suffixes(wheels: int) -> tuple[str, ...]:
    """Return the suffixes of the files of a release with about `wheels` platform wheels, and its sdist."""
    return (*(f"-{tags}.whl" for tags in _PLATFORMS[: max(2, wheels)]), ".tar.gz")


def project_rows(project: Project, serial: int = SERIAL) -> list[Row]:
    """Return the rows of a project's files, all live at `serial`, in the order of dumps."""
    rows = [row for release in range(project.releases) for row in release_rows(project, release, serial)]
    return sorted(rows[: project.files], key=lambda row: (str(row["version"]), str(row["filename"])))


def release_rows(project: Project, release: int, serial: int = SERIAL) -> Iterator[Row]:
    """Yield the rows of one release, which may be beyond the project's own releases."""
    draw = Random(f"{project.seed}/{project.number}/{release}")
    name, normalized = project.name, project.normalized
    stem = normalized.replace("-", "_")
    version = f"{release // 50}.{release // 5 % 10}.{release % 5}"
    lists = project_lists(project, release)
    since = serial * (release + 1) // (project.releases + 2)
    uploaded_at = f"20{10 + release % 16:02}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}T12:34:56.{since:06}Z"
    yanked, broken = draw.random() < 0.01, draw.random() < 0.02
    for suffix in project.suffixes:
        filename = f"{stem}-{version}{suffix}"
        digest = hashlib.sha512(f"{project.seed}/{filename}".encode()).hexdigest()
        wheel = suffix.endswith(".whl")
        yield {
            "project": name,
            "normalized": normalized,
            "version": version,
            "filename": filename,
            "tombstone": False,
            "kind": "wheel" if wheel else "sdist",
            "url": f"https://files.example.org/packages/{digest[:2]}/{digest[2:4]}/{digest[4:64]}/{filename}",
            "sha256": digest[:64],
            "size": int(digest[:5], 16) + 1_000,
            "uploaded_at": uploaded_at,
            "requires_python": lists.requires_python,
            "yanked": yanked,
            "yanked_reason": "broken" if yanked else None,
            "core_metadata_sha256": digest[64:] if wheel else None,
            "live_since": since,
            "outcome": "error" if broken else "data",
            "error_kind": "corrupt archive" if broken else None,
            "extractor_version": EXTRACTOR_VERSION,
            "metadata_version": None if broken else "2.1",
            "requires_dist": None if broken else lists.requires_dist,
            "provides_extra": () if broken else lists.provides_extra,
            "modules": None if broken else lists.modules,
            "modules_by": None if broken else "archive" if wheel else "package_dir",
            "requires_by": None if broken else "METADATA" if wheel else "PKG-INFO",
            "stubs": (),
            "left_out": 0,
            **(_NOTHING_READ if broken else _described(project)),
            "modules_grade": None if broken else "exact",
            "notes": None if broken else (),
            "start_up_paths": () if wheel and not broken else None,
            "refusals": None if broken else (),
            "installed_metadata": None,
            "project_status": None,
            "provenance": None,
            "first_seen_at": None,
        }


def _described(project: Project) -> Row:
    """Return the common fields of a project's files. A quarter of the projects install commands, some with common
    names.
    """
    draw = Random(f"{project.seed}/{project.number}/described")
    stem = project.normalized.replace("-", "_")
    commands = [project.normalized, f"{project.normalized}-admin", draw.choice(_WORDS)][: draw.randint(1, 3)]
    scripts = tuple(f"{command} = {stem}.cli:main" for command in commands) if draw.random() < 0.25 else ()
    home = f"https://example.org/{project.normalized}"
    has_expression = draw.random() < 0.5
    return {
        "summary": f"The {project.name} package: {' '.join(draw.choices(_WORDS, k=8))}",
        "license_expression": "MIT" if has_expression else None,
        "license": None if has_expression else "MIT License",
        "license_classifiers": () if has_expression else ("License :: OSI Approved :: MIT License",),
        "console_scripts": scripts,
        "gui_scripts": (),
        "entry_point_groups": ("console_scripts",) if scripts else (),
        "project_urls": (f"Homepage, {home}", f"Source, {home}/source"),
        "import_names": None,
    }


def changed_rows(projects: Sequence[Project], changed: int, serial: int, seed: int = 0) -> list[Row]:
    """Return the `changed` rows of a range that ends at `serial`: new releases of all projects, and a tombstone in
    ten.
    """
    draw = Random(f"{seed}/{serial}/changes")
    rows: list[Row] = []
    for project in draw.sample(projects, len(projects)):
        old = next(release_rows(project, 0))
        rows += [row | {"live_since": serial} for row in release_rows(project, project.releases, serial)]
        if draw.random() < 0.25:
            columns = ("project", "normalized", "version", "filename")
            rows.append({column: old[column] for column in columns} | {"tombstone": True})
        if len(rows) >= changed:
            break
    return sorted(rows[:changed], key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))


def write_full_dump(
    storage: Storage,
    projects: Iterable[Project],
    *,
    serial: int = SERIAL,
    sequence: int = 1,
    shards: int = 256,
    form: DumpFormat = DumpFormat.GZIP,
) -> DumpManifest:
    """Write and commit a full dump of `projects`. `restore_index` adds it to a catalog."""
    serials = SerialRange(0, serial)
    ordered = sorted((shard_of(project.normalized, shards), project.normalized, project) for project in projects)
    of_shard = {shard: list(group) for shard, group in groupby(ordered, key=lambda entry: entry[0])}
    files = []
    for shard in range(shards):
        rows = (row for _, _, project in of_shard.get(shard, []) for row in project_rows(project, serial))
        files.append(_write_file(storage, serials.key, shard, rows, form))
    return _commit(storage, DumpKind.FULL, serials, sequence, files)


def write_full_dump_of(storage: Storage, rows: Iterable[Row], *, serial: int = SERIAL) -> DumpManifest:
    """Write and commit a full dump of `rows` in one file."""
    serials = SerialRange(0, serial)
    return _commit(storage, DumpKind.FULL, serials, 1, [_write_file(storage, serials.key, 0, rows)])


def write_range_dump(storage: Storage, rows: Iterable[Row], serials: SerialRange, *, sequence: int) -> DumpManifest:
    """Write and commit an incremental dump of `rows`, in the form of `changed_rows`."""
    return _commit(storage, DumpKind.INCREMENTAL, serials, sequence, [_write_file(storage, serials.key, 0, rows)])


@lru_cache(maxsize=16)
def _renamed(number: int, stem: str) -> RealLists:
    """Return the real lists `number`, with `stem` instead of the top-level package."""
    real = real_lists()[number]
    modules = tuple(
        sorted(stem + module[len(real.top) :] if _is_within(module, real.top) else module for module in real.modules)
    )
    return RealLists(stem, modules, real.requires_dist, real.provides_extra, real.requires_python)


def project_lists(project: Project, release: int) -> RealLists:
    """Return the lists that the files of some releases share: the project's own, with a few changes."""
    epoch = release // RELEASES_A_LIST
    own = Random(f"{project.seed}/{project.number}/lists").randrange(len(real_lists()))
    return _changed(project.seed, own, project.normalized.replace("-", "_"), epoch)


@lru_cache(maxsize=16)
def _changed(seed: int, own: int, stem: str, epoch: int) -> RealLists:
    lists = _renamed(own, stem)
    draw = Random(f"{seed}/{stem}/{epoch}/lists")
    share = draw.random() * 0.15
    modules = [module for module in lists.modules if draw.random() > share]
    modules += [f"{stem}.added{epoch}_{number}" for number in range(draw.randrange(3))]
    requires = list(lists.requires_dist)
    if requires:
        at = draw.randrange(len(requires))
        name, semicolon, marker = requires[at].partition(";")
        requires[at] = f"{name.rstrip(' 0123456789.')}{epoch}{semicolon and ' ;'}{marker}"
    return RealLists(stem, tuple(sorted(modules)), tuple(requires), lists.provides_extra, lists.requires_python)


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _write_file(
    storage: Storage, directory: str, shard: int, rows: Iterable[Row], form: DumpFormat = DumpFormat.GZIP
) -> DumpFile:
    name = f"python_distribution_data{shard:04}{form.ending}"
    with tempfile.TemporaryFile() as local:
        count = write_rows(local, rows, form=form)
        size = local.tell()
        local.seek(0)
        digest = hashlib.file_digest(local, "sha256").hexdigest()
        local.seek(0)
        storage.put(file_path(directory, name), local)
    return DumpFile(shard, name, count, size, digest)


def _commit(
    storage: Storage, kind: DumpKind, serials: SerialRange, sequence: int, files: Sequence[DumpFile]
) -> DumpManifest:
    manifest = DumpManifest(kind, serials, serials.key, sequence, len(files), (), tuple(files))
    write_manifest(storage, manifest)
    return manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--collect", action="store_true", help="read the real lists from CORPORA")
    options = parser.parse_args()
    if options.collect:
        print(f"{collect(options.folder or FOLDER)} distributions read")
        return
    if options.folder is None:
        parser.error("name a folder")
    started = time.monotonic()
    storage = open_storage(options.folder.resolve().as_uri())
    projects = list(generate_projects(options.rows, options.seed))
    manifest = write_full_dump(storage, projects)
    print("| rows | projects | MB gzipped | seconds |\n|---|---|---|---|")
    seconds = time.monotonic() - started
    print(f"| {manifest.rows:,} | {len(projects):,} | {manifest.size / 1e6:.0f} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
