"""The whole pipeline on real distributions: `make demo`.

It downloads about 30 projects with pip, and serves them as a small package index on this machine. It follows the
projects that a requirements.txt of five projects leads to. Then it runs Dagster's jobs in this process: a full crawl, a
full dump, LevelDB versions, answers. Then the index changes, and sensors and jobs follow it to new answers. At the end,
pages show these answers in a browser, until `make stop`.

All files are in .demo/. Each run starts from scratch and only keeps the downloads.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from broken_build import FIRST, REQUIREMENT, SECOND, blamed, make_wheel
from folders import DAGSTER_HOME, DATA, DEMO, DOWNLOADS, INDEX, ROOT, environment, free_port, remember_port
from pages import start as start_pages
from pages import stop as stop_pages
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:  # `run_pipeline` imports it when the environment has the demo's settings
    from pipeline import Pipeline

    from pypi_assets.devindex.history import History

LATER = ("attrs-25.3.0", "toolz-1.0.0", "tqdm-4.67.1")
"""The files that are uploaded after the first crawl."""

LISTS = {
    "wheels.txt": ["--only-binary", ":all:"],
    "older_wheels.txt": ["--only-binary", ":all:"],
    "sdists.txt": [f"--no-binary={name}" for name in ("attrs", "certifi", "click", "idna", "python-dateutil", "six")],
}

MODULES = ("yaml", "dateutil", "attr", "bs4", "google.auth", "markupsafe._speedups", "toolz", "text_unidecode", "click")
"""The modules that the demo looks up."""

PAUSE = timedelta(days=5)
"""The time between the first uploads. The last of them was ten days ago."""

COMMANDS = ("tqdm", "slugify", "normalizer")
"""The commands that the demo looks up."""

FILES = ("text_unidecode-1.3", "toolz-1.0.0", "PyYAML-6.0.3", "pyyaml-6.0.3")
"""The beginnings of the names of the files that the demo identifies by their hash."""

console = Console(width=None if sys.stdout.isatty() else 110)


def step(number: int, title: str, text: str) -> None:
    console.print(f"\n[bold]{number}. {title}[/bold]\n   [dim]{text}[/dim]")


def show_line(text: str) -> None:
    console.print(f"   {text}", highlight=False)


def download() -> list[Path]:
    """Return the files of the demo, which pip downloads once."""
    for name, options in LISTS.items():
        wanted = ROOT / "demo" / name
        folder = DOWNLOADS / name.removesuffix(".txt")
        done = folder / f".{hashlib.sha256(wanted.read_bytes()).hexdigest()[:16]}"
        if done.exists():
            continue
        shutil.rmtree(folder, ignore_errors=True)
        show_line(f"downloading {name.removesuffix('.txt').replace('_', ' ')} with pip ...")
        run_pip("download", "--no-deps", *options, "--dest", str(folder), "--requirement", str(wanted))
        done.touch()
    return sorted(path for path in DOWNLOADS.glob("*/*") if not path.name.startswith("."))


def run_pip(*arguments: str) -> None:
    """Run pip, and show its messages only if it fails: in one sentence, which ends the demo."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    result = subprocess.run([*pip, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        errors = [line.removeprefix("ERROR: ") for line in result.stdout.splitlines() if line.startswith("ERROR: ")]
        reason = (
            "its index does not answer" if "Retrying" in result.stdout else (errors or ["see `pip config list`"])[0]
        )
        raise SystemExit(f"pip could not download the files: {reason}. `make demo` tries again.")


def main() -> int:
    started = time.monotonic()
    console.print("[bold]pypi-assets: from a package index to answers[/bold]")
    step(1, "Real distributions", "About 30 projects, wheels and sdists, some of them in two versions.")
    files = download()
    show_line(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
    downloaded = time.monotonic()

    stop_pages()
    for folder in (INDEX, DATA, DAGSTER_HOME):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "dagster.yaml", DAGSTER_HOME)
    port = free_port()
    remember_port(port)
    os.environ.clear()
    os.environ.update(BEFORE | environment(port))

    before_yank = run_pipeline(files, port)
    console.print(
        f"\nThat took {time.monotonic() - downloaded:.0f} s"
        f" ({downloaded - started:.0f} s before that for downloads). All files are in .demo/."
    )
    show_pages(start_pages(), before_yank)
    return 0


