"""The files that a setup.py may use, and limits on their number and size."""

import ast

import pytest

from pypi_assets.distributions.build_scripts import (
    MAX_FOLLOWED,
    MAX_FOLLOWED_BYTES,
    BuildScripts,
    is_build_script,
    named_scripts,
)


@pytest.mark.parametrize(
    "name",
    [
        "setup_helpers.py",
        "setupinfo.py",
        "_setuputils.py",
        "versioninfo.py",
        "make_cffi.py",
        "demo/__pkginfo__.py",
        "src/demo/_core_build.py",
        "src/build_core.py",
        "src/demo/sub/setup_package.py",
    ],
)
def test_files_usable_by_setup_py(name):
    assert is_build_script(f"demo-1.0/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "setup.py",
        "core.py",
        "setup_helpers.txt",
        "demo/rebuilding.py",
        "tests/setup_helpers.py",
        "demo/tests/data/one_build.py",
        "a/b/c/d/e/f/setup_package.py",
    ],
)
def test_unusable_files(name):
    assert not is_build_script(f"demo-1.0/{name}")


def test_path_is_normalized():
    scripts = BuildScripts({"src/a_build.py": b""})
    assert scripts.path("./src//a_build.py") == scripts.path("src\\a_build.py") == "src/a_build.py"
    assert scripts.path("../src/a_build.py") is None
    assert scripts.path("./" * 1_000 + "src/a_build.py") is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"import setup_a", {"setup_a.py", "demo/b_build.py"}),
        (b"setup(cffi_modules=['demo/b_build.py:ffi'])", {"demo/b_build.py"}),
        (b"get_extensions()", {"demo/setup_package.py"}),
        (b"setup()", set()),
    ],
)
def test_files_named_in_setup_py(source, expected):
    scripts = {"setup_a.py": b"import demo.b_build", "demo/b_build.py": b"", "demo/setup_package.py": b"setup_package"}
    assert named_scripts(source, scripts) == expected


def test_followed_files_are_limited_in_number_and_size():
    scripts = BuildScripts({"a": b"1", "b": b" " * MAX_FOLLOWED_BYTES}, lambda content: ast.parse(content.strip()))
    assert all(scripts.tree("a") for _ in range(MAX_FOLLOWED))
    assert scripts.tree("a") is None
    assert BuildScripts(scripts.contents, scripts.parse).tree("b")
    other = BuildScripts(scripts.contents, scripts.parse)
    assert other.tree("a")
    assert other.tree("b") is None
