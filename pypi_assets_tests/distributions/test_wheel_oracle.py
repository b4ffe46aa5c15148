"""Modules read from difficult wheels equal the modules that pip installs."""

import importlib.machinery

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.installed_tree import install, installed_modules

EXTENSION = importlib.machinery.EXTENSION_SUFFIXES[0]
PKGUTIL = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"

# Each wheel has unique top-level names, so that one installation holds all wheels.
WHEELS = {
    "plain": ["plain/__init__.py", "plain/_private.py", "plain/sub/__init__.py", "plain/sub/deep.py", "plain/x.txt"],
    "compiled": [f"compiled/_a{EXTENSION}", "compiled/_b.abi3.so", "compiled/c.so", "compiled/__init__.py"],
    "compiled-package": [f"native/__init__{EXTENSION}", "native/x.py", f"native_top{EXTENSION}"],
    "space-a": ["space/a/__init__.py", "space/nested/b/c.py"],
    "space-b": ["space/b/__init__.py", "space/data/readme.txt"],
    "pkgutil-style": ["styled/__init__.py", "styled/part/__init__.py", "styled/loose/x.py"],
    "schemes": [
        "schemes-1.0.data/purelib/pure/__init__.py",
        "schemes-1.0.data/platlib/plat.py",
        "schemes-1.0.data/platlib/pure/more.py",
        "schemes-1.0.data/scripts/tool.py",
        "schemes-1.0.data/headers/head.py",
        "schemes-1.0.data/data/share/schemes/example.py",
    ],
    "stubs": [
        "stubbed-stubs/__init__.pyi",
        "stubbed-stubs/x.pyi",
        "typed/__init__.py",
        "typed/only.pyi",
        "typed/py.typed",
    ],
    "unnameable": [
        "2to3.py",
        "my-app/x.py",
        "un.libs/libfoo-1a2b.so",
        "named/__init__.py",
        "named/a-b.py",
        "named/a.b.py",
    ],
    "shadow": [
        "shade.py",
        "shade/hidden.py",
        "both.py",
        "both/__init__.py",
        "both/seen.py",
        f"ext{EXTENSION}",
        "ext/x.py",
    ],
    "odd-names": ["odd/class.py", "odd/é.py", "odd/__main__.py", "odd/__init__.py", "odd/_.py", "__main__.py"],
    "bytecode": [
        "frozen/__init__.pyc",
        "frozen/a.pyc",
        "frozen/__pycache__/b.cpython-311.pyc",
        "frozen/__pycache__/c.py",
    ],
    "nothing": ["datafolder/x.json", "datafolder/deeper/y.txt", "lib.so.1"],
    "deep": ["/".join(f"d{number}" for number in range(20)) + "/end.py", "d0/d1/__init__.py"],
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the wheels, and the modules found in one installation of all of them."""
    folder = tmp_path_factory.mktemp("wheels")
    files = {name: dict.fromkeys(paths, PKGUTIL if name == "pkgutil-style" else "") for name, paths in WHEELS.items()}
    wheels = {name: make_wheel(folder, name, "1.0", files=contents) for name, contents in files.items()}
    install(wheels.values(), folder / "installed")
    return wheels, installed_modules(folder / "installed")


def test_installed_modules_equal_those_read_from_wheels(installed):
    wheels, modules = installed
    records = [read_path(path) for path in wheels.values()]
    assert [record.error for record in records] == [None] * len(records)
    assert {name for record in records for name in record.modules} == modules
    assert sum(len(record.modules) for record in records) == len(modules) + 1  # only "space" is in two wheels


def test_files_that_are_not_modules_are_skipped(installed):
    wheels, modules = installed
    assert read_path(wheels["stubs"]).stubs == ("stubbed", "stubbed.x", "typed.only")
    assert read_path(wheels["unnameable"]).left_out == 5
    assert not {"tool", "head", "bin", "share", "shade.hidden", "ext.x", "datafolder", "styled.loose.y"} & modules
    assert {"both.seen", "native", "space.nested", "styled.loose", "odd.class", "frozen.a"} <= modules
