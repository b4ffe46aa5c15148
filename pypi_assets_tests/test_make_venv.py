"""`make` takes an interpreter that can have plyvel, installs what is missing where it may, or ends in one sentence.

Interpreters, compilers and apt are stubs on a PATH of their own: they answer as configured, and record their calls.
"""

import os
import platform
import re
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
TOOLS = ("sh", "cat", "dirname", "mkdir", "mktemp", "rm")
LINES = """\
    apt install g++ libleveldb-dev python3-dev python3-venv     (Debian, Ubuntu)
    dnf install gcc-c++ leveldb-devel python3-devel             (Fedora)
    brew install leveldb                                        (macOS)
    uv python install 3.12                                      (x86-64 Linux; nothing has to be built then)
"""

PYTHON = """\
echo "{name} $*" >> {calls}
case "$1 $2" in
    "-m venv") mkdir -p "$4/bin" && cat {own} > "$4/bin/python" && : > "$4/pyvenv.cfg" && {chmod} +x "$4/bin/python" ;;
    "-m pip") case "$*" in *" plyvel") {pip} ;; esac ;;
    "-c import pip, plyvel") {serves} ;;
    *) cat {facts} ;;
esac
"""
COMPILER = """\
echo "{name} $*" >> {calls}
cat > /dev/null
[ -e {leveldb} ] || {{ echo "fatal error: leveldb/db.h: No such file" >&2; exit 1; }}
"""
APT = """\
echo "apt-get $*" >> {calls}
case "$*" in *install*) {effect} ;; esac
"""
HAS_COMPILER = "cc", "c++"