def run_pipeline(files: list[Path], port: int) -> int:
    """Run all stages; return the last serial before the yank."""
    from pipeline import Pipeline

    from pypi_assets.devindex.history import History
    from pypi_assets.devindex.server import running

    step(2, "A package index", "It uses PyPI's protocol: a changelog by XML-RPC, pages in JSON, files with ranges.")
    history = History(INDEX)
    first_wheel = make_wheel(INDEX.parent / "orchard", FIRST)
    upload(history, [*(path for path in files if not path.name.startswith(LATER)), first_wheel])
    with running(INDEX, port) as url, Pipeline() as pipeline:
        serial_before = history.state().last_serial
        show_line(f"{url} has {len(history.state().projects)} projects, its last serial is {serial_before}")

        follow_requirements()
        build_first_versions(pipeline)
        identified = [path for path in files if path.name.startswith(FILES)]
        before = answers(pipeline, identified)
        requires_before = pipeline.requirements("attrs")
        before_yank = change_index(history, [path for path in files if path.name.startswith(LATER)])
        follow_index(pipeline)
        after = answers(pipeline, identified)
        show(before, after)
        requires_now = pipeline.requirements("attrs")
        show_line(f"releases of attrs (and how many requirements each has): {requires_before}; now {requires_now}")
        yanked = pipeline.yanked("requests")
        show_line(f"yanked files of requests: {', '.join(yanked)}")
        check(before, after, yanked)
        find_the_broken_build(serial_before, history.state().last_serial)
    what_next(serial_before)
    return before_yank


def upload(history: "History", files: Iterable[Path]) -> None:
    """Upload the first files in a realistic order: older versions first."""
    ordered = sorted(files, key=lambda path: (path.parent.name != "older_wheels", path.name.lower()))
    begun = ago(days=10) - PAUSE * (len(ordered) - 1)
    for number, path in enumerate(ordered):
        history.add(path, at=begun + PAUSE * number)


def ago(**units: float) -> datetime:
    return datetime.now(UTC) - timedelta(**units)


def follow_requirements() -> None:
    from pypi_assets.catalog.scopes.scope_status import scope_status, why
    from pypi_assets.catalog.scopes.stored_scopes import require_scope
    from pypi_assets.cli.contexts import opened_crawler
    from pypi_assets.crawl.scope_crawl import run_scope, start_scope
    from pypi_assets.scopes.plan import read_plan

    step(3, "A scope", "The projects in demo/requirements.txt, and all projects that they require.")
    plan = read_plan("demo", {"roots": "requirements.txt"}, ROOT / "demo")
    with opened_crawler(creates=True) as crawler:
        start_scope(crawler, plan)
        timed(lambda: run_scope(crawler, plan.name))
        with crawler.catalog.read() as connection:
            scope = require_scope(connection, plan.name)
            state = scope_status(connection, scope, crawler.catalog.clock())
            reason = why(connection, scope, "text-unidecode")
    depths = ", ".join(f"{count} at depth {depth}" for depth, count in state.depths.items())
    show_line(f"{state.projects} projects ({depths}), {sum(state.files.values())} files; {state.state}")
    show_line(f"text-unidecode: {'; '.join(reason.sentences)}")


def build_first_versions(pipeline: "Pipeline") -> None:
    step(4, "Full crawl", "Job full_crawl: pin a serial, list the projects, visit their pages, read every file.")
    timed(pipeline.full_crawl)
    show_line(pipeline.describe_catalog())

    step(5, "Full dump", "Job full_dump: the files that are live at that serial, as gzipped JSON in 256 shards.")
    timed(pipeline.full_dump)
    show_line(pipeline.describe_dumps())

    step(6, "LevelDB versions", "Sensor new_leveldb_version, job update_leveldbs: a version of each dataset.")
    timed(pipeline.leveldb_version)
    show_line(pipeline.describe_versions())


def change_index(history: "History", later: list[Path]) -> int:
    """Change the index, on the days before today; return the last serial before the yank."""
    step(7, "The index changes", "Uploads, a yank, a removed release, a removed project.")
    for path in later:
        history.add(path, at=ago(days=4))
        show_line(f"uploaded {path.name}")
    history.add(make_wheel(INDEX.parent / "orchard", SECOND), at=ago(days=4))
    show_line(f"uploaded {SECOND}, a second wheel of an existing release")
    before_yank = history.state().last_serial or 0
    history.yank("requests", "2.31.0", "shown in the demo", at=ago(days=3))
    show_line("yanked requests 2.31.0")
    history.remove_release("click", "8.1.7", at=ago(days=2))
    show_line("removed the release click 8.1.7 (one event, no event per file)")
    history.remove_project("text-unidecode", at=ago(days=1))
    show_line("removed the project text-unidecode (one event, no event per file)")
    return before_yank


def find_the_broken_build(good: int | None, bad: int | None) -> None:
    step(10, "A broken build", f"{REQUIREMENT} could be installed before the changes, and cannot any more: why?")
    for line in blamed(good or 0, bad or 0):
        show_line(line)


def follow_index(pipeline: "Pipeline") -> None:
    step(
        8,
        "Following",
        "Sensor new_serial_range ticks; job incremental_crawl: events, pages, files, a dump of the range.",
    )
    key = timed(pipeline.next_range)
    show_line(f"serial range {key}")
    show_line(pipeline.describe_catalog())

    step(9, "New LevelDB versions", "Built on the previous versions: only changes are applied.")
    timed(pipeline.leveldb_version)
    show_line(pipeline.describe_versions())


