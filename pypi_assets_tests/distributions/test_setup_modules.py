"""Following the files that a setup.py imports or runs."""

import time

import pytest

from pypi_assets.distributions.build_scripts import MAX_FOLLOWED
from pypi_assets.distributions.setup_modules import MAX_COPIED
from pypi_assets.distributions.setup_script import read_setup_script
from pypi_assets_tests.distributions.setup_scripts import IMPORTS, arguments_with

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
def test_cffi_modules(script, expected):
    make = "\ndef make():\n    return ffi\n"
    files = {"demo__one_build": BUILDER.format("one"), "demo__two_build": BUILDER.format("two") + make}
    assert arguments_with(script, **files).ext_modules == expected


def test_extension_modules_per_package():
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
def test_folders_copied_by_commands(script, expected):
    assert arguments_with(COMMAND + script).copied == expected
    assert arguments_with("from setup_own import *\n" + script, setup_own="import os\n" + COMMAND).copied == expected


def test_number_of_copied_folders_is_limited():
    script = COMMAND.replace('"demo/more"', ", ".join(f"'demo/{n}'" for n in range(2 * MAX_COPIED)))
    assert len(arguments_with(script + "setup(cmdclass={'install': own})").copied) == MAX_COPIED


HELPERS = """
import sys
from setuptools import Extension

PACKAGES = ["demo"]

def more(name, *, below="sub"):
    PACKAGES.append(below)
    return PACKAGES + [name]

def extension(fast=False):
    if sys.platform == "win32":
        print("on Windows")
    elif fast is None:
        raise ValueError(fast)
    return Extension("demo._core", ["core.c"])

def has_option(name):
    try:
        sys.argv.remove("--" + name)
        return True
    except ValueError:
        pass
    return False

def extensions():
    for name in ("_a", "_b"):
        yield Extension("demo." + name, [])
"""


def test_names_from_a_file_next_to_setup_py(subtests: pytest.Subtests):
    cases = [
        ("import setup_helpers\nsetup(packages=setup_helpers.PACKAGES)", ("demo",)),
        ("import setup_helpers as h\nsetup(packages=h.more('x'))", ("demo", "sub", "x")),
        ("from setup_helpers import more as m\nsetup(packages=m('x', below='y'))", ("demo", "y", "x")),
        ("from setup_helpers import *\nsetup(packages=PACKAGES)", ("demo",)),
        ("import setup_helpers as h\nh.PACKAGES = ['a']\nsetup(packages=h.more('b'))", ("a", "sub", "b")),
        ("import setup_helpers\nsetup(packages=setup_helpers.gone)", None),
        ("import setup_gone\nsetup(packages=setup_gone.PACKAGES)", None),
        ("from .setup_helpers import PACKAGES\nsetup(packages=PACKAGES)", None),
        ("n = {}\nexec(open('setup_helpers.py').read(), n)\nsetup(packages=n['PACKAGES'])", ("demo",)),
        ("n = {}\nwith open(HERE) as f: exec(f.read(), n)\nsetup(packages=n['PACKAGES'])", ("demo",)),
        ("exec(compile(open('setup_helpers.py').read(), 'x', 'exec'))\nsetup(packages=PACKAGES)", ("demo",)),
        ("execfile('setup_helpers.py')\nsetup(packages=PACKAGES)", ("demo",)),
        ("n = {}\nif x: exec(open('setup_helpers.py').read(), n)\nsetup(packages=n['PACKAGES'])", None),
        ("p = []\nif os.path.exists('x'): p = 'y'\nexec(x)\nsetup(packages=p)", None),
    ]
    for script, expected in cases:
        with subtests.test(script=script):
            here = "HERE = os.path.join(os.path.dirname(__file__), 'setup_helpers.py')\n"
            assert arguments_with(here + script, setup_helpers=HELPERS).packages == expected


