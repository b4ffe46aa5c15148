"""Make a release: `make release`, or `make release DRY_RUN=1` to try it. It works in a clone of HEAD.

The version is in pyproject.toml, and CHANGELOG.md must describe it as "Unreleased". The steps:

1. Date the changelog's section.
2. Record a home with a wheel of this commit, from which the tests of later releases upgrade, and commit it.
3. Build the sdist and the wheel twice, in different folders; their bytes must be equal.
4. Install the wheel with pip, uv and pipx on each installed Python from 3.11 to 3.14, and run all stages there.
5. Write the bill of materials and the provenance statement (SLSA in an in-toto statement), both as JSON.
6. Tag with a sign-off, and fetch commits and tag into this repository. A dry run leaves only the files in `dist/`.

Nothing is uploaded: a workflow publishes the tag when it is pushed. `--build-only` repeats steps 3 and 5 for HEAD,
which must be a tag.
"""

import argparse
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from try_wheel import Environment

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
UNRELEASED = "Unreleased"
BUILD_TYPE = "https://packaging.python.org/en/latest/specifications/pyproject-toml/#build-system"


def run(*command: str | Path, folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Return the output of a command. End the program with the command's messages if it fails."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def read_version(project: Path) -> str:
    version: str = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def date_changelog(text: str, version: str, day: str) -> str:
    """Return the changelog with the day of `version` in its heading. Raises ValueError if it has no such section."""
    head, found, rest = text.partition(f"## [{version}] - {UNRELEASED}\n")
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    if not found or not section.strip():
        raise ValueError(f"CHANGELOG.md has no section '## [{version}] - {UNRELEASED}': describe the release there")
    return f"{head}## [{version}] - {day}\n{rest}"


def build(project: Path, folder: Path) -> list[Path]:
    """Build the sdist, and the wheel from the sdist, in a new copy of the commit. Return their paths in `folder`."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=project, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(source, filter="data")
    epoch = run("git", "log", "-1", "--format=%ct", folder=project)
    environment = {"SOURCE_DATE_EPOCH": epoch, "PYTHONDONTWRITEBYTECODE": "1"}
    run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder),
        folder=source,
        environment=environment,
    )
    shutil.rmtree(source)
    [sdist] = folder.glob("*.tar.gz")
    sdist.write_bytes(normalized_sdist(sdist.read_bytes(), int(epoch)))
    return sorted(folder.iterdir())


def normalized_sdist(content: bytes, epoch: int) -> bytes:
    """Return an sdist with its members sorted, and without the times, owners and modes of the machine that built it."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(content)) as old,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build_twice(project: Path, folder: Path) -> list[Path]:
    """Build twice, and return the files of the first build. End the program if the second build has other bytes."""
    first, second = (build(project, folder / name) for name in ("first", "second"))
    for one, other in zip(first, second, strict=True):
        if one.read_bytes() != other.read_bytes():
            sys.exit(f"{one.name} differs between two builds: compare {one} with {other}")
        print(f"{one.name}: twice the same bytes, sha256 {sha256(one)}")
    return first


def provenance(project: Path, files: Sequence[Path], started: datetime) -> dict[str, object]:
    """Return an unsigned in-toto statement with the commit and the tools from which the files were built."""
    commit = run("git", "rev-parse", "HEAD", folder=project)
    tools = {name: importlib.metadata.version(name) for name in ("build", "setuptools")}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": {"sha256": sha256(file)}} for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": read_version(project)},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *({"uri": f"pkg:pypi/{name}@{version}"} for name, version in tools.items()),
                ],
            },
            "runDetails": {
                "builder": {"id": f"urn:pypi-assets:make-release:python-{sys.version.split()[0]}"},
                "metadata": {"startedOn": started.strftime("%Y-%m-%dT%H:%M:%SZ")},
            },
        },
    }


def check_installed(project: Path, wheel: Path, folder: Path) -> None:
    """Install the wheel in new environments of each Python, with pip, uv and pipx, and use the installation."""
    tried = 0
    for version in PYTHONS:
        environment = folder / version
        made = [ROOT / ".ci" / "make_venv", environment, version]
        done = subprocess.run(made, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"Python {version} is skipped: {done.stderr.strip()}")
            continue
        base = run(environment / "bin" / "python", "-c", "import sys; print(sys._base_executable)")
        run(base, ROOT / ".ci" / "try_wheel.py", "--stack", wheel, folder=project)
        tried += 1
        print(f"Python {version}: pip installs the wheel, and all stages and `pypi-assets up` run")
        for tool, command in tool_installs(wheel, base).items():
            home = folder / f"tools-{version}" / tool
            tools, programs = str(home / "tools"), str(home / "bin")
            places = {"UV_TOOL_DIR": tools, "UV_TOOL_BIN_DIR": programs, "PIPX_HOME": tools, "PIPX_BIN_DIR": programs}
            run(*command, environment=places)
            printed = run(home / "bin" / "pypi-assets", "--version", folder=folder)
            if not printed.endswith(read_version(project)):
                sys.exit(f"the command that {tool} installed has the version {printed}, not {read_version(project)}")
            print(f"Python {version}: {tool} installs the wheel")
    if not tried:
        sys.exit(f"none of Python {', '.join(PYTHONS)} is installed: install one, and run the same command again")