def timed(work: Callable[[], object]) -> object:
    started = time.monotonic()
    with console.status("working ..."):
        result = work()
    show_line(f"done in {time.monotonic() - started:.1f} s")
    return result


def answers(pipeline: "Pipeline", files: list[Path]) -> dict[tuple[str, str], str]:
    """Return the present answers, by the kind of question and its subject."""
    return (
        {("import", module): pipeline.providers(module) for module in MODULES}
        | {("command", command): pipeline.installers(command) for command in COMMANDS}
        | {("file", path.name): pipeline.owners(path) for path in files}
    )


def show(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> None:
    for about, title in {
        "import": "Which projects provide this module?",
        "command": "Which projects install this command?",
        "file": "Which project is a file with these bytes from (looked up by its sha256)?",
    }.items():
        table = Table(title=title, title_justify="left", title_style="bold")
        for column in (about, "before", "after the changes"):
            table.add_column(column)
        for question, now in after.items():
            if question[0] == about:
                shown = now or "-"
                changed = before[question] != now
                table.add_row(question[1], before[question] or "-", f"[bold]{shown}[/bold]" if changed else shown)
        console.print()
        console.print(table)


def check(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str], yanked: list[str]) -> None:
    """End the demo with an error if an answer is wrong."""
    expected = {
        ("import", "yaml"): ("PyYAML 6.0.3", "PyYAML 6.0.3"),
        ("import", "dateutil"): ("python-dateutil 2.9.0.post0", "python-dateutil 2.9.0.post0"),
        ("import", "attr"): ("attrs 24.3.0", "attrs 24.3.0, 25.3.0"),
        ("import", "text_unidecode"): ("text-unidecode 1.3", ""),
        ("import", "toolz"): ("", "toolz 1.0.0"),
        ("import", "click"): ("click 8.1.7, 8.2.1", "click 8.2.1"),
        ("command", "tqdm"): ("", "tqdm 4.67.1"),
        ("command", "slugify"): ("python-slugify 8.0.4", "python-slugify 8.0.4"),
    } | {
        question: ("text-unidecode 1.3", "") if question[1].startswith("text") else ("", "toolz 1.0.0")
        for question in after
        if question[0] == "file" and question[1].startswith(("text", "toolz"))
    }
    found = {question: (before[question], after[question]) for question in expected}
    wrong = [
        f"{' '.join(what)}: {found[what]}, expected {right}" for what, right in expected.items() if found[what] != right
    ]
    if yanked != ["requests-2.31.0-py3-none-any.whl"]:
        wrong.append(f"yanked: {yanked}")
    if wrong:
        raise SystemExit("the answers are wrong: " + "; ".join(wrong))


def what_next(serial_before: int | None) -> None:
    table = Table(title="What to try next", title_justify="left", title_style="bold", show_header=False, box=None)
    table.add_column(no_wrap=True)  # so that a command can be copied
    table.add_column()
    for command, text in (
        ("make ui", "Dagster's UI over this data and the pages, with the index running and the sensors on"),
        (". demo/env", "makes the commands below use the demo's data"),
        ("pypi-assets status", "the state of every stage, and the next steps"),
        ("pypi-assets lookup module google.auth", "which projects provide a module"),
        ("pypi-assets scope why demo idna", "why a project is followed"),
        ("pypi-assets lookup project requests", "what each of its files requires"),
        ("pypi-assets lookup command slugify", "which projects install a command"),
        ("pypi-assets lookup hash --file .demo/downloads/sdists/six-1.17.0.tar.gz", "which project a file is from"),
        (f"pypi-assets lookup files click --at {serial_before}", "what was true before the changes"),
        ("pypi-assets resolve freezegun beautifulsoup4", "which versions would be installed, as a tree"),
        (f"pypi-assets blame {REQUIREMENT} --good {serial_before}", "which event broke a build"),
        ("pypi-assets admin inspect .demo/downloads/sdists/six-1.17.0.tar.gz", "read one file"),
    ):
        table.add_row(f"  [bold]{command}[/bold]", text)
    console.print()
    console.print(table)


def show_pages(url: str, before_yank: int) -> None:
    """Print the last lines of the demo: the pages to open in a browser."""
    console.print("\n[bold]Now open the pages in a browser[/bold]; `make stop` ends them.\n")
    for question, address in (
        ("Which project is `import dateutil`?", "import/dateutil/"),
        ("What requires six?", "dependents/six/"),
        ("What was true before the yank of requests 2.31.0?", f"at/{before_yank}/project/requests/"),
        ("What would be installed?", "resolve/?requirements=freezegun%0Abeautifulsoup4"),
        ("Everything else:", ""),
    ):
        console.print(f"  {question:<50} {url}{address}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("dagster").setLevel(logging.ERROR)
    BEFORE = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
    DEMO.mkdir(exist_ok=True)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("\nstopped; `make demo` starts from scratch")
        sys.exit(130)