class Machine:
    """A PATH with stubs, and what was called of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.home = folder, folder / "bin", folder / "home"
        self.venv, self._calls, self.leveldb = folder / "venv", folder / "calls", folder / "db.h"
        for path in (self.bin, self.home):
            path.mkdir()
        for name in TOOLS:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.add_stub("id", "echo 1000")

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
        wheel: bool = False,
        venv: bool = True,
        headers: bool = True,
        pip: str = ":",
        bin_folder: Path | None = None,
    ) -> Path:
        """An interpreter; by default one that has headers, but no wheel of plyvel. `pip` installs plyvel."""
        name = name or f"python{version.rpartition('.')[0]}"
        facts, own = self.folder / f"{name}-{version}.facts", self.folder / f"{name}-{version}.own"
        path = (bin_folder or self.bin) / name
        facts.write_text(
            f"version={version}\nhas_wheel={wheel:d}\nhas_venv={venv:d}\nhas_headers={headers:d}\n"
            f"include=/usr/include/x\ncc=cc\ncxx=c++\nbase={path}\n"
        )
        values = {
            "calls": self._calls,
            "facts": facts,
            "own": own,
            "pip": pip,
            "serves": "exit 0",
            "chmod": shutil.which("chmod"),
        }
        own.write_text("#!/bin/sh\n" + PYTHON.format(name=f"venv-{name}", **values))
        return self.add_stub(name, PYTHON.format(name=name, **values), bin_folder)

    def add_compiler(self, *, leveldb: bool) -> None:
        for name in HAS_COMPILER:
            self.add_stub(name, COMPILER.format(name=name, calls=self._calls, leveldb=self.leveldb))
        if leveldb:
            self.leveldb.touch()

    def add_apt(self, effect: str = ":", *, root: bool = True) -> None:
        self.add_stub("apt-get", APT.format(calls=self._calls, effect=effect))
        self.add_stub("id", "echo 0" if root else "echo 1000")

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, self.venv, *arguments],
            env={"PATH": str(self.bin), "HOME": str(self.home), "LEVELDB_INCLUDE": str(self.folder), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, *names: str) -> list[str]:
        """The calls so far of these stubs, without the probes of interpreters."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [line for line in lines if line.partition(" ")[0] in names]

    def changed(self) -> list[str]:
        """What was called that changes anything."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [line for line in lines if re.match(r"apt-get|\S+ -m (venv|pip)", line)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def assert_made_with(machine: Machine, made: subprocess.CompletedProcess[str], version: str) -> None:
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines()[0] == f"making {machine.venv} with Python {version} ..."
    assert (machine.venv / "bin" / "python").exists()


def assert_refused(machine: Machine, made: subprocess.CompletedProcess[str], because: str) -> None:
    """One sentence with the four lines, exit 1, and nothing was changed."""
    assert (made.returncode, made.stdout) == (1, "")
    sentence, _, lines = made.stderr.partition("\n")
    assert lines == LINES
    assert re.search(because, sentence), sentence
    assert sentence.endswith("; one of these lines helps, and then the same command again:")
    assert machine.changed() == []
    assert not machine.venv.exists()


def test_an_interpreter_with_a_wheel_is_taken_before_the_default(machine: Machine) -> None:
    machine.add_compiler(leveldb=True)
    machine.add_python("3.13.5", name="python3")
    machine.add_python("3.11.2", wheel=True)
    assert_made_with(machine, machine.run(), "3.11.2")
    machine.add_python("3.12.9", wheel=True)
    shutil.rmtree(machine.venv)
    assert_made_with(machine, machine.run(), "3.12.9")
    installs = [call.partition(" install ")[2] for call in machine.calls("venv-python3.12")]
    plyvel = "--no-compile --constraint constraints.txt --only-binary plyvel plyvel"
    assert [one for one in installs if one] == ["--no-compile --constraint constraints.txt pip==26.3", plyvel]
    assert machine.calls(*HAS_COMPILER) == []


@pytest.mark.parametrize(
    "place",
    [
        ".local/bin",
        ".local/share/uv/python/cpython-3.12.12-linux-x86_64-gnu/bin",
        ".pyenv/versions/3.12.1/bin",
    ],
)
def test_interpreters_of_uv_and_pyenv_are_found(machine: Machine, place: str) -> None:
    machine.add_python("3.13.5", name="python3")
    machine.add_python("3.12.12", wheel=True, bin_folder=machine.home / place)
    assert_made_with(machine, machine.run(), "3.12.12")


def test_a_shim_that_runs_nothing_hides_no_interpreter(machine: Machine) -> None:
    machine.add_stub("python3.12", "echo 'command not found' >&2; exit 127")
    machine.add_python("3.12.9", wheel=True, bin_folder=machine.folder / "later")
    made = machine.run(PATH=f"{machine.bin}:{machine.folder / 'later'}")
    assert_made_with(machine, made, "3.12.9")


def test_without_a_wheel_an_interpreter_is_taken_that_can_build(machine: Machine) -> None:
    machine.add_compiler(leveldb=True)
    machine.add_python("3.14.1", headers=False)
    machine.add_python("3.13.5")
    made = machine.run()
    assert_made_with(machine, made, "3.13.5")
    assert made.stdout.splitlines()[1:] == ["building plyvel ..."]


def test_what_a_compiler_prints_reaches_no_person(machine: Machine) -> None:
    machine.add_compiler(leveldb=True)
    machine.add_python("3.13.5", pip="echo 'error: command g++ failed' >&2; exit 1")
    made = machine.run()
    assert made.returncode == 1
    log = machine.venv / "plyvel.log"
    assert made.stderr == f"plyvel could not be built: the end of {log} says why\n"
    assert log.read_text() == "error: command g++ failed\n"


@pytest.mark.parametrize(
    ("compiler", "leveldb", "headers", "missing"),
    [
        (False, False, False, r"Python\.h, a C\+\+ compiler, leveldb/db\.h"),
        (True, False, True, r": leveldb/db\.h"),
        (True, True, False, r": Python\.h"),
    ],
)
def test_a_user_who_may_install_nothing_gets_one_sentence(
    machine: Machine, compiler: bool, leveldb: bool, headers: bool, missing: str
) -> None:
    if compiler:
        machine.add_compiler(leveldb=leveldb)
    machine.add_python("3.13.5", name="python3", headers=headers)
    machine.add_apt(root=False)
    because = rf"no wheel for Python 3\.13\.5 here \(.*/python3\), which lacks what builds it.*{missing};"
    assert_refused(machine, machine.run(), because)


def test_root_without_apt_gets_the_sentence_too(machine: Machine) -> None:
    machine.add_python("3.14.0", name="python3", headers=False)
    machine.add_stub("id", "echo 0")
    assert_refused(machine, machine.run(), r"no wheel for Python 3\.14\.0")


def test_no_python_at_all_or_only_unfit_ones(machine: Machine) -> None:
    machine.add_apt()
    assert_refused(machine, machine.run(), r"no Python from 3\.11 to 3\.14 was found;")
    machine.add_stub("python3", "exit 1")  # as the probe does in one that is too old, or too new
    assert_refused(machine, machine.run(), r"no Python from 3\.11 to 3\.14 was found;")


def test_root_has_apt_install_what_is_missing(machine: Machine) -> None:
    machine.add_python("3.13.5", name="python3", venv=False, headers=False)
    machine.add_python("3.13.5", name="python3-complete")
    machine.add_compiler(leveldb=True)
    for name in HAS_COMPILER:
        (machine.bin / name).rename(machine.bin / f"{name}-of-apt")
    complete = machine.folder / "python3-complete-3.13.5.facts"
    complete.write_text(complete.read_text().replace("python3-complete", "python3"))
    moved = "; ".join(f"cat {machine.bin}/{name}-of-apt > {machine.bin}/{name}" for name in HAS_COMPILER)
    runnable = f"{shutil.which('chmod')} +x {' '.join(str(machine.bin / name) for name in HAS_COMPILER)}"
    facts = f"cat {complete} > {machine.folder}/python3-3.13.5.facts"
    machine.add_apt(f"{moved}; {runnable}; {facts}; echo 'Setting up g++'")
    made = machine.run()
    assert made.returncode == 0
    update, install = machine.calls("apt-get")
    packages = "python3.13-venv python3.13-dev g++ libleveldb-dev"
    assert update.endswith(" update")
    assert install.endswith(f" install --yes {packages}")
    assert made.stderr == f"installing {packages} by apt, which Python 3.13.5 needs ...\n"
    assert made.stdout == f"making {machine.venv} with Python 3.13.5 ...\nbuilding plyvel ...\n"


def test_a_wheel_needs_the_venv_module_alone(machine: Machine) -> None:
    """Debian's python3 comes without it."""
    machine.add_python("3.11.2", name="python3", wheel=True, venv=False, headers=False)
    refused = machine.run()
    assert_refused(
        machine, refused, r"^Python 3\.11\.2 \(.*/python3\) cannot make a virtual environment, .* venv module;"
    )
    machine.add_apt(f"echo has_venv=1 >> {machine.folder}/python3-3.11.2.facts")
    made = machine.run()
    assert made.returncode == 0
    assert machine.calls("apt-get")[1].endswith(" install --yes python3.11-venv")
    assert made.stdout == f"making {machine.venv} with Python 3.11.2 ...\n"


