"""Downloads the real distributions that the reader is measured on, with pip, about 450 MB the first time.

    python -m benchmarks.corpora.download [--wheels] [FOLDER]

`FOLDER` (default .corpora) gets `closure/`, the wheels of this project's own pinned dependencies, and `pairs/`, an
sdist and a wheel of each release in pairs.txt; with `--wheels`, no sdists, and of these wheels those that `closure/`
lacks. pip requests the metadata of an sdist from its build backend before it keeps it; here every backend is replaced
by one that copies the sdist's PKG-INFO, so that nothing of a distribution is run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parents[2]
PAIRS = Path(__file__).with_name("pairs.txt")
FOLDER = ROOT / ".corpora"

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


def releases(path: Path) -> list[str]:
    """The `name==version` lines of a list."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def pip_download(folder: Path, *options: str, backends: Path | None = None) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check"]
    pip += ["download", "--no-deps", "--ignore-requires-python"]  # they are read, not run
    environment = os.environ | ({"PYTHONPATH": str(backends)} if backends else {})
    subprocess.run([*pip, "--dest", str(folder), *options], env=environment, check=True)


def have_sdist(folder: Path) -> set[str]:
    names = (parse_sdist_filename(path.name) for path in folder.glob("*.tar.gz"))
    return {f"{name}=={version}" for name, version in names}


def have_wheel(folder: Path) -> set[str]:
    names = (parse_wheel_filename(path.name)[:2] for path in folder.glob("*.whl"))
    return {f"{name}=={version}" for name, version in names}


def canonical(release: str) -> str:
    name, _, version = release.partition("==")
    name, version = parse_sdist_filename(f"{name}-{version}.tar.gz")
    return f"{name}=={version}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--wheels", action="store_true", help="wheels only, about 300 MB")
    options = parser.parse_args()
    folder = options.folder
    closure, pairs = folder / "closure", folder / "pairs"
    closure.mkdir(parents=True, exist_ok=True)
    pairs.mkdir(exist_ok=True)
    missing = [line for line in releases(ROOT / "constraints.txt") if canonical(line) not in have_wheel(closure)]
    if missing:
        pip_download(closure, "--only-binary", ":all:", *missing)
    listed = releases(PAIRS)
    known = have_wheel(pairs) | (have_wheel(closure) if options.wheels else set())
    if wheels := [line for line in listed if canonical(line) not in known]:
        pip_download(pairs, "--only-binary", ":all:", *wheels)
    sdists = [] if options.wheels else [line for line in listed if canonical(line) not in have_sdist(pairs)]
    with tempfile.TemporaryDirectory() as backends, ThreadPoolExecutor(4) as pool:
        Path(backends, "sitecustomize.py").write_text(STAND_IN)
        as_sdist = ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517"]
        for _ in pool.map(lambda line: pip_download(pairs, *as_sdist, line, backends=Path(backends)), sdists):
            pass
    print(f"{len(have_wheel(closure))} wheels in {closure}")
    print(f"{len(have_sdist(pairs) & have_wheel(pairs))} pairs in {pairs}")


if __name__ == "__main__":
    main()
