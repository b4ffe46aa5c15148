"""Install the versions of constraints.txt: `.venv/bin/python .ci/install.py [--compile] REQUIREMENT...`, as for pip.

uv installs in a tenth of pip's time. It is taken from this environment or from PATH, or pip installs it here. uv does
not read pip's configuration, so pip's indexes, certificates and proxy are passed as environment variables. If uv fails,
pip installs. `--compile` compiles modules afterwards, on all cores, for processes that start together.
"""

import ast
import compileall
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ("--constraint", str(ROOT / "constraints.txt"))
PIP_SECTIONS = ("global", "install", ":env:")
"""The sections of pip's configuration for `pip install`. Later sections take precedence."""
UV_VARIABLES = {
    "index-url": "UV_INDEX_URL",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
"""uv's environment variable for each setting of pip."""
TRUE = {"1", "true", "yes", "on"}
NOT_COMPILED = re.compile(
    r"/(tests?|testing|apprise|cfnlint|docutils|lexers|moto|mpmath|mypyc?|networkx|prompt_toolkit|setuptools|sympy)/"
    r"|/test_"
)
"""Over half of the modules: tests seldom import them, and pytest compiles test modules itself."""


def pip_settings(pip: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each setting for `pip install`.

    `pip config list` prints a key once for each file, sorted by file name. `pip config get` returns the effective
    value.
    """
    values: dict[str, str] = {}
    for line in output_of([*pip, "config", "list"]).splitlines():
        key, _, value = line.partition("=")
        values[key] = str(ast.literal_eval(value)) if key not in values else output_of([*pip, "config", "get", key])
    settings: dict[str, list[str]] = {}
    for section in PIP_SECTIONS:
        names = [key.removeprefix(f"{section}.") for key in values if key.startswith(f"{section}.")]
        settings |= {name: values[f"{section}.{name}"].split() for name in names}
    return settings


def output_of(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def uv_environment(settings: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> dict[str, str]:
    """Return uv's environment variables for pip's settings. Variables that are already set take precedence."""
    variables = {
        variable: ("," if name == "find-links" else " ").join(settings[name])
        for name, variable in UV_VARIABLES.items()
        if settings.get(name)
    }
    if "extra-index-url" in settings:  # pip chooses the best version of all its indexes
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {**variables, **environment}


def find_pip() -> list[str]:
    """Return the command for pip: from this environment, from its interpreter, or bundled with it. Empty without
    pip.
    """
    own = [sys.executable, "-m", "pip"]
    interpreter = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    base = [interpreter, "-m", "pip", "--python", sys.executable]
    if find_spec("pip") is not None:
        return own
    if succeeds([*base, "--version"]):
        return base
    return own if succeeds([sys.executable, "-m", "ensurepip"]) else []


def find_uv(pip: Sequence[str]) -> str | None:
    """Return the path of a working uv. Install it if there is none."""
    in_environment = str(Path(sys.executable).parent / "uv")
    for path in (in_environment, shutil.which("uv")):
        if path and succeeds([path, "--version"]):
            return path
    options = ["--quiet", "--disable-pip-version-check", "install", "--no-compile", "--only-binary", "uv"]
    return in_environment if pip and succeeds([*pip, *options, *CONSTRAINTS, "uv"]) else None


def succeeds(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def install(arguments: Sequence[str]) -> int:
    """Install with uv, or with pip if uv fails. Return the exit code."""
    pip = find_pip()
    if uv := find_uv(pip):
        done = install_with_uv(uv, pip_settings(pip) if pip else {}, arguments)
        if done.returncode == 0:
            return 0
        sys.stderr.write(done.stderr)
        if pip:
            print("uv failed, so pip installs ...", file=sys.stderr)
    if not pip:
        print("pip cannot be run: install ensurepip (python3-venv on Debian) or uv", file=sys.stderr)
        return 1
    options = ["--quiet", "--quiet", "--disable-pip-version-check", "install", "--no-compile"]
    return subprocess.run([*pip, *options, *CONSTRAINTS, *arguments], check=False).returncode


def install_with_uv(
    uv: str, settings: Mapping[str, Sequence[str]], arguments: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    options = ["--no-index"] if settings.get("no-index", ["0"])[0].lower() in TRUE else []
    return subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", sys.executable, *options, *CONSTRAINTS, *arguments],
        env=uv_environment(settings, os.environ),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def compile_modules() -> None:
    """Compile the modules that tests import, both installed ones and the project's. Skip modules that cannot be
    compiled.
    """
    for folder in (Path(sys.prefix) / "lib", ROOT / "pypi_assets", ROOT / "pypi_assets_tests"):
        compileall.compile_dir(folder, maxlevels=30, quiet=2, workers=0, rx=NOT_COMPILED)


def main(arguments: Sequence[str]) -> int:
    exit_code = install([argument for argument in arguments if argument != "--compile"])
    if exit_code == 0 and "--compile" in arguments:
        compile_modules()
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