def test_where_apt_fails_the_sentence_follows(machine: Machine) -> None:
    machine.add_python("3.13.5", name="python3", headers=False)
    machine.add_apt("echo 'E: Unable to locate package' >&2; exit 100")
    made = machine.run()
    assert made.returncode == 1
    assert "E: Unable to locate package\nplyvel, with which LevelDBs are read and written, has no wheel" in made.stderr
    assert made.stderr.endswith(LINES)
    assert not machine.venv.exists()


def test_a_requested_interpreter_is_respected_and_checked_in_the_same_way(machine: Machine) -> None:
    machine.add_python("3.12.9", wheel=True)
    other = machine.add_python("3.13.5", name="my-python", headers=False)
    for requested in ("my-python", str(other)):
        assert_refused(machine, machine.run(requested), r"no wheel for Python 3\.13\.5 here \(.*/my-python\)")
    machine.add_compiler(leveldb=True)
    other = machine.add_python("3.13.5", name="my-python")
    assert_made_with(machine, machine.run("my-python"), "3.13.5")


def test_a_version_can_be_requested(machine: Machine) -> None:
    machine.add_python("3.12.9", name="python3", wheel=True)
    machine.add_python("3.11.2", name="python3.11", wheel=True)
    assert_made_with(machine, machine.run("3.11"), "3.11.2")
    shutil.rmtree(machine.venv)
    assert_made_with(machine, machine.run("3.12"), "3.12.9")
    again = machine.run("3.13")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr.startswith("no Python from 3.11 to 3.14 was found for PYTHON=3.13; ")


def test_a_folder_that_serves_is_left_alone(machine: Machine) -> None:
    machine.add_python("3.11.2", wheel=True)
    assert machine.run().returncode == 0
    made = machine.changed()
    machine.add_python("3.12.9", wheel=True)
    for arguments in ((), ("3.11",), ("python3.11",)):
        unchanged = machine.run(*arguments)
        assert (unchanged.returncode, unchanged.stdout, unchanged.stderr) == (0, "", "")
    assert machine.changed() == made


