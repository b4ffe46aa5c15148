"""Downloads the real distributions that the reader is measured on, with pip, about 450 MB the first time.

    python -m benchmarks.corpora.download [--wheels] [--all] [FOLDER]

`FOLDER` (default .corpora) gets `closure/`, the wheels of this project's own pinned dependencies, and `pairs/`, an
sdist and a wheel of each release in pairs.txt, which must be the files that it names by their sha256. Sets whose name
begins with `named-` come only with `--all`, 1.7 GB more, each in a folder of its name. With `--wheels` there are no
sdists, and of the wheels of `pairs/` those that `closure/` lacks. pip requests the metadata of an sdist from its build
backend before it keeps it. Here every backend is replaced by one that copies the sdist's PKG-INFO, so that nothing of
a distribution is run.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parents[2]
PAIRS = Path(__file__).with_name("pairs.txt")
FOLDER = ROOT / ".corpora"
OLD_PYTHONS = ("3.7 cp37m", "2.7 cp27mu", "3.5 cp35m")
"""Version and ABI of Pythons that old wheels are for, where the running one has none."""

STAND_IN = """
import os
import pathlib
import sys
import types
from email.parser import BytesHeaderParser


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    content = pathlib.Path("PKG-INFO").read_bytes()
    fields = BytesHeaderParser().parsebytes(content)
    info = pathlib.Path(folder, fields["Name"].replace("-", "_") + "-" + fields["Version"] + ".dist-info")
    info.mkdir()
    (info / "METADATA").write_bytes(content)
    return info.name


def build_wheel(*_, **__):
    raise NotImplementedError("only metadata are copied here")


named = os.environ.get("_PYPROJECT_HOOKS_BUILD_BACKEND")
if named:
    os.environ.pop("_PYPROJECT_HOOKS_BACKEND_PATH_JSON", None)
    module, _, inside = named.partition(":")
    backend = sys.modules[module] = types.ModuleType(module)
    backend.prepare_metadata_for_build_wheel = prepare_metadata_for_build_wheel
    backend.build_wheel = build_wheel
    for name in filter(None, inside.split(".")):
        setattr(backend, name, backend)
"""
"""A sitecustomize that stands in for the build backend in each process that pip starts for one. Backends that lie in
the sdist itself are never looked for."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An sdist and a wheel of one release, as pairs.txt lists them.

    `stratum` is the kind of project, `chosen_as` the set that it is in: `chosen` are those that the rules were written
    with, `known` those of which a fault was known, and `drawn-N` were drawn at random and compared once before any rule
    was changed for them. So were `named-N`, which were named by kind of project. `wheel_sha256` is None where the wheel
    depends on the platform.
    """

    release: str
    stratum: str
    chosen_as: str
    sdist_sha256: str
    wheel_sha256: str | None

    @property
    def folder(self) -> str:
        """The folder that its files are in, below that of all."""
        return self.chosen_as if self.chosen_as.startswith("named-") else "pairs"


def releases(path: Path) -> list[str]:
    """The `name==version` lines of a list."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def listed_pairs() -> list[Pair]:
    """What pairs.txt lists."""
    return [
        Pair(release, stratum, chosen_as, sdist, None if wheel == "-" else wheel)
        for release, stratum, chosen_as, sdist, wheel in map(str.split, releases(PAIRS))
    ]


def other_files(folder: Path) -> list[str]:
    """The names of those files in `folder` that are not what pairs.txt lists."""
    sdists = {canonical(pair.release): pair.sdist_sha256 for pair in listed_pairs()}
    wheels = {canonical(pair.release): pair.wheel_sha256 for pair in listed_pairs()}
    found = []
    for path in sorted(folder.iterdir()):
        is_wheel = path.suffix == ".whl"
        name, version = parse_wheel_filename(path.name)[:2] if is_wheel else parse_sdist_filename(path.name)
        expected = (wheels if is_wheel else sdists).get(f"{name}=={version}")
        if expected and hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            found.append(path.name)
    return found


