"""`.ci/install.py` installs with uv and the settings of pip, or with pip if uv fails."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pypi_assets_tests.ci_scripts import load_script

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / ".ci" / "install.py"


@pytest.fixture(scope="module")
def installer() -> Any:
    return load_script("install")


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return the command for a pip with a separate configuration."""
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://global.example/simple\nproxy = http://proxy.example:3128\n"
        "cert = /certificates.pem\n"
        "[install]\nextra-index-url =\n    https://one.example/simple\n    https://two.example/simple\n"
        "[download]\nno-index = true\n"
    )
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text("[global]\ncert = /zzz.pem\n")
    for name in os.environ:
        if name.startswith(("PIP_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return [sys.executable, "-m", "pip"]


def test_pip_settings_become_uv_settings(
    installer: Any, configured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels /more")
    settings = installer.pip_settings(configured)
    expected = {
        "HOME": "/home/x",
        "UV_INDEX_URL": "https://global.example/simple",
        "UV_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels,/more",
        "ALL_PROXY": "http://proxy.example:3128",
        "SSL_CERT_FILE": "/certificates.pem",
    }
    assert expected.items() <= installer.uv_environment(settings, {"HOME": "/home/x"}).items()


def test_variables_override_files_and_uv_variables_override_both(
    installer: Any, configured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.example/simple")
    settings = installer.pip_settings(configured)
    assert installer.uv_environment(settings, {})["UV_INDEX_URL"] == "https://variable.example/simple"
    own = {"UV_INDEX_URL": "https://own.example/simple"}
    assert installer.uv_environment(settings, own)["UV_INDEX_URL"] == "https://own.example/simple"


def write_wheel(folder: Path) -> None:
    folder.mkdir()
    info = "a_small_wheel-1.0.dist-info"
    with zipfile.ZipFile(folder / "a_small_wheel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a_small_wheel.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: a-small-wheel\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"a_small_wheel.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.mark.nightly
@pytest.mark.parametrize(("uv", "name"), [('exec {real} "$@"', "uv"), ('[ "$1" = --version ]', "pip")])
def test_package_is_installed_from_find_links_folder(tmp_path: Path, uv: str, name: str) -> None:
    """Install with the uv of PATH, or with pip if that uv fails. No index is used."""
    write_wheel(tmp_path / "wheels")
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin" / "uv"
    real = Path(sys.executable).parent / "uv"
    stub.write_text(f"#!/bin/sh\n{uv.format(real=real)}\n")
    stub.chmod(0o755)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    own |= {"PATH": f"{tmp_path / 'bin'}:{own['PATH']}", "PIP_NO_INDEX": "1"}
    own |= {"PIP_FIND_LINKS": str(tmp_path / "wheels"), "UV_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([python, SCRIPT, "a-small-wheel"], env=own, check=True, capture_output=True)
    [written] = (tmp_path / "venv").glob("lib/*/site-packages/a_small_wheel-1.0.dist-info/INSTALLER")
    assert written.read_text().strip() == name


@pytest.mark.nightly
def test_missing_package_fails(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    own |= {"PIP_NO_INDEX": "1", "PATH": str(tmp_path)}
    command = [tmp_path / "venv" / "bin" / "python", SCRIPT, "a-small-wheel"]
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a-small-wheel" in done.stderr


def test_modules_that_tests_import_are_compiled(installer: Any) -> None:
    skipped = ("site-packages/pandas/tests/x.py", "site-packages/sympy/core/x.py", "pypi_assets_tests/test_x.py")
    compiled = ("site-packages/pandas/core/x.py", "pypi_assets_tests/builders.py", "pypi_assets/testing_x.py")
    assert [path for path in skipped if not installer.NOT_COMPILED.search(f"/{path}")] == []
    assert [path for path in compiled if installer.NOT_COMPILED.search(f"/{path}")] == []
