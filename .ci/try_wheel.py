"""Install the built wheel into a clean environment, and run all stages there, without the repository: `make dist`.

`python .ci/try_wheel.py [--stack] WHEEL` only downloads wheels, so nothing is built. It makes an index of the wheel
itself, follows it, and looks up a module of the wheel. On a platform without a LevelDB binding, `leveldb update` must
name the missing package. With `--stack`, it also installs the extra `stack`, and runs `pypi-assets up` until it
answers.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
HAS_BINDING = "from importlib.util import find_spec; print(any(map(find_spec, ('plyvel', 'plyvel_next'))))"
STACK_ANSWERS_WITHIN_S = 240
NEEDS_NO_LEVELDB = (
    ("crawl", "full"),
    ("dump", "full", "--shards", "1"),
)


class Environment:
    """A clean environment in `folder`, which is also the working directory and the home of all commands."""

    def __init__(self, folder: Path, requirement: str) -> None:
        self.folder, self._bin = folder, folder / "venv" / "bin"
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYPI_ASSETS_", "PYTHON"))},
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "DAGSTER_HOME": str(folder / "dagster"),
        }
        (folder / "dagster").mkdir()
        venv.create(folder / "venv", with_pip=True)
        pip = ["python", "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "install", "--no-compile"]
        self.run(*pip, "--only-binary", ":all:", "--constraint", str(CONSTRAINTS), requirement)

    @property
    def python(self) -> Path:
        return self._bin / "python"

    def run(self, *command: str, exit_code: int = 0) -> str:
        """Return the output of a command. End the program if the command has another exit code."""
        done = subprocess.run(
            [self._bin / command[0], *command[1:]],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != exit_code:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return (done.stdout + done.stderr).strip()

    def exit_code(self, *command: str) -> int:
        program = [self._bin / command[0], *command[1:]]
        return subprocess.run(program, cwd=self.folder, env=self.variables, capture_output=True, check=False).returncode

    def start(self, *command: str, **outputs: Any) -> "subprocess.Popen[bytes]":
        """Start a command without waiting for its end."""
        return subprocess.Popen([self._bin / command[0], *command[1:]], cwd=self.folder, env=self.variables, **outputs)

    def show(self, *arguments: str, exit_code: int = 0) -> str:
        """Run the command `pypi-assets`, and show the call with the first lines of its output."""
        text = self.run("pypi-assets", *arguments, exit_code=exit_code)
        print(f"$ pypi-assets {' '.join(arguments)}", *text.splitlines()[:4], sep="\n", flush=True)
        return text

    @contextmanager
    def served(self, index: Path) -> Iterator[None]:
        """Serve the index, and follow it in the meantime."""
        server = self.start("pypi-assets", "devindex", "serve", str(index), "--port", "0", stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            self.variables["PYPI_ASSETS_INDEX_URL"] = server.stdout.readline().decode().strip()
            yield
        finally:
            server.terminate()
            server.communicate()


def try_wheel(wheel: Path, folder: Path, *, has_stack: bool) -> None:
    environment = Environment(folder, f"{wheel}[stack]" if has_stack else str(wheel))
    location = environment.run("python", "-c", "import pypi_assets; print(pypi_assets.__file__)")
    assert Path(location).is_relative_to(folder), location
    assert environment.show("--version").endswith(wheel.name.split("-")[1])
    [record] = json.loads(environment.run("pypi-assets", "admin", "inspect", str(wheel), "--json"))
    assert "pypi_assets" in record["modules"], record
    environment.show("devindex", "add", "index", str(wheel))
    with environment.served(folder / "index"):
        for command in NEEDS_NO_LEVELDB:
            environment.show(*command)
    if environment.run("python", "-c", HAS_BINDING) == "True":
        environment.show("leveldb", "update")
        assert environment.show("lookup", "module", "pypi_assets").split()[0] == "pypi-assets"
    else:
        assert "plyvel-next" in environment.show("leveldb", "update", exit_code=1)
    environment.show("status")
    environment.run("dagster", "definitions", "validate", "-m", "pypi_assets.definitions")
    print("Dagster loads pypi_assets.definitions")
    if has_stack:
        try_stack(environment)


def try_stack(environment: Environment) -> None:
    """Run the whole stack with the index, in a new home, until it answers a look-up."""
    with environment.served(environment.folder / "index"), ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [str(listener.getsockname()[1]) for listener in listeners]
        stack.close()
        options = [word for pair in zip(("--ui-port", "--port", "--metrics-port"), ports, strict=True) for word in pair]
        up = ["pypi-assets", "up", "--folder", "stack"]
        with (environment.folder / "up.log").open("wb") as log:
            process = environment.start(*up, *options, stdout=log, stderr=log)
            try:
                until = time.monotonic() + STACK_ANSWERS_WITHIN_S
                question = ("pypi-assets", "lookup", "module", "pypi_assets")
                environment.variables["PYPI_ASSETS_HOME"] = str(environment.folder / "stack")
                while environment.exit_code(*question) != 0 or environment.exit_code(*up, "--status") != 0:
                    if process.poll() is not None or time.monotonic() > until:
                        sys.exit(f"`pypi-assets up` does not answer:\n{(environment.folder / 'up.log').read_text()}")
                    time.sleep(1)
                print(f"$ {' '.join(question)}", environment.run(*question), sep="\n")
            finally:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--stack", action="store_true", help="also run `pypi-assets up`")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        try_wheel(arguments.wheel.resolve(), Path(temporary), has_stack=arguments.stack)
