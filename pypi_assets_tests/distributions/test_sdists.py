"""Sdists: where requirements and modules come from, and which rule told them."""

import pytest

from pypi_assets.distributions.models import ErrorKind
from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import core_metadata, make_sdist, tar_bytes

PYPROJECT = """
[project]
name = "demo"
version = "1.0"
dependencies = ["a>=1"]
[project.optional-dependencies]
x = ["b; os_name == 'nt' or os_name == 'posix'"]
[project.scripts]
demo = "demo:main"
"""
EGG_INFO = {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"), "demo.egg-info/requires.txt": "c\n[e]\nd\n"}


@pytest.mark.parametrize("suffix", ["tar.gz", "tgz", "tar.bz2", "tar.xz", "tar", "zip"])
def test_every_format(tmp_path, suffix):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", format=suffix, requires_dist=["a"]))
    assert record.error is None
    assert (record.project, record.version, record.requires_dist, record.modules) == ("demo", "1.0", ("a",), ("demo",))


@pytest.mark.parametrize(
    ("arguments", "files", "expected", "rule"),
    [
        ({"metadata_version": "2.2", "requires_dist": ["p"]}, {"pyproject.toml": PYPROJECT}, ("p",), "static PKG-INFO"),
        ({"metadata_version": "2.4"}, EGG_INFO, (), "static PKG-INFO"),
        (
            {"metadata_version": "2.2", "extra_headers": [("Dynamic", "requires-dist")]},
            EGG_INFO,
            ("c", 'd; extra == "e"'),
            "requires.txt",
        ),
        ({"requires_dist": ["p"]}, EGG_INFO, ("p",), "PKG-INFO"),
        (
            {},
            {"pyproject.toml": PYPROJECT} | EGG_INFO,
            ("a>=1", "b; (os_name == 'nt' or os_name == 'posix') and extra == \"x\""),
            "pyproject.toml",
        ),
        (
            {},
            {"pyproject.toml": '[project]\nname = "demo"\ndynamic = ["version", "dependencies"]\n'} | EGG_INFO,
            ("c", 'd; extra == "e"'),
            "requires.txt",
        ),
        ({}, {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0")}, (), ".egg-info without requires.txt"),
        ({}, {"setup.py": ""}, None, None),
        ({}, {"pyproject.toml": "[project\n"}, None, None),
    ],
)
def test_requirements_and_their_rule(tmp_path, arguments, files, expected, rule):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files=files, **arguments))
    assert record.error is None
    assert record.requires_dist == expected
    assert (f"requirements by: {rule}" if rule else "requirements: unknown") in record.notes


def test_extras_and_entry_points_of_pyproject(tmp_path):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files={"pyproject.toml": PYPROJECT}))
    assert record.provides_extra == ("x",)
    assert record.entry_points == {"console_scripts": {"demo": "demo:main"}}


def tree(*paths):
    return dict.fromkeys(paths, "")


@pytest.mark.parametrize(
    ("files", "expected", "rule"),
    [
        (
            tree("setup.py", "demo/__init__.py", "demo/a.py", "demo/sub/__init__.py", "demo/data/x.py", "tests/t.py")
            | {"demo.egg-info/top_level.txt": "demo\n"},
            ("demo", "demo.a", "demo.sub"),
            "top_level.txt",
        ),
        (
            tree("lib/demo/__init__.py", "lib/_demo.py", "setup.py")
            | {"lib/demo.egg-info/top_level.txt": "demo\n_demo"},
            ("_demo", "demo"),
            "top_level.txt",
        ),
        (
            tree("setup.py", "demo.py") | {"demo.egg-info/top_level.txt": "_native\ndemo\n"},
            ("_native", "demo"),
            "top_level.txt",
        ),
        (
            tree("src/google/cloud/demo/__init__.py", "setup.py") | {"src/demo.egg-info/top_level.txt": "google\n"},
            ("google", "google.cloud", "google.cloud.demo"),
            "top_level.txt",
        ),
        (
            tree("odd/place.py", "odd/more.py", "setup.py") | {"demo.egg-info/top_level.txt": "place\n"},
            ("place",),
            "top_level.txt",
        ),
        (
            tree("a/__init__.py", "b/__init__.py", "from/c/d.py")
            | {
                "pyproject.toml": '[build-system]\nbuild-backend = "poetry.core"\n[tool.poetry]\npackages = ['
                '{include = "a"}, {include = "c/**/*.py", from = "from"}]'
            },
            ("a", "c", "c.d"),
            "build backend's settings",
        ),
        (
            tree("src/real/__init__.py", "src/other.py")
            | {"pyproject.toml": '[tool.hatch.build.targets.wheel]\npackages = ["src/real"]'},
            ("real",),
            "build backend's settings",
        ),
        (
            tree("one.py", "two.py", "pkg/__init__.py", "pkg/sub/__init__.py")
            | {"setup.cfg": "[options]\npackages = pkg, pkg.sub\npy_modules =\n  one\n"},
            ("one", "pkg", "pkg.sub"),
            "build backend's settings",
        ),
        (
            tree("demo/__init__.py", "demo/py/x.py", "stuff/__init__.py")
            | {"pyproject.toml": '[build-system]\nbuild-backend = "flit_core.buildapi"\n'},
            ("demo", "demo.py", "demo.py.x"),
            "the project's name",
        ),
        (tree("src/a/__init__.py", "src/b.py", "setup.py", "x/__init__.py"), ("a", "b"), "src layout"),
        (
            tree("python3/a.py", "setup.py", "b.py") | {"setup.cfg": "[options]\npackage_dir =\n  = python3\n"},
            ("a",),
            "src layout",
        ),
        (
            tree("setup.py", "demo/__init__.py", "demo/x.py", "tests/__init__.py", "docs/conf.py", "runme.py"),
            ("demo", "demo.x"),
            "flat layout",
        ),
        (tree("setup.py", "conftest.py", "demo.py", "test_demo.txt"), ("demo",), "flat layout"),
    ],
)
def test_modules_and_their_rule(tmp_path, files, expected, rule):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files=files))
    assert record.error is None
    assert record.modules == expected
    assert f"modules by: {rule}" in record.notes


def test_import_names_come_before_all_rules(tmp_path):
    path = make_sdist(
        tmp_path,
        "demo",
        "1.0",
        files=tree("src/a/b/__init__.py", "src/a/c.py"),
        extra_headers=[("Import-Name", "a.b")],
    )
    record = read_path(path)
    assert record.modules == ("a", "a.b")
    assert record.declared == ("a.b",)
    assert "modules by: Import-Name" in record.notes


def test_no_module_found_is_unknown_and_not_none(tmp_path):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", files=tree("setup.py")))
    assert record.modules is None
    assert "modules: unknown" in record.notes


def test_without_pkg_info_pyproject_tells_name_and_version(tmp_path):
    record = read_path(make_sdist(tmp_path, "demo", "1.0", pkg_info=False, files={"pyproject.toml": PYPROJECT}))
    assert record.error is None
    assert (record.project, record.version) == ("demo", "1.0")
    assert "metadata by: pyproject.toml" in record.notes


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