def test_file_in_a_package():
    script = "from demo.__pkginfo__ import modname, version\nsetup(packages=[modname], version=version)"
    arguments = read_setup_script(IMPORTS + script, {"demo/__pkginfo__.py": b"modname = 'demo'\nversion = '1.0'\n"})
    assert (arguments.packages, arguments.version) == (("demo",), "1.0")


def test_extension_modules_from_an_imported_function():
    script = "import setup_helpers as h\ne = []\nif os.name == 'x': e.append(h.extension())\nsetup(ext_modules=e)"
    arguments = arguments_with(script, setup_helpers=HELPERS)
    assert arguments.ext_modules == ("demo._core",)
    assert "ext_modules" in arguments.uncertain


def test_items_yielded_by_a_function():
    script = "from itertools import chain\nfrom setup_helpers import extensions\n"
    script += "setup(ext_modules=list(chain(extensions())))"
    assert arguments_with(script, setup_helpers=HELPERS).ext_modules == ("demo._a", "demo._b")


def test_command_line_options_are_assumed_unset():
    script = "from setup_helpers import has_option\nsetup(packages=['a'] if has_option('x') else ['b'])"
    arguments = arguments_with(script, setup_helpers=HELPERS)
    assert arguments.packages == ("b",)
    assert "environment" in arguments.uncertain


def test_circular_imports_and_recursive_runs():
    files = {"setup_a": "import setup_b\nX = ['a']\n", "setup_b": "import setup_a\nY = setup_a.X\nX = ['b']\n"}
    assert arguments_with("import setup_a, setup_b\nsetup(packages=setup_a.X + setup_b.X)", **files).packages == (
        "a",
        "b",
    )
    itself = "n = {}\nexec(open('setup_a.py').read(), n)\nX = ['a']\n"
    assert arguments_with("import setup_a\nsetup(packages=setup_a.X)", setup_a=itself).packages == ("a",)


@pytest.mark.parametrize("content", ["def f(:", "x = " + "(" * 500, "x = 1\n" * 20_000])
def test_unparseable_file_keeps_values_of_setup_py(content):
    script = "import setup_helpers\nsetup(packages=['a'], py_modules=setup_helpers.x)"
    arguments = arguments_with(script, setup_helpers=content)
    assert (arguments.packages, arguments.py_modules) == (("a",), None)


def test_imported_files_keep_known_values():
    helpers = "def change(names, more):\n    for name in more: names.append(name.x)\n"
    script = "from setup_helpers import change\np = ['a']\nd = dict(packages=['a'])\nchange([], p)\nsetup(packages=p)"
    assert arguments_with(script, setup_helpers=helpers).packages is not None


@pytest.mark.parametrize(
    "script",
    [
        "n = {}\n" + "exec(open('setup_a.py').read(), n)\n" * 3_000,
        "from setup_a import *\n" * 3_000,
        "from " + "a." * 20_000 + "b import " + ",".join(["c"] * 10_000) + "\n",
        "open('" + "x/" * 30_000 + "')\n" * 2,
    ],
)
def test_following_files_takes_bounded_time(script):
    files = {
        f"setup_{name}": f"import setup_{following}\n" * 500 for name, following in zip("abcd", "bcda", strict=True)
    }
    started = time.process_time()
    arguments = read_setup_script(
        IMPORTS + script + "setup(packages=['a'])", {f"{n}.py": t.encode() for n, t in files.items()}
    )
    assert time.process_time() - started < 10
    assert arguments.problem or arguments.packages == ("a",)


def test_number_of_followed_files_is_limited():
    chain = {f"setup_{n}.py": f"from setup_{n + 1} import X\n".encode() for n in range(MAX_FOLLOWED + 5)}
    chain[f"setup_{MAX_FOLLOWED + 5}.py"] = b"X = ['a']\n"
    assert read_setup_script(IMPORTS + "from setup_0 import X\nsetup(packages=X)", chain).packages is None
    start = f"from setup_{MAX_FOLLOWED - 5} import X\nsetup(packages=X)"
    assert read_setup_script(IMPORTS + start, chain).packages == ("a",)
