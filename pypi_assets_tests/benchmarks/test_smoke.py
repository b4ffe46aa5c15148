"""Each script of benchmarks/ runs at its smallest size, and the commands of benchmarks/README.md are valid.

Figures are never compared, because a small size says nothing about speed.
"""

import argparse
import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.read_sdists import MIX
from pypi_assets_tests.builders import make_sdist, make_wheel

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
PATIENCE_S = 900.0
VERSIONS = ("1.0", "1.1")
UNITS = r"(?:%|x|s|ms|ns|µs|us|kB|KiB|MB|MiB|rows|rows/s|/s)?"


@dataclass(frozen=True)
class Smoke:
    """A script, its arguments and the programs that it needs. CORPUS, ROOT and HOME stand for folders."""

    module: str
    arguments: str = ""
    tools: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.module} {self.arguments}".strip()


SMOKES = (
    Smoke("backfills", "--ranges 1 --projects 2 --parts 2 --no-failures"),
    Smoke("blame", "--sets 1 --projects 46"),
    Smoke("celery_workers", "--files 2 --latency 0 --workers 1", tools=("redis-server", "rclone")),
    Smoke("changelog_range", "--projects 20"),
    Smoke("confusion", "--names 200 --private 100"),
    Smoke("dead_rows", "1 --projects 50 --updates 1"),
    Smoke("devindex_replay", "--files 50 --rounds 1"),
    Smoke("dump_formats", "--rows 50 --shards 4 --repeats 1"),
    Smoke("edges", "--projects 40 --rounds 1"),
    Smoke("edges", "--drawn 1000 --rounds 1"),
    Smoke("faults", "CORPUS --connections 2"),
    Smoke("freshness", "--follower --uploads 1"),
    Smoke("full_crawl", "--files 4 --rounds 1"),
    Smoke("full_dump", "--rows 50 --databases sqlite --repeats 1"),
    Smoke("generated", "HOME/generated --rows 50"),
    Smoke("iceberg_tables", "--rows 50 --ranges 1 --changed 5"),
    Smoke("impact", "--projects 40"),
    Smoke("journal", "--rows 50 --repeats 1"),
    Smoke("kept_connections", "--events 2"),
    Smoke("large_pages", "--files 20 --dependents 10 --requests 1"),
    Smoke("leveldb_build", "HOME --rows 50 --repeats 1 --datasets modules hashes"),
    Smoke("leveldb_update", "HOME --rows 50 --changed 10 --updates 1 --datasets modules"),
    Smoke("leveldb_update", "HOME --rows 50 --percent 20 100 --datasets modules"),
    Smoke("listing", "--projects 50"),
    Smoke("lookups", "HOME/storage --rows 200 --asked 10"),
    Smoke("many_partitions", "--ranges 4 --no-browser"),
    Smoke("mirror", "--rows 50 --repeats 1"),
    Smoke("owners", "--projects 20"),
    Smoke("owners", "--wheels CORPUS"),
    Smoke("parquet_export", "--rows 50 --ranges 1 --changed 5"),
    Smoke("pypi_size", "0.0001 --folder HOME/size --largest 20 --stages fill index sizes"),
    Smoke("read_in_turn", "ROOT CORPUS/closure/click-1.0-py3-none-any.whl --rounds 1"),
    Smoke("read_memory", "CORPUS --hostile 2"),
    Smoke("read_sdists", "CORPUS/pairs"),
    Smoke("read_wheels", "CORPUS"),
    Smoke("reader_pool", "CORPUS/pairs --rounds 1"),
    Smoke("reader_pool", "CORPUS/pairs --rounds 1 --containment"),
    Smoke("reprocess", "CORPUS --distributions 20 --repeats 1"),
    Smoke("resolutions", "--sets 2 --uv-sets 2 --projects 46"),
    Smoke("scope_discovery", "--projects 20 --repetitions 1"),
    Smoke("scope_first_answer", "--files CORPUS/closure --roots click==1.0 rich --modules click"),
    Smoke("sdist_oracle", "CORPUS"),
    Smoke("service_load", "--rows 20 --seconds 1 --repeats 1", tools=("wrk",)),
    Smoke("service_stream", "--dependents 10"),
    Smoke("simple_list", "--projects 30 --files 1"),
    Smoke("simple_pages", "--files 30 --requests 10"),
    Smoke("size_account", "0.0001 --folder HOME/account"),
    Smoke("solvability", "--projects 102 --resolved 3 --removed 1"),
    Smoke("start_up", "--turns 1"),
    Smoke("train_extract_dictionary", "9 CORPUS --to HOME/dictionaries"),
    Smoke("visit_policies", "--projects 240 --days 4 --seeds 1"),
    Smoke("visits", "--days 2 --visits 1 --releases 100"),
    Smoke("wheel_bytes", "CORPUS/closure"),
    Smoke("wheel_oracle", "CORPUS/some"),
    Smoke("workers", "--files 2 --rate 1000 --processes 1"),
)
PARTS = {"uncontained_reader": "reader_pool", "corpora.download": "corpora.download"}
"""Scripts that print no figures, and where they are run: by another script, or in separate tests."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a small folder with the layout of `benchmarks.corpora.download`.

    `closure` has wheels, `pairs` has an sdist and a wheel of each release, and `some/closure` has two wheels.
    """
    folder = tmp_path_factory.mktemp("corpus")
    for path in (folder / "closure", folder / "pairs", folder / "some" / "closure"):
        path.mkdir(parents=True)
    for number, name in enumerate(MIX):
        files = {f"{name}/__init__.py": f"'''{name} {number}'''\n", f"{name}/part.py": f"number = {number}\n" * number}
        for version in VERSIONS:
            make_wheel(folder / "closure", name, version, files=files)
        requires = [f"{MIX[number - 1]}>=1.0"] if number else []
        make_wheel(folder / "pairs", name, "2.0", files=files, requires_dist=requires)
        make_sdist(folder / "pairs", name, "2.0", files=files, requires_dist=requires)
    for name in MIX[:2]:
        make_wheel(folder / "some" / "closure", name, "1.0", files={f"{name}/__init__.py": ""})
    return folder


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a temporary folder with a short path, which PostgreSQL's socket needs."""
    with tempfile.TemporaryDirectory(prefix="smoke-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.mark.parametrize("smoke", SMOKES, ids=str)
def test_scripts_at_smallest_size_print_figures(smoke: Smoke, corpus: Path, home: Path) -> None:
    if missing := [tool for tool in smoke.tools if not is_there(tool)]:
        pytest.skip(f"needs {', '.join(missing)}")
    arguments = replaced(smoke.arguments, {"CORPUS": corpus, "ROOT": ROOT, "HOME": home})
    returncode, stdout, stderr = run([sys.executable, "-m", f"benchmarks.{smoke.module}", *arguments], home)
    assert returncode == 0, stdout + stderr[-5_000:]
    rows = [numbers for line in stdout.splitlines() if (numbers := figures(line))]
    assert rows, stdout


def test_figures_are_read_from_rows_only() -> None:
    assert figures("| reading | 1,234.5 | 12% | |") == [1234.5, 12.0]
    assert figures("modules          100      0.2      587") == [100.0, 0.2, 587.0]
    assert figures("20\t0.103\t-0.009") == [20.0, 0.103, -0.009]
    assert figures("full_dump  12.5 ms  30/s") == [12.5, 30.0]
    for line in (
        "37 files in 1.5 s",
        "| table | MB |",
        "|---|---|",
        "",
        "  rows: 6 visits, 12 changes",
        "limit/s  seconds",
    ):
        assert figures(line) == [], line


def test_every_script_is_run() -> None:
    runnable = {
        ".".join(path.relative_to(SCRIPTS).with_suffix("").parts)
        for path in SCRIPTS.rglob("*.py")
        if '\nif __name__ == "__main__":\n' in path.read_text()
    }
    run = {smoke.module for smoke in SMOKES}
    assert runnable == run | PARTS.keys()
    assert set(PARTS.values()) <= run | {"corpora.download"}


def test_documented_commands_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of benchmarks/README.md has a script, which accepts its options."""
    commands = set(re.findall(r"python -m benchmarks\.([\w.]+)([^`\n#]*)", (ROOT / "benchmarks/README.md").read_text()))
    assert len(commands) >= 40
    accepted: list[argparse.Namespace] = []
    parse = argparse.ArgumentParser.parse_args

    def parse_only(parser: argparse.ArgumentParser, *given: Any) -> argparse.Namespace:
        accepted.append(parse(parser, *given))
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    for module, text in sorted(commands):
        arguments = shlex.split(re.sub(r"\bID\b", "9", text.replace("SCALE", "0.1").translate({91: "", 93: ""})))
        monkeypatch.setattr(sys, "argv", [module, *(one for one in arguments if one != "...")])
        script = importlib.import_module(f"benchmarks.{module}")
        with pytest.raises(Parsed):
            script.main()
    assert len(accepted) == len(commands)


class Parsed(BaseException):
    """Raised once the arguments of a script were accepted."""


def run(command: Sequence[str], home: Path) -> tuple[int, str, str]:
    """Run a command, and return its exit code and output. If it takes too long, its child processes are stopped too."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(home), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, stdout, stderr


def figures(line: str) -> list[float]:
    """Return the numbers of a table row: of cells between bars, tabs or several spaces, at least two cells."""
    cells = [cell for cell in re.split(r"\s*\|\s*|\t|\s{2,}", line.strip()) if cell]
    if len(cells) < 2:
        return []
    found = (re.fullmatch(rf"[<>=]*\s*([-+]?\d[\d,]*(?:\.\d+)?)\s?{UNITS}", cell) for cell in cells)
    return [float(one[1].replace(",", "")) for one in found if one]


def replaced(arguments: str, folders: Mapping[str, Path]) -> Sequence[str]:
    """Return the arguments with the names of folders replaced by their paths."""
    return [re.sub("|".join(folders), lambda name: str(folders[name[0]]), one) for one in arguments.split()]


def is_there(tool: str) -> bool:
    """Return whether the program can be used here."""
    return shutil.which(tool, path=search_path()) is not None


def search_path() -> str:
    """Return the search path of programs, with the interpreter's own folder first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a script's process, without settings of the developer or of the tests."""
    of_others = ("PYPI_ASSETS_", "DAGSTER_", "PYTEST_", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(of_others)}
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR"), str(home))
    return kept | folders | {"PYTHONPATH": str(ROOT), "PATH": search_path(), "PYPI_ASSETS_ENV_FILE": os.devnull}