@pytest.mark.parametrize("requested", ["3.12", "python3.12"])
def test_a_folder_of_another_interpreter_than_the_requested_is_made_again(machine: Machine, requested: str) -> None:
    machine.add_python("3.11.2", wheel=True)
    assert machine.run().returncode == 0
    machine.add_python("3.12.9", wheel=True)
    made = machine.run(requested)
    assert (made.returncode, made.stdout) == (0, f"making {machine.venv} again with Python 3.12.9 ...\n")


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("#!/bin/sh\nexit 1\n")])
def test_a_folder_whose_interpreter_is_gone_or_lacks_plyvel_is_made_again(
    machine: Machine, harm: Callable[[Path], object]
) -> None:
    machine.add_python("3.12.9", wheel=True)
    assert machine.run().returncode == 0
    harm(machine.venv / "bin" / "python")
    made = machine.run()
    assert (made.returncode, made.stdout) == (0, f"making {machine.venv} again with Python 3.12.9 ...\n")


def probe_of(version: tuple[int, ...] = (), **facts: object) -> dict[str, str]:
    """What the script's probe reports of this Python, where other things are true of it and of its machine."""
    probe = SCRIPT.read_text().partition("PROBE='")[2].partition("'\n")[0]
    changes = [f"platform.{name} = lambda: {value!r}" for name, value in facts.items()]
    if version:
        changes.append(f"sys.version_info = {version}")
    program = "import platform, sys\n" + "\n".join([*changes, probe])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return dict(line.split("=", 1) for line in done.stdout.splitlines()) if done.returncode == 0 else {}


X86_LINUX: dict[str, object] = {"system": "Linux", "machine": "x86_64", "libc_ver": ("glibc", "2.36")}


@pytest.mark.parametrize(
    ("version", "facts", "has_wheel"),
    [
        ((3, 11, 0), {}, True),
        ((3, 12, 3), {}, True),
        ((3, 13, 0), {}, False),
        ((3, 14, 2), {}, False),
        ((3, 12, 3), {"machine": "aarch64"}, False),
        ((3, 12, 3), {"libc_ver": ("", "")}, False),  # musl
        ((3, 12, 3), {"system": "Darwin", "machine": "arm64", "libc_ver": ("", "")}, False),
    ],
)
def test_where_plyvel_has_a_wheel(version: tuple[int, ...], facts: dict[str, object], has_wheel: bool) -> None:
    assert probe_of(version, **X86_LINUX | facts)["has_wheel"] == f"{has_wheel:d}"


def test_which_pythons_the_probe_accepts_is_what_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = SpecifierSet(project["requires-python"])
    for minor in range(9, 20):
        assert bool(probe_of((3, minor, 0))) == declared.contains(f"3.{minor}.0"), minor
        assert declared.contains(f"3.{minor}.0") == (
            f"Programming Language :: Python :: 3.{minor}" in project["classifiers"]
        )


def test_pip_brings_plyvel_exactly_where_it_has_a_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [plyvel] = [one for one in map(Requirement, project["dependencies"]) if one.name == "plyvel"]
    assert plyvel.marker is not None
    for minor in range(11, 15):
        for system, sys_platform, machine in (
            ("Linux", "linux", "x86_64"),
            ("Linux", "linux", "aarch64"),
            ("Darwin", "darwin", "arm64"),
            ("Darwin", "darwin", "x86_64"),
        ):
            environment = {"python_version": f"3.{minor}", "sys_platform": sys_platform, "platform_machine": machine}
            facts = X86_LINUX | {"system": system, "machine": machine}
            assert plyvel.marker.evaluate(environment) == (probe_of((3, minor, 0), **facts)["has_wheel"] == "1")
    [built] = map(Requirement, project["optional-dependencies"]["leveldb"])
    assert (built.name, built.specifier, built.marker) == ("plyvel", plyvel.specifier, None)


def test_this_interpreter_is_probed_as_what_it_is() -> None:
    facts = probe_of()
    assert facts["version"] == platform.python_version()
    assert facts["has_venv"] == "1"
    assert facts["base"] == os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