def tool_installs(wheel: Path, base: str) -> dict[str, Sequence[str | Path]]:
    binaries = Path(sys.executable).parent
    constraints = ROOT / "constraints.txt"
    return {
        "uv": (binaries / "uv", "tool", "install", "--quiet", "--python", base, "--constraints", constraints, wheel),
        "pipx": (
            *(binaries / "pipx", "install", "--quiet", "--python", base),
            *(f"--pip-args=--quiet --only-binary :all: --constraint {constraints}", wheel),
        ),
    }


def record_home(project: Path, wheel: Path, folder: Path, version: str) -> Path:
    """Record a home of this release with the installed wheel. Return the archive, a file of the tests."""
    (folder / "recording").mkdir()
    python = Environment(folder / "recording", f"{wheel}[journal]").python
    archive = project / "pypi_assets_tests" / "upgrades" / "homes" / f"{version}.tar.gz"
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from pathlib import Path; "
        "from pypi_assets_tests.upgrades.recorded_home import record; record(*map(Path, sys.argv[1:]))"
    )
    run(sys.executable, "-c", program, project, archive, folder / "home", python)
    return archive


def write_distributions(project: Path, files: Sequence[Path], started: datetime) -> None:
    """Fill `dist/` with the files, their provenance statement and the bill of materials."""
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    shutil.rmtree(DISTRIBUTIONS, ignore_errors=True)
    DISTRIBUTIONS.mkdir()
    for file in files:
        shutil.copy2(file, DISTRIBUTIONS)
    statement = json.dumps(provenance(project, files, started), indent=2)
    (DISTRIBUTIONS / "provenance.json").write_text(f"{statement}\n", encoding="utf-8")
    run("make", "--silent", "sbom")


def build_again(started: datetime) -> None:
    """Build the files of HEAD again, which must be the tag of its version."""
    tag = f"v{read_version(ROOT)}"
    if tag not in run("git", "tag", "--points-at", "HEAD").splitlines():
        sys.exit(f"HEAD is not the tag {tag}: check it out first")
    with tempfile.TemporaryDirectory() as temporary:
        write_distributions(ROOT, build_twice(ROOT, Path(temporary)), started)


def release(*, is_dry_run: bool, started: datetime) -> None:
    version = read_version(ROOT)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        project = folder / "project"
        run("git", "clone", "--quiet", ROOT, project)
        for name in ("user.name", "user.email"):
            run("git", "config", name, run("git", "config", name), folder=project)
        if run("git", "tag", "--list", f"v{version}", folder=project):
            sys.exit(f"the tag v{version} exists: raise the version in pyproject.toml")
        changelog = project / "CHANGELOG.md"
        try:
            text = date_changelog(changelog.read_text(encoding="utf-8"), version, f"{started:%Y-%m-%d}")
        except ValueError as error:
            sys.exit(str(error))
        changelog.write_text(text, encoding="utf-8")
        commit = ("git", "commit", "--quiet", "--signoff", "--message")
        run(*commit, f"Date the changelog of {version}", "--all", folder=project)

        trial = build(project, folder / "trial")
        archive = record_home(project, next(path for path in trial if path.suffix == ".whl"), folder, version)
        print(f"recorded a home: {archive.name}, {archive.stat().st_size:,} bytes")
        run("git", "add", archive, folder=project)
        run(*commit, f"Release {version}", folder=project)

        files = build_twice(project, folder / "builds")
        check_installed(project, next(path for path in files if path.suffix == ".whl"), folder / "environments")
        write_distributions(project, files, started)
        if is_dry_run:
            print(f"dry run: {DISTRIBUTIONS} has the files, and nothing was committed or tagged")
            return
        run("git", "tag", "--annotate", f"v{version}", "--message", tag_message(project, version), folder=project)
        run("git", "fetch", "--quiet", project, "tag", f"v{version}")
        run("git", "merge", "--quiet", "--ff-only", f"v{version}")
        print(f"made the tag v{version}: push it, and the workflow publishes")


def tag_message(project: Path, version: str) -> str:
    name, email = (run("git", "config", setting, folder=project) for setting in ("user.name", "user.email"))
    return f"pypi-assets {version}\n\nSigned-off-by: {name} <{email}>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="keep nothing but the files in dist/")
    parser.add_argument("--build-only", action="store_true", help="build the files of HEAD, a tag, again")
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    if arguments.build_only:
        build_again(started)
        return
    if run("git", "status", "--porcelain") and not arguments.dry_run:
        sys.exit("the working tree has changes: commit or remove them first")
    release(is_dry_run=arguments.dry_run, started=started)


if __name__ == "__main__":
    main()
