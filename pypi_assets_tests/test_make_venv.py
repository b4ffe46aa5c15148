"""`make` chooses an interpreter for which a LevelDB binding has a wheel, or fails and names one.

Interpreters are stubs on a separate PATH. They return the configured facts, and record which of them created an
environment.
"""

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / ".ci" / "make_venv"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHON = """\
case "$1 $2" in
    "-m venv")
        echo {version} >> {made}
        mkdir -p "$5/bin" && cat {own} > "$5/bin/python" && {chmod} +x "$5/bin/python"
        ;;
    *) cat {facts} ;;
esac
"""


class Machine:
    """A PATH with stubs, and the versions of interpreters that created an environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.home, self.venv = (folder / name for name in ("", "bin", "home", "venv"))
        self._made = folder / "made"
        for path in (self.bin, self.home):
            path.mkdir()
        for name in ("sh", "cat", "dirname", "mkdir"):
            (self.bin / name).symlink_to(str(shutil.which(name)))

    def add_stub(self, name: str, text: str, bin_folder: Path | None = None) -> Path:
        path = (bin_folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def add_python(
        self,
        version: str,
        *,
        name: str | None = None,
        first: int = 11,
        installer: bool = True,
        bin_folder: Path | None = None,
    ) -> Path:
        """Add an interpreter. Bindings have wheels from Python 3.`first` on, or none if `first` is 0."""
        name = name or f"python{version.rpartition('.')[0]}"
        facts, own = self.folder / f"{name}-{version}.facts", self.folder / f"{name}-{version}.own"
        has_wheel = 0 < first <= int(version.split(".")[1])
        facts.write_text(
            f"version={version}\nfirst={first}\nhas_wheel={has_wheel:d}\nhas_installer={installer:d}\n"
            f"base={(bin_folder or self.bin) / name}\n"
        )
        text = PYTHON.format(version=version, made=self._made, facts=facts, own=own, chmod=shutil.which("chmod"))
        own.write_text(f"#!/bin/sh\n{text}")
        return self.add_stub(name, text, bin_folder)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, self.venv, *arguments],
            env={"PATH": str(self.bin), "HOME": str(self.home), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def made(self) -> list[str]:
        return self._made.read_text().split() if self._made.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def assert_made_with(machine: Machine, version: str, *arguments: str, **environment: str) -> None:
    before = machine.made()
    done = machine.run(*arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.made() == [*before, version]
    assert (machine.venv / "bin" / "python").exists()


def assert_rejected(machine: Machine, named: list[str], *arguments: str) -> None:
    """Check for exit code 1, one line that names the problem and what to install, and no environment."""
    done = machine.run(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert [name for name in named if name not in done.stderr] == []
    assert done.stderr.count("\n") == 1
    assert machine.made() == []
    assert not machine.venv.exists()


def test_interpreters_with_a_wheel_are_chosen_from_3_12_on(machine: Machine) -> None:
    for version in ("3.11.2", "3.14.0", "3.13.5", "3.12.9"):
        machine.add_python(version)
        shutil.rmtree(machine.venv, ignore_errors=True)
        assert_made_with(machine, version)


def test_interpreter_with_a_wheel_is_preferred(machine: Machine) -> None:
    machine.add_python("3.12.9", first=13)
    machine.add_python("3.11.2", name="python3", first=13)
    machine.add_python("3.14.0", first=13)
    assert_made_with(machine, "3.14.0")


def test_interpreters_of_uv_and_pyenv_are_found(machine: Machine) -> None:
    places = (
        ".pyenv/versions/3.12.1/bin",
        ".local/share/uv/python/cpython-3.12.12-linux-x86_64-gnu/bin",
        ".local/bin",
    )
    machine.add_python("3.13.5", name="python3")
    for number, place in enumerate(places):
        machine.add_python(f"3.12.{number}", bin_folder=machine.home / place)
        shutil.rmtree(machine.venv, ignore_errors=True)
        assert_made_with(machine, f"3.12.{number}")


def test_broken_shim_hides_no_interpreter(machine: Machine) -> None:
    machine.add_stub("python3.12", "echo 'command not found' >&2; exit 127")
    machine.add_python("3.12.9", bin_folder=machine.folder / "later")
    assert_made_with(machine, "3.12.9", PATH=f"{machine.bin}:{machine.folder / 'later'}")


def test_error_without_suitable_interpreter_names_supported_versions(machine: Machine) -> None:
    assert_rejected(machine, ["3.11", "3.14"])
    machine.add_stub("python3", "exit 1")  # as the probe reports for a Python that is too old or too new
    assert_rejected(machine, ["3.11", "3.14"])
    machine.add_python("3.12.9")
    assert_rejected(machine, ["PYTHON=3.13"], "3.13")


@pytest.mark.parametrize(("first", "named"), [(12, "3.12"), (13, "3.13")])
def test_error_names_python_without_a_wheel_and_one_with_a_wheel(machine: Machine, first: int, named: str) -> None:
    other = machine.add_python("3.11.2", name="my-python", first=first)
    for requested in ("my-python", str(other)):
        assert_rejected(machine, ["3.11.2", str(other), f"uv python install {named}"], requested)


def test_error_on_machine_without_any_wheel_suggests_no_other_python(machine: Machine) -> None:
    machine.add_python("3.12.9", first=0)
    assert_rejected(machine, ["Linux", "macOS"])
    assert "python install" not in machine.run().stderr


def test_interpreter_without_pip_needs_uv(machine: Machine) -> None:
    """Debian's python3 has neither pip nor ensurepip."""
    machine.add_python("3.11.2", name="python3", installer=False)
    assert_rejected(machine, ["3.11.2", "uv", "python3.11-venv"])
    machine.add_stub("uv", "exit 127")  # a shim that runs nothing
    assert_rejected(machine, ["3.11.2"])
    machine.add_stub("uv", "exit 0")
    assert_made_with(machine, "3.11.2")


