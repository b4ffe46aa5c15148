"""Sdists: formats, top folders and .egg-info folders."""

import pytest

from pypi_assets.distributions.limits import MAX_SCRIPT_BYTES, MAX_SCRIPTS
from pypi_assets.distributions.reader import make_record, read_distribution, read_path
from pypi_assets.distributions.record import ErrorKind, ModulesGrade
from pypi_assets.distributions.sdists import condense, is_wanted
from pypi_assets_tests.builders import core_metadata, make_sdist, tar_bytes
from pypi_assets_tests.distributions.made_extracts import extract_of


@pytest.mark.parametrize("suffix", ["tar.gz", "tgz", "tar.bz2", "tar.xz", "tar.lzma", "tar", "zip"])
def test_every_format(tmp_path, suffix):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", format=suffix, requires_dist=["a"]))
    assert record.error is None
    assert (record.project, record.version, record.requires_dist, record.modules) == ("demo", "1.0", ("a",), ("demo",))


def tree(*paths):
    return dict.fromkeys(paths, "")


def test_sdist_without_metadata_is_an_error_with_modules(tmp_path):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False))
    assert record.error is not None
    assert record.error.kind is ErrorKind.NO_METADATA
    assert (record.project, record.version, record.modules) == ("demo", "1.0", ("demo",))


@pytest.mark.parametrize("top", ["./demo-1.0", "demo-master", ".", ""])
def test_odd_top_folders(tmp_path, top):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", top=top, files=tree("demo/__init__.py", "demo/a.py")))
    assert record.error is None
    assert record.modules == ("demo", "demo.a")


def test_files_outside_the_top_folder_are_noted(tmp_path):
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(
        tar_bytes({"._demo-1.0": b"", "demo-1.0/PKG-INFO": core_metadata("demo", "1.0"), "demo-1.0/demo.py": ""})
    )
    record = read_path(path)
    assert record.error is None
    assert record.modules == ("demo",)
    assert "1 files outside of demo-1.0/ are ignored" in record.notes


def test_egg_info_in_test_data_is_ignored(tmp_path):
    files = tree("demo.py") | {"tests/data/other.egg-info/requires.txt": "x\n", "a/b.egg-info/requires.txt": "y\n"}
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files=files))
    assert record.requires_dist is None
    assert "2 .egg-info folders, none of them named like the project: all are ignored" in record.notes


def test_project_name_splits_the_filename(tmp_path):
    path = make_sdist(tmp_path, "a-2", "b1", pkg_info=False, filename="a-2-b1.tar.gz", top="x")
    assert read_path(path, project="a-2").version == "b1"


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
def test_small_files_next_to_setup_py_are_used(tmp_path, suffix):
    setup = "from setuptools import setup\nfrom setup_helpers import names\nsetup(name='demo', packages=names())\n"
    helpers = "def names():\n    return ['demo.sub']\n"
    files = {"setup.py": setup, "setup_helpers.py": helpers, "demo/sub/__init__.py": ""}
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files=files, format=suffix))
    assert (record.modules_by, record.modules, record.modules_grade) == (
        "setup.py packages",
        ("demo", "demo.sub"),
        "exact",
    )
    large = files | {"setup_helpers.py": helpers + "#" * MAX_SCRIPT_BYTES}
    record = read_path(make_sdist(tmp_path, "demo", "1.1", files=large, format=suffix))
    assert (record.error, record.modules_grade) == (None, "guessed")
    many = {f"setup_{number}.py": "#" for number in range(2 * MAX_SCRIPTS)}
    record = read_path(make_sdist(tmp_path, "demo", "1.2", files=many | files, format=suffix))
    assert (record.error, record.modules) == (None, ("demo", "demo.sub"))


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ("from setuptools import setup\nimport setup_helpers\nsetup()\n", ["setup.py", "setup_helpers.py"]),
        ("from setuptools import setup\nsetup()\n", ["setup.py"]),
        (None, []),
    ],
)
def test_extract_has_files_named_in_setup_py(setup, expected):
    files = {"setup.py": setup, "setup_helpers.py": "x = 1\n", "demo/sub_build.py": "", "demo/__init__.py": ""}
    contents = {f"demo-1.0/{name}": text.encode() for name, text in files.items() if text is not None}
    extract = extract_of(contents, contents)
    extract.files = {name: content for name, content in contents.items() if is_wanted(name)}
    condense(extract)
    assert sorted(name.removeprefix("demo-1.0/") for name in extract.files) == expected


def test_hatchling_files_are_kept_for_hatchling_projects(tmp_path, subtests: pytest.Subtests):
    cases = [("hatchling.build", ("demo", "demo.a"), {"hatch.toml", ".gitignore"}), ("flit_core.buildapi", None, set())]
    for backend, modules, kept in cases:
        with subtests.test(backend=backend):
            files = tree("demo/__init__.py", "demo/a.py", "demo/b.py", "other.py", "sub/.gitignore") | {
                "pyproject.toml": f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n',
                "hatch.toml": '[build.targets.wheel]\npackages = ["demo"]\n',
                ".gitignore": "b.py\n",
            }
            path = make_sdist(tmp_path, "demo", "1.0", files=files)
            with path.open("rb") as file:
                extract = read_distribution(file, path.name).extract
            names = {name.removeprefix("demo-1.0/") for name in extract.files}
            assert names & {"hatch.toml", ".gitignore", "sub/.gitignore"} == kept
            record = read_path(path)
            assert record.modules_grade is ModulesGrade.EXACT
            assert record.modules == (modules or ("demo", "demo.a", "demo.b"))
            for name in kept:  # earlier versions kept none
                del extract.files[f"demo-1.0/{name}"]
            older = make_record(extract, path.name)
            assert older.modules_grade is (ModulesGrade.GUESSED if kept else ModulesGrade.EXACT)
