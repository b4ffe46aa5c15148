"""What plug-ins of setuptools and commands add to the arguments of setup()."""

import pytest

from pypi_assets.distributions.setup_additions import MAX_COPIED
from pypi_assets_tests.distributions.setup_scripts import arguments_with

BUILDER = "from cffi import FFI\nffi = FFI()\nffi.cdef('int f();')\nffi.set_source('demo._{0}', '#include <f.h>')\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("setup(cffi_modules=['demo/one_build.py:ffi'])", ("demo._one",)),
        ("setup(cffi_modules='demo/two_build.py:make')", ("demo._two",)),
        ("setup(ext_modules=[Extension('a', [])], cffi_modules=['./demo/one_build.py:ffi'])", ("a", "demo._one")),
        ("from demo.one_build import ffi\nsetup(ext_modules=[ffi.distutils_extension()])", ("demo._one",)),
        ("setup(cffi_modules=['demo/one_build.py:gone', 'gone_build.py:ffi'])", None),
    ],
)
def test_modules_that_cffi_builds(script, expected):
    make = "\ndef make():\n    return ffi\n"
    files = {"demo__one_build": BUILDER.format("one"), "demo__two_build": BUILDER.format("two") + make}
    assert arguments_with(script, **files).ext_modules == expected


def test_extension_modules_of_each_package():
    files = {
        f"demo__{name}__setup_package": "from setuptools import Extension\nROOT = os.path.dirname(__file__)\n"
        f"def get_extensions():\n    return [Extension('demo.{name}._c', [os.path.join(ROOT, 'c.c')])]\n"
        for name in ("a", "b")
    }
    arguments = arguments_with("from helpers import get_extensions\nsetup(ext_modules=get_extensions())", **files)
    assert arguments.ext_modules == ("demo.a._c", "demo.b._c")
    assert "ext_modules" in arguments.partial  # the helpers add each .pyx


COMMAND = """
import shutil
from setuptools.command.install_lib import install_lib
FOLDERS = [os.path.join("demo", "data"), "demo/more"]
class own(install_lib):
    text = "run"
    def run(self):
        install_lib.run(self)
        for folder in FOLDERS:
            shutil.copytree(folder, os.path.join(self.install_dir, folder))
        shutil.copytree(self.folder, self.install_dir)
"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("setup(cmdclass={'install_lib': own})", ("demo/data", "demo/more")),
        ("c = {}\nif os.name == 'x': c['build_py'] = own\nsetup(cmdclass=c)", ("demo/data", "demo/more")),
        ("setup(cmdclass={'sdist': own})", ()),
        ("setup(cmdclass={'install_lib': install_lib})", ()),
        ("own().run()\nsetup(cmdclass={'sdist': own})", ()),
    ],
)
def test_folders_that_commands_copy(script, expected):
    assert arguments_with(COMMAND + script).copied == expected
    assert arguments_with("from setup_own import *\n" + script, setup_own="import os\n" + COMMAND).copied == expected


def test_only_some_folders_are_copied():
    script = COMMAND.replace('"demo/more"', ", ".join(f"'demo/{n}'" for n in range(2 * MAX_COPIED)))
    assert len(arguments_with(script + "setup(cmdclass={'install': own})").copied) == MAX_COPIED