def pip_download(folder: Path, *options: str, backends: Path | None = None) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check"]
    pip += ["download", "--no-deps", "--ignore-requires-python"]  # they are read, not run
    environment = os.environ | ({"PYTHONPATH": str(backends)} if backends else {})
    subprocess.run([*pip, "--dest", str(folder), *options], env=environment, check=True)


def download_wheel(folder: Path, release: str) -> bool:
    """Downloads a wheel of `release`: for this Python, else for one of OLD_PYTHONS. Returns whether there is one."""
    for options in ([], *map(_options_of, OLD_PYTHONS)):
        with suppress(subprocess.CalledProcessError):
            pip_download(folder, "--only-binary", ":all:", *options, release)
            return True
    return False


def _options_of(python: str) -> list[str]:
    version, abi = python.split()
    options = ["--python-version", version, "--implementation", "cp", "--abi", abi, "--abi", "none"]
    return [*options, "--platform", "manylinux1_x86_64", "--platform", "any"]


def sdists_in(folder: Path) -> list[Path]:
    """Paths of sdists in each format that the pairs have."""
    return [*folder.glob("*.tar.gz"), *folder.glob("*.zip")]


def have_sdist(folder: Path) -> set[str]:
    names = (parse_sdist_filename(path.name) for path in sdists_in(folder))
    return {f"{name}=={version}" for name, version in names}


def have_wheel(folder: Path) -> set[str]:
    names = (parse_wheel_filename(path.name)[:2] for path in folder.glob("*.whl"))
    return {f"{name}=={version}" for name, version in names}


def canonical(release: str) -> str:
    name, _, version = release.partition("==")
    name, version = parse_sdist_filename(f"{name}-{version}.tar.gz")
    return f"{name}=={version}"


def download_closure(closure: Path) -> None:
    missing = [line for line in releases(ROOT / "constraints.txt") if canonical(line) not in have_wheel(closure)]
    if missing:
        pip_download(closure, "--only-binary", ":all:", *missing)


def download_sdists(folder: Path, listed: list[str]) -> None:
    missing = [release for release in listed if canonical(release) not in have_sdist(folder)]
    with tempfile.TemporaryDirectory() as backends, ThreadPoolExecutor(4) as pool:
        Path(backends, "sitecustomize.py").write_text(STAND_IN)
        as_sdist = ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517"]
        for _ in pool.map(lambda release: pip_download(folder, *as_sdist, release, backends=Path(backends)), missing):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--wheels", action="store_true", help="wheels only, about 300 MB")
    parser.add_argument("--all", action="store_true", help="the sets named-N too, about 1.7 GB more")
    options = parser.parse_args()
    closure = options.folder / "closure"
    closure.mkdir(parents=True, exist_ok=True)
    download_closure(closure)
    print(f"{len(have_wheel(closure))} wheels in {closure}")
    names = dict.fromkeys(pair.folder for pair in listed_pairs() if options.all or pair.folder == "pairs")
    for folder in (options.folder / name for name in names):
        folder.mkdir(exist_ok=True)
        listed = [pair.release for pair in listed_pairs() if pair.folder == folder.name]
        known = have_wheel(folder) | (have_wheel(closure) if options.wheels else set())
        wheels = [release for release in listed if canonical(release) not in known]
        if wheels and folder.name == "pairs":
            pip_download(folder, "--only-binary", ":all:", *wheels)
        elif without := [release for release in wheels if not download_wheel(folder, release)]:
            print(f"no wheels for this platform: {', '.join(without)}")
        if not options.wheels:
            download_sdists(folder, listed)
        if others := other_files(folder):
            sys.exit(f"not the files that pairs.txt lists: {', '.join(others)}")
        print(f"{len(have_sdist(folder) & have_wheel(folder))} pairs in {folder}")


if __name__ == "__main__":
    main()
