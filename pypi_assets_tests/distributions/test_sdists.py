"""Sdists: formats and top folders, and where metadata and entry points come from."""

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import ErrorKind
from pypi_assets_tests.builders import core_metadata, make_sdist, tar_bytes

SETUP = "from setuptools import setup\n"
DECLARED = {"console_scripts": {"run": "demo:main"}, "plugins": {"a.b": "demo:plugin [x]"}}


@pytest.mark.parametrize("suffix", ["tar.gz", "tgz", "tar.bz2", "tar.xz", "tar", "zip"])
def test_every_format(tmp_path, suffix):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", format=suffix, requires_dist=["a"]))
    assert record.error is None
    assert (record.project, record.version, record.requires_dist, record.modules) == ("demo", "1.0", ("a",), ("demo",))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n'
                '[project.entry-points.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.scripts]\n'
                'run = {reference = "demo:main", type = "console"}\n'
                '[tool.poetry.plugins.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[tool.flit.metadata]\nmodule = "demo"\n[tool.flit.scripts]\nrun = "demo:main"\n'
                '[tool.flit.entrypoints.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    run = demo:main\n"
                "plugins =\n    a.b = demo:plugin [x]\n"
            },
            DECLARED,
        ),
        (
            {
                "setup.py": f"{SETUP}groups = {{'console_scripts': ['run=demo:main'], "
                "'plugins': 'a.b = demo:plugin [x]'}\nsetup(entry_points=groups)"
            },
            DECLARED,
        ),
        (
            {
                "setup.py": f"{SETUP}setup(entry_points='[console_scripts]\\nrun=demo:main\\n"
                "[plugins]\\na.b = demo:plugin [x]')"
            },
            DECLARED,
        ),
        ({"setup.py": f"{SETUP}setup(entry_points=unknown)"}, {}),
        (
            {
                "demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"),
                "demo.egg-info/entry_points.txt": "[console_scripts]\nrun=demo:main\n[plugins]\na.b=demo:plugin [x]",
            },
            DECLARED,
        ),
        (
            {
                "demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"),
                "setup.py": f"{SETUP}setup(entry_points={{'g': ['a=b']}})",
            },
            {},
        ),
    ],
)
def test_entry_points(tmp_path, files, expected):
    assert read_path(make_sdist(tmp_path, "demo", "1.0", files=files)).entry_points == expected


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


def test_poetrys_own_tables_tell_the_name(tmp_path):
    pyproject = '[tool.poetry]\nname = "Demo"\nversion = "1.0"\n[tool.poetry.dependencies]\na = "*"'
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={"pyproject.toml": pyproject}))
    assert record.error is None
    assert (record.project, record.version, record.requires_dist) == ("Demo", "1.0", ("a",))


@pytest.mark.parametrize("value", ["attr: demo.__version__", "file: VERSION"])
def test_what_setup_cfg_looks_up_elsewhere_is_not_taken_for_the_version(tmp_path, value):
    files = {"setup.cfg": f"[metadata]\nname = Demo\nversion = {value}\n"}
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files=files))
    assert (record.project, record.version) == ("Demo", "1.0")


def tree(*paths):
    return dict.fromkeys(paths, "")


def test_without_any_metadata_it_is_an_error_that_keeps_the_modules(tmp_path):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False))
    assert record.error is not None
    assert record.error.kind is ErrorKind.NO_METADATA
    assert (record.project, record.version, record.modules) == ("demo", "1.0", ("demo",))


@pytest.mark.parametrize("top", ["./demo-1.0", "demo-master", ".", ""])
def test_odd_top_folders(tmp_path, top):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", top=top, files=tree("demo/__init__.py", "demo/a.py")))
    assert record.error is None
    assert record.modules == ("demo", "demo.a")


def test_files_beside_the_top_folder_are_noted(tmp_path):
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(
        tar_bytes({"._demo-1.0": b"", "demo-1.0/PKG-INFO": core_metadata("demo", "1.0"), "demo-1.0/demo.py": ""})
    )
    record = read_path(path)
    assert record.error is None
    assert record.modules == ("demo",)
    assert "1 files outside of demo-1.0/ are ignored" in record.notes


def test_an_egg_info_of_test_data_does_not_count(tmp_path):
    files = tree("demo.py") | {"tests/data/other.egg-info/requires.txt": "x\n", "a/b.egg-info/requires.txt": "y\n"}
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files=files))
    assert record.requires_dist is None
    assert "2 .egg-info folders, none of them named like the project: all are ignored" in record.notes


def test_the_project_splits_the_filename(tmp_path):
    path = make_sdist(tmp_path, "a-2", "b1", pkg_info=False, filename="a-2-b1.tar.gz", top="x")
    assert read_path(path, project="a-2").version == "b1"
