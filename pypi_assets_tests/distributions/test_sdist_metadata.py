"""The files that an sdist's metadata come from."""

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import core_metadata, make_sdist

SETUP = "from setuptools import setup\n"


@pytest.mark.parametrize(
    ("files", "source"),
    [
        (
            {"pyproject.toml": '[project]\nname = "Demo"\nversion = "1.0"\nrequires-python = ">=3.8"'},
            "pyproject.toml",
        ),
        ({"setup.cfg": "[metadata]\nname = Demo\nversion = 1.0\n[options]\npython_requires = >=3.8\n"}, "setup.cfg"),
        ({"setup.py": f"{SETUP}setup(name='Demo', version='1.0', python_requires='>=3.8')"}, "setup.py"),
        (
            {"lib/demo.egg-info/PKG-INFO": core_metadata("Demo", "1.0", requires_python=">=3.8")},
            "lib/demo.egg-info/PKG-INFO",
        ),
    ],
)
def test_metadata_without_pkg_info(tmp_path, files, source):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={"demo.py": "", **files}))
    assert record.error is None
    assert (record.project, record.version, record.requires_python) == ("Demo", "1.0", ">=3.8")
    assert f"metadata by: {source}" in record.notes


def test_poetry_tables_name_the_project(tmp_path):
    pyproject = '[tool.poetry]\nname = "Demo"\nversion = "1.0"\n[tool.poetry.dependencies]\na = "*"'
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={"pyproject.toml": pyproject}))
    assert record.error is None
    assert (record.project, record.version, record.requires_dist) == ("Demo", "1.0", ("a",))


@pytest.mark.parametrize("value", ["attr: demo.__version__", "file: VERSION"])
def test_dynamic_version_of_setup_cfg_is_not_used(tmp_path, value):
    files = {"setup.cfg": f"[metadata]\nname = Demo\nversion = {value}\n"}
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files=files))
    assert (record.project, record.version) == ("Demo", "1.0")


PROJECT = """
[project]
name = "Demo"
license = "MIT"
classifiers = ["License :: OSI Approved", "Topic :: Other", 3]
import-names = ["demo", "_demo ; private"]
import-namespaces = ["space"]
[project.urls]
Docs = "https://example.org/docs"
Broken = 3
"""
POETRY = """
[tool.poetry]
name = "Demo"
license = "MIT"
classifiers = ["License :: OSI Approved"]
homepage = "https://example.org"
repository = "https://example.org/source"
urls = {Docs = "https://example.org/docs"}
"""
SETUP_CFG = """
[metadata]
name = Demo
license = MIT
classifiers =
    Topic :: Other
    License :: OSI Approved
url = https://example.org
project_urls =
    Docs = https://example.org/docs
"""
HOME, SOURCE = "Homepage, https://example.org", "Repository, https://example.org/source"
DOCS = "Docs, https://example.org/docs"


@pytest.mark.parametrize(
    ("name", "content", "license_expression", "text", "project_urls", "import_names"),
    [
        ("pyproject.toml", PROJECT, "MIT", None, (DOCS,), ("demo", "_demo ; private", "space")),
        ("pyproject.toml", PROJECT.replace('"MIT"', '{text = "MIT\\nand more"}'), None, "MIT and more", (DOCS,), ...),
        ("pyproject.toml", PROJECT.replace('"MIT"', '{file = "LICENSE"}'), None, None, (DOCS,), ...),
        ("pyproject.toml", POETRY, None, "MIT", (HOME, SOURCE, DOCS), None),
        ("setup.cfg", SETUP_CFG, None, "MIT", (HOME, DOCS), None),
        ("setup.cfg", SETUP_CFG.replace("license =", "license_expression ="), "MIT", None, (HOME, DOCS), None),
    ],
)
def test_licence_links_and_import_names_without_pkg_info(
    tmp_path, name, content, license_expression, text, project_urls, import_names
):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={name: content}))
    assert (record.license_expression, record.license) == (license_expression, text)
    assert record.license_classifiers == ("License :: OSI Approved",)
    assert record.project_urls == project_urls
    assert import_names in (..., record.import_names)
    assert record.declared == (() if record.import_names is None else ("_demo", "demo", "space"))


def test_import_names_can_be_declared_as_none(tmp_path):
    pyproject = '[project]\nname = "demo"\nimport-names = []'
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={"pyproject.toml": pyproject}))
    assert record.import_names == ()


def test_pkg_info_comes_first(tmp_path):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files={"pyproject.toml": PROJECT, "setup.cfg": SETUP_CFG}))
    assert (record.license_expression, record.license, record.license_classifiers) == (None, None, ())
    assert (record.project_urls, record.import_names) == ((), None)


def test_hostile_tables_stay_bounded_and_are_noted(tmp_path):
    links = "".join(f'l{n} = "https://example.org/\\u0007{n}"\n' for n in range(1500))
    pyproject = f'[project]\nname = "demo"\nlicense = {{text = "{"é" * 5000}"}}\n[project.urls]\n{links}'
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={"pyproject.toml": pyproject}))
    assert record.license == "é" * 512
    assert record.project_urls[999] == "l999, https://example.org/ 999"
    assert len(record.project_urls) == 1000
    assert any(note.startswith("pyproject.toml: Project-URL: 500 values are left out") for note in record.notes)
