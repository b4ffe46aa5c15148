"""Run the commands shown on the pages of docs/, each in a fresh home over the example index.

`python -m pypi_assets_tests.docs.shown PAGE...` replaces the outputs on the pages with the current ones. A page is
README.md, or a file of docs/. In a block of `console`, lines that begin with `$ ` are commands, and the lines below are
their output on a terminal: standard output, then standard error. A line of `...` stands for any lines.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pypi_assets_tests.docs.example_index import fill, write_files
from pypi_assets_tests.served_index import served_index

ROOT = Path(__file__).parents[2]
SERVICE = "127.0.0.1:8642"
"""Where pages show a service."""
MAIN = "from pypi_assets.cli import main; main()"
EMPTY_HOME = "<!-- an empty home -->"
"""From this line of a page on, commands find an empty home. Before, the home is crawled, dumped and published."""
PROGRESS = re.compile(r"(?:history|listing|visits|reads|shards): \d+ of \d+(?:, .*)?")
"""Lines that are progress bars on a terminal."""
TRIED = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:pypi-assets|export PYPI_ASSETS|curl|openssl|uv pip|pip (?:install|download)) ?"
)
LASTING = re.compile(
    r"pypi-assets (?:serve|mcp|devindex serve|follow(?!.*--(?:once|help)))\b"
    r"|--follow\b|admin metrics.*--(?:listen|every)"
)
"""Commands that run until they are stopped."""
LASTING_S = 4.0
LONGEST_S = 300.0
"""How long any other command may take."""
UNTRIED = {
    r"pypi-assets up\b": "it starts PostgreSQL and Dagster: deploy/test_up.py",
    r"(?:s3|gs|az|https)://(?!127\.)|@example\.org|://db\b": "it needs another host",
    r"(?<!\$)\b[A-Z][A-Z_]+\b(?!=)(?<!PYPI)": "a word in capitals stands for a name",
    r"_PYPI_ASSETS_COMPLETE": "it changes the user's shell: cli/test_completion.py",
    r"pypi-assets init$": "it asks questions on a terminal: cli/test_init.py",
    r"--index |PYPI_ASSETS_INDEX(?:ES)?=|admin indexes|lookup confusion": "it needs several indexes: test_confusion.py",
    r"solvability": "Dagster makes this file: defs/test_solvability_days.py",
    r"journal deliver|\./apply": "it needs a program that receives changes: cli/test_journal_deliver.py",
    r"shelf": "it needs the package of the tutorial: index/test_new_kind.py",
    r"mirror status": "it needs a mirror: mirror/",
    r"\$\(|&$": "it needs values or a process of the stack: deploy/test_up.py",
    r"PYPI_ASSETS_PROJECTS=|PYPI_ASSETS_DATABASE_URL=": "it needs another catalog: cli/test_crawl.py",
}
"""Patterns of commands that the test does not run, with the reasons."""
FAILING: dict[str, int] = {
    "pypi-assets resolve -r requirements.in --python 3.12 --platform linux-x86_64": 1,
    "pypi-assets scope why tools markupsafe": 1,
    "pypi-assets scope create tools flask --roots pyproject.toml --depth 3": 1,
    "pypi-assets scope create tools flask --tag fast --match-only": 1,
}
"""Commands that fail, with their exit codes: their pages say so, the project is missing here, or the scope exists."""
SECTION = re.compile(r"(?m)^(?=## )")
"""Each section of a page begins in a new shell."""
FOLDERS = ("/srv/", "/data/", "/var/lib/node_exporter/")
"""Folders of a machine, in whose place commands find ones of the test."""
CATALOG = ("crawl full --with-history", "dump full --shards 1", "leveldb update", "journal write")


@dataclass
class Command:
    """A command of a page, and the lines below it if it is in a block of `console`."""

    text: str
    output: list[str] | None = None

    @property
    def untried(self) -> str:
        """Return the reason for not running the command, or an empty string."""
        if not TRIED.match(self.text):
            return "it is a command of another program"
        return next((reason for pattern, reason in UNTRIED.items() if re.search(pattern, self.text)), "")


def commands(page: str) -> Iterator[Command]:
    """Yield the commands of a page's blocks, in their order."""
    for language, block in re.findall(r"(?m)^```(\w*)[^\n]*\n(.*?)^```$", page, re.DOTALL):
        lines = re.sub(r" *\\\n +", " ", block).splitlines()
        if language == "console":
            yield from _session(lines)
        elif language in {"", "sh", "bash"}:
            yield from (Command(_uncommented(line)) for line in lines if TRIED.match(line))


