"""Real pip and uv install the written locks from the index: exactly the chosen releases."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from packaging.utils import canonicalize_name

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex

UV = Path(uv.__file__).parents[4] / "bin" / "uv"
OF_PIP = (sys.executable, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--no-input")
OF_UV = ("--no-cache", "--no-config", "--python", sys.executable)
Installer = Callable[[Path], list[object]]
INSTALLERS: dict[str, tuple[str, Installer]] = {
    "pip": ("requirements.txt", lambda lock: [*OF_PIP, "--require-hashes", "-r", lock]),
    "pip by pylock.toml": ("pylock.toml", lambda lock: [*OF_PIP, "-r", lock]),
    "uv": ("requirements.txt", lambda lock: [UV, "pip", "install", *OF_UV, "--require-hashes", "-r", lock]),
    "uv by pylock.toml": ("pylock.toml", lambda lock: [UV, "pip", "install", *OF_UV, "-r", lock]),
    "uv sync": ("requirements.txt", lambda lock: [UV, "pip", "sync", *OF_UV, lock]),
    "uv sync by pylock.toml": ("pylock.toml", lambda lock: [UV, "pip", "sync", *OF_UV, lock]),
}
FORMATS = {"requirements.txt": "requirements", "pylock.toml": "pylock"}
TIMEOUT_S = 120


@pytest.fixture
def published(commands: Commands, index: ServedIndex) -> Commands:
    """Publish difficult cases: extras, a yank, a pre-release, a cycle, wheels of one platform, Requires-Python."""
    index.wheel("app", "1.0", requires_dist=["lib[fast]>=2", "other-pkg", "colorama; sys_platform == 'win32'"])
    index.wheel("lib", "2.0", requires_dist=["six<2; extra == 'fast'", "Six", "native"], provides_extra=["fast"])
    index.wheel("lib", "2.1rc1")
    index.wheel("lib", "2.2", requires_python="<3")
    index.wheel("six", "1.16.0", requires_python=">=3.8")
    index.sdist("six", "1.16.0")
    index.wheel("six", "1.17.0")
    index.wheel("six", "2.0")
    index.wheel("colorama", "0.4")
    index.wheel("native", "1.0", tag="py3-none-any")
    index.wheel("native", "2.0", tag="py3-none-win_amd64")
    index.wheel("Other.Pkg", "3.0+local", requires_dist=["app"])
    index.history.yank("six", "1.17.0")
    commands.build_versions()
    return commands


def installed(command: list[object], folder: Path, index_url: str) -> dict[str, str]:
    """Run an installer that installs into `folder`, and return the installed distributions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    done = subprocess.run(
        [*map(str, command), "--target", str(folder), "--index-url", index_url],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**kept, "NO_PROXY": "*", "PIP_CONFIG_FILE": os.devnull},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = (path.name.removesuffix(".dist-info").partition("-") for path in folder.glob("*.dist-info"))
    return {canonicalize_name(name): version for name, _, version in parts}


@pytest.mark.nightly
@pytest.mark.parametrize("options", [(), ("--universal",)], ids=["one environment", "universal"])
def test_installers_install_exactly_the_chosen_releases(
    published: Commands, index: ServedIndex, tmp_path: Path, options: tuple[str, ...]
) -> None:
    wanted = ("app", "native>1; sys_platform == 'win32'", *options)
    chosen = {
        "app": "1.0",
        "lib": "2.0",
        "native": "1.0",
        "other-pkg": "3.0+local",
        "six": "1.16.0",
    }
    for name, format_ in FORMATS.items():
        (tmp_path / name).write_text(published.done("resolve", *wanted, "--format", format_).stdout)
    assert ("native-2.0" in (tmp_path / "pylock.toml").read_text()) == bool(options)
    for number, (installer, (name, command)) in enumerate(INSTALLERS.items()):
        installed_pins = installed(command(tmp_path / name), tmp_path / f"installed-{number}", index.url)
        assert installed_pins == chosen, installer


@pytest.mark.nightly
def test_file_that_differs_from_its_lock_is_not_installed(
    published: Commands, index: ServedIndex, tmp_path: Path
) -> None:
    for name, format_ in FORMATS.items():
        text = published.done("resolve", "six", "--format", format_).stdout
        before, _, after = text.partition("sha256:" if format_ == "requirements" else 'sha256 = "')
        start = text[: len(text) - len(after)]
        (tmp_path / name).write_text(start + "0" * 64 + after[64:].replace("    --hash=sha256:", "    --hash=sha256:0"))
        assert before
    for number, (installer, (name, command)) in enumerate(INSTALLERS.items()):
        with pytest.raises(AssertionError, match=r"(?is)hash"):
            installed(command(tmp_path / name), tmp_path / f"refused-{number}", index.url)
        assert installer
