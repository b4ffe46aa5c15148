"""The wheel has all files of the package and a correct description; `make dist` installs and runs it."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Build the wheel from a source distribution, which is built from a copy of the files in the repository."""
    folder = tmp_path_factory.mktemp("packaging")
    sources = folder / "sources"
    sources.mkdir()
    for name in ("pypi_assets", "pypi_assets_tests", "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        (sources / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", sources]
    subprocess.run(command, check=True, capture_output=True)
    [path] = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(wheel.read(name))


@pytest.mark.nightly
def test_wheel_has_exactly_the_files_of_the_package(wheel: zipfile.ZipFile) -> None:
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = [path for path in (ROOT / "pypi_assets").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == {path.relative_to(ROOT).as_posix() for path in files}
    assert {"pypi_assets/py.typed", "pypi_assets/catalog/migrations/env.py"} <= inside


@pytest.mark.nightly
def test_leveldb_binding_is_required_only_if_it_has_a_wheel(metadata: Message) -> None:
    """The wheels of a LevelDB binding depend on Python, operating system and processor."""
    bindings = [line for line in map(Requirement, metadata.get_all("Requires-Dist", [])) if "plyvel" in line.name]
    old, new = ["plyvel"], ["plyvel-next"]
    for sys_platform, machine, *expected in (  # on Python 3.11, 3.12, 3.13, 3.14
        ("linux", "x86_64", old, old, new, new),
        ("linux", "aarch64", [], new, new, new),
        ("linux", "riscv64", [], [], [], []),
        ("darwin", "arm64", [], new, new, new),
        ("darwin", "x86_64", [], new, new, new),
        ("win32", "AMD64", [], new, new, new),
        ("win32", "ARM64", [], [], [], []),
    ):
        for minor, names in zip(range(11, 15), expected, strict=True):
            environment = {
                "python_version": f"3.{minor}",
                "sys_platform": sys_platform,
                "platform_machine": machine,
                "extra": "",
            }
            required = [line.name for line in bindings if line.marker and line.marker.evaluate(environment)]
            assert required == names, environment


def test_description_has_no_links_into_the_repository(metadata: Message) -> None:
    text = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert text.startswith("# pypi-assets\n")
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", text) == []
    assert "](docs/" in (ROOT / "README.md").read_text()