def _session(lines: list[str]) -> Iterator[Command]:
    current = None
    for line in lines:
        if line.startswith("$ "):
            if current:
                yield current
            current = Command(_uncommented(line[2:]), [])
        elif current and current.output is not None:
            current.output.append(line)
    if current:
        yield current


def _uncommented(line: str) -> str:
    return re.sub(r"\s+# .*$", "", line).strip()


@dataclass
class Printed:
    """The output and exit code of a command."""

    text: str
    exit_code: int


@dataclass
class Shell:
    """A folder with the files that pages name, a home, and the environment of a shell that knows `pypi-assets`.

    `replaced` maps the URLs on the pages to the real URLs of the servers.
    """

    folder: Path
    variables: dict[str, str]
    replaced: dict[str, str]
    service: subprocess.Popen[str] | None = field(default=None, init=False)
    log_reader: threading.Thread | None = None
    initial: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.initial = dict(self.variables)
        for name in FOLDERS:
            path = self.folder / name.strip("/")
            path.mkdir(parents=True, exist_ok=True)
            self.replaced[name] = f"{path}/"

    def run(self, command: str) -> Printed:
        if SERVICE in command and "pypi-assets serve" not in command:
            self.serve()
        named = {shown: actual for shown, actual in self.replaced.items() if shown in command}
        self.replaced = named | self.replaced
        for shown, actual in named.items():
            command = command.replace(shown, actual)
        if command.startswith("pypi-assets init"):
            self.variables.pop("PYPI_ASSETS_INDEX_URL", None)
        if command.startswith("export "):
            self.variables |= dict(word.split("=", 1) for word in shlex.split(command)[1:])
            return Printed("", 0)
        if LASTING.search(command):
            return self._run_for_a_while(command)
        bash = ["bash", "-c", command]
        done = subprocess.run(
            bash,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        return Printed(self._as_shown(done.stdout), done.returncode)

    def begin_section(self) -> None:
        """Start with the variables of a new shell, and without settings in a file."""
        self.variables = dict(self.initial)
        (self.folder / ".env").unlink(missing_ok=True)

    def begin_again(self) -> None:
        """Make the home empty."""
        shutil.rmtree(self.folder / ".pypi-assets", ignore_errors=True)

    def _run_for_a_while(self, command: str) -> Printed:
        """Run a command for some seconds, and then stop it as Ctrl-C does."""
        if command.startswith("pypi-assets serve"):
            command = f"{re.sub(r' --port [0-9]+', '', command)} --port 0"
        command = re.sub(r"(--http|--listen) (\S+):\d+", r"\1 \2:0", command)
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            process.wait(LASTING_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=60)
        code = 0 if process.returncode in {130, -signal.SIGINT} else process.returncode
        return Printed(self._as_shown(text), code)

    def serve(self) -> None:
        """Start a service over the home, unless it runs."""
        if self.service is None:
            arguments = [sys.executable, "-c", MAIN, "serve", "--port", "0"]
            self.service = subprocess.Popen(
                arguments,
                cwd=self.folder,
                env=self.variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert self.service.stdout is not None
            for line in self.service.stdout:
                if found := re.search(r"127\.0\.0\.1:\d+", line):
                    self.replaced[SERVICE] = found[0]
                    # a service whose log is not read stops at a full pipe
                    self.log_reader = threading.Thread(target=deque, args=(self.service.stdout, 0), daemon=True)
                    self.log_reader.start()
                    return
            raise AssertionError("the service did not start")

    def _as_shown(self, text: str) -> str:
        for shown, actual in self.replaced.items():
            text = text.replace(actual, shown)
        return text.replace(str(self.folder), "/home/me")

    def close(self) -> None:
        if self.service is not None:
            self.service.terminate()
            with self.service:  # waits for its end, and closes the pipe
                if self.log_reader is not None:
                    self.log_reader.join()


@dataclass
class Prepared:
    """The example index while it is served, and a home that follows it."""

    folder: Path
    url: str

    @contextmanager
    def shell(self) -> Iterator[Shell]:
        """Return a shell in a new folder, with a copy of the prepared home."""
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            folder = Path(temporary) / "me"
            shutil.copytree(self.folder / "files", folder)
            shutil.copytree(self.folder / "home", folder / ".pypi-assets")
            host = self.url.removeprefix("http://").partition("/")[0]
            replaced = {"127.0.0.1:8137": host, "127.0.0.1:8080": host}
            shell = Shell(folder, variables(self.folder, folder, self.url), replaced)
            try:
                yield shell
            finally:
                shell.close()


def variables(tools: Path, folder: Path, url: str) -> dict[str, str]:
    """Return the environment of a user that follows the index at `url`."""
    return {
        "PATH": f"{tools / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_TARGET": str(folder / "installed"),
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(folder / "uv"),
        "PYPI_ASSETS_HOME": str(folder / ".pypi-assets"),
        "PYPI_ASSETS_INDEX_URL": url,
        "PYPI_ASSETS_FOLLOW_INTERVAL_S": "1",
        "PYPI_ASSETS_REVISIT_SHARE": "0",
    }


@contextmanager
def prepared(folder: Path) -> Iterator[Prepared]:
    """Serve the example index, and crawl and publish it into the home with which shells begin."""
    with served_index(folder / "served") as index:
        fill(index)
        write_files(folder / "files", index)
        write_program(folder / "bin" / "pypi-assets")
        environment = variables(folder, folder, index.url) | {"PYPI_ASSETS_HOME": str(folder / "home")}
        for command in CATALOG:
            subprocess.run(
                [sys.executable, "-c", MAIN, *command.split()],
                env=environment,
                cwd=folder,
                check=True,
                capture_output=True,
            )
        yield Prepared(folder, index.url)


def write_program(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(MAIN)} "$@"\n')
    path.chmod(0o755)


PASSING = re.compile(
    r"\d{4}-\d\d-\d\d(?!T09:00:00Z)[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?"
    r"|\b\d+(?:\.\d+)? (?:s|bytes)\b"
    r'|"(?:bytes|seconds)": [\d.]+|"(?:set|request_id)":"[^"]+"'
)
"""Parts of the output that differ between runs: the current time, and durations."""


def equal(shown: list[str], printed: str) -> bool:
    """Return whether the shown lines equal the printed ones. A line of `...` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(PASSING.sub("~", line.rstrip())) + r"\n" for line in shown
    )
    text = "".join(f"{PASSING.sub('~', line)}\n" for line in shown_lines(printed))
    return re.fullmatch(pattern, text) is not None


def shown_lines(printed: str) -> list[str]:
    """Return the lines that a page shows: all except progress."""
    lines = (line.rstrip() for line in printed.splitlines())
    return [line for line in lines if line and not PROGRESS.fullmatch(line)]


def is_compared(command: Command) -> bool:
    return command.output is not None and not LASTING.search(command.text)


def sections(page: str) -> Iterator[str]:
    """Yield the sections of a page, and `EMPTY_HOME` where it stands alone between them."""
    for section in SECTION.split(page):
        for number, part in enumerate(section.split(EMPTY_HOME)):
            if number:
                yield EMPTY_HOME
            yield part


def rewritten(text: str, world: Prepared) -> str:
    """Return the page with the current output of its commands. Blocks with a line of `...` are unchanged."""
    with world.shell() as shell:

        def block(found: re.Match[str]) -> str:
            whole = found[0]
            if whole == EMPTY_HOME:
                shell.begin_again()
            for command in commands(whole):
                if command.untried:
                    report(f"not run, since {command.untried}: {command.text}")
                    continue
                printed = shell.run(command.text)
                if printed.exit_code != FAILING.get(command.text, 0):
                    report(f"exit code {printed.exit_code}: {command.text}\n{printed.text}")
                if is_compared(command) and not equal(command.output or [], printed.text):
                    if "..." in (command.output or []):
                        report(f"other output: {command.text}\n{printed.text}")
                    else:
                        whole = with_output(whole, command, shown_lines(printed.text))
            return whole

        return "".join(re.sub(rf"(?ms){EMPTY_HOME}|^```.*?^```$", block, part) for part in fresh(shell, text))


def fresh(shell: Shell, text: str) -> Iterator[str]:
    """Yield the sections of a page, each after the shell began a new section."""
    for part in sections(text):
        shell.begin_section()
        yield part


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def with_output(block: str, command: Command, lines: list[str]) -> str:
    """Return the block with these lines below the command."""
    kept, result, is_below = block.splitlines(), [], False
    for number, line in enumerate(kept):
        begins = line.startswith("$ ")
        if begins:
            joined = re.sub(r" *\\\n +", " ", "\n".join(kept[number:]))[2:].partition("\n")[0]
            is_below = _uncommented(joined) == command.text
        is_continued = begins or kept[number - 1].endswith("\\")
        if line == "```" or not is_below or is_continued:
            result.append(line)
        if is_below and is_continued and not line.endswith("\\"):
            result += lines
    return "\n".join(result)


def page_path(name: str) -> Path:
    return ROOT / name if name == "README.md" else ROOT / "docs" / name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, prepared(Path(temporary)) as world:
        for name in sys.argv[1:]:
            path = page_path(name)
            path.write_text(rewritten(path.read_text(), world))
