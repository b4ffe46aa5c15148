"""Installs the built wheel into a clean environment, and runs all stages there, without the repository: `make dist`.

`python .ci/try_wheel.py WHEEL` downloads wheels alone, so nothing is built. It makes an index of the wheel itself,
follows it, and looks up what the wheel provides. Without a LevelDB binding, a build has to name the bindings.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
HAS_BINDING = "from importlib.util import find_spec; print(any(map(find_spec, ('plyvel', 'plyvel_next'))))"
NEEDS_NO_LEVELDB = (
    ("crawl", "full"),
    ("dump", "full", "--shards", "1"),
)


class Environment:
    """A clean environment in `folder`, which is also the working directory and the home of everything that runs."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder, self._bin = folder, folder / "venv" / "bin"
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYPI_ASSETS_", "PYTHON"))},
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "DAGSTER_HOME": str(folder / "dagster"),
        }
        (folder / "dagster").mkdir()
        venv.create(folder / "venv", with_pip=True)
        pip = ["python", "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "install", "--no-compile"]
        self.run(*pip, "--only-binary", ":all:", "--constraint", str(CONSTRAINTS), str(wheel))

    def run(self, *command: str, exit_code: int = 0) -> str:
        """What the command prints. Ends the program where its exit code is another one."""
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

    def show(self, *arguments: str, exit_code: int = 0) -> str:
        """Runs the command `pypi-assets`, and shows the call with the first lines of what it prints."""
        text = self.run("pypi-assets", *arguments, exit_code=exit_code)
        print(f"$ pypi-assets {' '.join(arguments)}", *text.splitlines()[:4], sep="\n", flush=True)
        return text

    @contextmanager
    def served(self, index: Path) -> Iterator[None]:
        """Serves the index, and follows it meanwhile."""
        server = subprocess.Popen(
            [self._bin / "pypi-assets", "devindex", "serve", index, "--port", "0"],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            self.variables["PYPI_ASSETS_INDEX_URL"] = server.stdout.readline().strip()
            yield
        finally:
            server.terminate()
            server.communicate()


def try_wheel(wheel: Path, folder: Path) -> None:
    environment = Environment(folder, wheel)
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        try_wheel(Path(sys.argv[1]).resolve(), Path(temporary))
