"""Each question is a typed method, and importing the package is cheap."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.client import Client
from pypi_assets.questions.question import all_questions
from pypi_assets_tests.client.written_methods import FILE, written

PROGRAM = """
import pypi_assets
from pypi_assets.client import ResultIterator
from pypi_assets.lookup import ModuleResult

with pypi_assets.connect("https://host") as client:
    found: ResultIterator[ModuleResult] = client.at(12).module("yaml", prefix=True)
    names: list[str] = [one["project"] for one in found]
    serial: int = found.serial
    files: list[str | None] = [one["requires_python"] for one in client.page("demo")]
"""
WRONG = """
import pypi_assets

client = pypi_assets.connect("https://host")
client.module()  # error
client.module("yaml", colour="red")  # error
[one["no_such_field"] for one in client.module("yaml")]  # error
number: int = client.module("yaml").cursor  # error
"""


def test_methods_match_the_registry() -> None:
    assert FILE.read_text() == written(), "run python -m pypi_assets_tests.client.written_methods"
    for question in all_questions():
        signature = inspect.signature(getattr(Client, question.name.replace("-", "_")))
        paged = ["page_size", "cursor"] if question.sort_key else []
        assert list(signature.parameters) == ["self", *(parameter.name for parameter in question.takes), *paged]


@pytest.mark.nightly
def test_program_with_the_methods_is_type_checked(tmp_path: Path) -> None:
    for name, program in (("right.py", PROGRAM), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(program)
        command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--config-file", "", "--cache-dir"]
        options = [str(tmp_path / "cache"), "--follow-imports", "silent", str(tmp_path / name)]
        result = subprocess.run([*command, *options], capture_output=True, text=True, cwd=FILE.parents[2])
        wrong = {int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line}
        expected = {number for number, line in enumerate(program.splitlines(), 1) if "# error" in line}
        assert wrong == expected, result.stdout + result.stderr


def imported(program: str) -> set[str]:
    """Return the modules that a program imports and an empty program does not."""
    shown = "import sys; known = set(sys.modules)\n{}\nprint(*set(sys.modules) - known)"
    command = [sys.executable, "-c", shown.format(program)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_imports_nothing_else() -> None:
    assert imported("import typing; import pypi_assets") - imported("import typing") == {"pypi_assets"}


def test_service_client_imports_neither_the_catalog_nor_pandas() -> None:
    modules = imported("import pypi_assets; pypi_assets.connect('http://127.0.0.1:9')")
    assert "requests" in modules
    assert {"pandas", "sqlalchemy", "pydantic", "dagster", "starlette"} & modules == set()
