"""The commands of pages: they name an address that the operator or the socket has, never one of a request."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.service.pages.install import shell_requirement
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.published import Client, Published

PUBLIC = "https://packages.example.org/pypi/"


def commands(client: Client, path: str) -> list[str]:
    """The commands on a page, as a browser copies them."""
    text = page(client, path).text
    tools = ("pip install --index-url ", "uv pip install --default-index ")
    return [f"{tool}{' '.join(part.split()[:2])}" for tool in tools for part in text.split(f" {tool}")[1:]]


def test_a_page_installs_from_the_service_as_of_its_serial(client: Client, published: Published):
    serial = published.index.serial
    for path, index, requirement in (
        ("/project/demo/", "simple/", "demo"),
        ("/release/demo/2.0/", "simple/", "demo==2.0"),
        ("/import/yaml/", "simple/", "pyyaml"),
        (f"/at/{serial}.{serial}/project/demo/", f"at/{serial}/simple/", "demo"),
        (f"/at/{serial}.{serial}/release/demo/2.0/", f"at/{serial}/simple/", "demo==2.0"),
        ("/", "simple/", "pyyaml"),
    ):
        expected = f"{client.url}{index} {requirement}"
        pip, uv = commands(client, path)
        assert (pip, uv) == (f"pip install --index-url {expected}", f"uv pip install --default-index {expected}")


def test_the_command_of_a_page_installs(client: Client, tmp_path: Path):
    [command] = [one for one in commands(client, "/release/demo/1.0/") if one.startswith("pip ")]
    options = ["--isolated", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--target", str(tmp_path)]
    subprocess.run([sys.executable, "-m", *shlex.split(command), *options], check=True, capture_output=True)
    assert (tmp_path / "demo" / "__init__.py").exists()


def test_no_host_of_a_request_is_shown(client: Client):
    for name in ("Host", "X-Forwarded-Host", "Forwarded"):
        value = "host=elsewhere.invalid" if name == "Forwarded" else "elsewhere.invalid"
        answer = client.get("/project/demo/", headers={**BROWSER, name: value})
        assert (answer.status_code, "elsewhere.invalid" in answer.text) == (200, False)


def test_the_public_address_is_that_of_the_setting(published: Published):
    with published.client(service_public_url=PUBLIC) as client:
        [pip, _] = commands(client, "/project/demo/")
        assert pip == f"pip install --index-url {PUBLIC}simple/ demo"
        assert "data-own-address" not in client.get("/project/demo/").text
    with published.client(service_public_url="http://packages.example.org:8642/") as client:
        shown = client.get("/project/demo/").text
        assert "--trusted-host packages.example.org:8642<" in shown


SHELL_REQUIREMENTS = [
    ("six", None, "six"),
    ("six", "1.0", "six==1.0"),
    ("six", "1!1.0", "'six==1!1.0'"),
    ("six", "1.0$(reboot)", None),
    ("six", "; reboot", None),
    ("$(reboot)", None, None),
    ("-r", None, None),
    ("six", "not a version", None),
]


def test_only_what_an_installer_can_be_asked_for_becomes_a_command(subtests: pytest.Subtests):
    for project, version, expected in SHELL_REQUIREMENTS:
        with subtests.test(project=project, version=version):
            assert shell_requirement(project, version) == expected