def test_interpreter_can_be_requested_by_version_or_path(machine: Machine) -> None:
    machine.add_python("3.12.9", name="python3")
    machine.add_python("3.11.2")
    other = machine.add_python("3.13.5", name="my-python")
    for requested, version in (("3.11", "3.11.2"), ("3.12", "3.12.9"), ("my-python", "3.13.5"), (str(other), "3.13.5")):
        shutil.rmtree(machine.venv, ignore_errors=True)
        assert_made_with(machine, version, requested)


def test_environment_of_requested_interpreter_is_kept(machine: Machine) -> None:
    machine.add_python("3.11.2")
    assert_made_with(machine, "3.11.2")
    machine.add_python("3.12.9")
    for arguments in ((), ("3.11",), ("python3.11",)):
        unchanged = machine.run(*arguments)
        assert (unchanged.returncode, unchanged.stdout, unchanged.stderr) == (0, "", "")
    assert machine.made() == ["3.11.2"]
    assert_made_with(machine, "3.12.9", "3.12")
    assert_made_with(machine, "3.11.2", "python3.11")


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("#!/bin/sh\nexit 1\n")])
def test_environment_with_broken_interpreter_is_recreated(machine: Machine, harm: Callable[[Path], object]) -> None:
    machine.add_python("3.12.9")
    assert_made_with(machine, "3.12.9")
    harm(machine.venv / "bin" / "python")
    assert_made_with(machine, "3.12.9")


def test_real_interpreter_makes_an_environment_without_pip(tmp_path: Path) -> None:
    interpreter = os.path.realpath(sys.executable)
    subprocess.run([SCRIPT, tmp_path / "venv", interpreter], check=True, capture_output=True)
    program = "import sys, importlib.util as util; print(sys.prefix, util.find_spec('pip'))"
    done = subprocess.run([tmp_path / "venv" / "bin" / "python", "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == [str(tmp_path / "venv"), "None"]


def probe_of(version: tuple[int, ...] = (), **facts: object) -> dict[str, str]:
    """Return what the script's probe reports for this Python, with some facts about it and its machine replaced."""
    probe = SCRIPT.read_text().partition("PROBE='")[2].partition("'\n")[0]
    changes = [f"platform.{name} = lambda: {value!r}" for name, value in facts.items()]
    if version:
        changes.append(f"sys.version_info = {version}")
    program = "import platform, sys\n" + "\n".join([*changes, probe])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return dict(line.split("=", 1) for line in done.stdout.splitlines()) if done.returncode == 0 else {}


def test_probe_accepts_the_pythons_that_the_project_declares() -> None:
    declared = SpecifierSet(PROJECT["requires-python"])
    for minor in range(9, 20):
        assert bool(probe_of((3, minor, 0))) == declared.contains(f"3.{minor}.0"), minor
        assert declared.contains(f"3.{minor}.0") == (
            f"Programming Language :: Python :: 3.{minor}" in PROJECT["classifiers"]
        )


def test_probe_finds_a_wheel_exactly_where_a_binding_is_required() -> None:
    bindings = [line for line in map(Requirement, PROJECT["dependencies"]) if line.name.startswith("plyvel")]
    for system, sys_platform, machine in (
        ("Linux", "linux", "x86_64"),
        ("Linux", "linux", "aarch64"),
        ("Linux", "linux", "riscv64"),
        ("Darwin", "darwin", "arm64"),
        ("Darwin", "darwin", "x86_64"),
    ):
        for minor in range(11, 15):
            environment = {"python_version": f"3.{minor}", "sys_platform": sys_platform, "platform_machine": machine}
            required = any(line.marker and line.marker.evaluate(environment) for line in bindings)
            facts = probe_of((3, minor, 0), system=system, machine=machine, libc_ver=("glibc", "2.36"))
            assert facts["has_wheel"] == f"{required:d}", (system, machine, minor)


def test_plyvel_has_no_wheel_for_musl() -> None:
    for minor, has_wheel in ((11, "0"), (12, "0"), (13, "1"), (14, "1")):
        facts = probe_of((3, minor, 0), system="Linux", machine="x86_64", libc_ver=("", ""))
        assert facts["has_wheel"] == has_wheel


def test_probe_describes_the_running_interpreter() -> None:
    facts = probe_of()
    assert facts["version"] == platform.python_version()
    assert facts["has_installer"] == "1"
    assert facts["base"] == os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
