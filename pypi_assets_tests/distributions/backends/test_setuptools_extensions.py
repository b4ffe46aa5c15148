"""Extension modules are the ones that setup.py names. Other Cython sources in a package are not modules."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets.distributions.backends.setuptools_files import (
    cythonized,
    has_generated_source,
    literal_extensions,
    pyproject_extensions,
)
from pypi_assets.distributions.setup_script import read_setup_script
from pypi_assets_tests.distributions.backends.projects import files, grade_of, modules_by, source_tree

CYTHON = '[build-system]\nrequires = ["setuptools", "Cython"]\nbuild-backend = "setuptools.build_meta"\n'
PACKAGE = ("demo/__init__.py", "demo/loop.pyx", "demo/included.pyx", "demo/parts/more.pyx")
INCLUDING = "setup(packages=['demo'], ext_modules=cythonize([Extension('demo.loop', ['demo/loop.pyx'])]))"
OWN_BUILD = "class build(build_ext): pass\nsetup(packages=['demo'], cmdclass={'build_ext': build}, ext_modules="


@pytest.mark.parametrize(
    ("script", "expected", "grade"),
    [
        pytest.param(INCLUDING, ["demo", "demo.loop"], "exact", id="what an extension module includes"),
        pytest.param(
            f"{OWN_BUILD}[Extension('demo.loop', ['demo/loop' + '.pyx'])])",
            ["demo", "demo.loop"],
            "exact",
            id="own build",
        ),
        pytest.param(
            f"{OWN_BUILD}cythonize('demo/**/*.pyx'))",
            ["demo", "demo.included", "demo.loop", "more"],
            "exact",
            id="pattern",
        ),
        pytest.param("setup(packages=['demo'])", ["demo"], "exact", id="Cython is required and not used"),
        pytest.param(
            f"{OWN_BUILD}[Extension('demo.loop', []), other()])",
            ["demo", "demo.included", "demo.loop"],
            "derived",
            id="not all are known, so that each source may be one",
        ),
        pytest.param(
            "for name in ('loop', 'included'):\n"
            "  modules.append(Extension(named(name), []))\nsetup(packages=['demo'], ext_modules=modules)",
            ["demo", "demo.included", "demo.loop"],
            "derived",
            id="names are computed, so that each source may be one",
        ),
        pytest.param(
            "modules = []\nfor name in ('loop', 'included'):\n"
            "  modules.append(Extension(f'demo.{name}', []))\nsetup(packages=['demo'], ext_modules=modules)",
            ["demo", "demo.included", "demo.loop"],
            "exact",
            id="a loop over names that are known",
        ),
        pytest.param(
            "setup(packages=['demo'], ext_modules=[Extension('demo/loop', [])])", ["demo", "demo.loop"], "exact"
        ),
    ],
)
def test_only_named_extensions_are_modules(script, expected, grade):
    contents = files(*PACKAGE, pyproject=CYTHON, setup_py=f"from setuptools import *\n{script}\n")
    assert modules_by(setuptools.installed, contents)[1] == expected
    assert grade_of(setuptools.installed, contents) == grade


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("demo/loop.pyx", "demo/loop.c"), ["demo", "demo.loop"]),
        (("demo/loop.pyx", "demo/loop.cpp"), ["demo", "demo.loop"]),
        (("demo/loop.pyx", "demo/other.c"), ["demo"]),
    ],
)
def test_without_cython_generated_c_sources_are_built(paths, expected):
    script = "setup(packages=['demo'], ext_modules=[Extension('demo.loop', ['demo/loop.pyx'])])\n"
    contents = files("demo/__init__.py", *paths, setup_py=f"from setuptools import *\n{script}")
    assert has_generated_source(source_tree(contents), "demo.loop") == (expected[-1] == "demo.loop")
    assert modules_by(setuptools.installed, contents)[1] == expected


def test_cython_module_name_follows_its_packages():
    tree = source_tree(files("src/demo/__init__.py", "src/demo/a.pyx", "src/b.pyx"))
    script = read_setup_script("setup(ext_modules=cythonize(['src/demo/*.pyx', 'src/*.pyx']))")
    assert sorted(cythonized(tree, script)) == ["b", "demo.a"]


def test_names_in_pyproject_toml_and_unresolved_calls():
    pyproject = '[[tool.setuptools.ext-modules]]\nname = "a"\n[[tool.setuptools-rust.ext-modules]]\ntarget = "b"\n'
    tree = source_tree(files(pyproject=pyproject, setup_py="found(Extension('c'), # Extension('d')\n)"))
    assert pyproject_extensions(tree) == ["a", "b"]
    assert literal_extensions(tree) == ("c", "a", "b")


def test_cffi_module_is_in_ext_package():
    script = "setup(packages=['demo'], ext_package='demo', cffi_modules=['build.py:made'])"
    contents = files("demo/__init__.py", "x.c", setup_py=script) | {"demo.egg-info/top_level.txt": "_made\ndemo\n"}
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo._made"]


def test_in_tree_backend_may_compile_cython_sources():
    contents = files(
        "demo/__init__.py",
        "demo/_fast.pyx",
        pyproject='[build-system]\nrequires = ["setuptools"]\nbackend-path = ["."]\nbuild-backend = "hooks"\n',
        setup_cfg="[options]\npackages = demo\n",
    )
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo._fast"]


@pytest.mark.parametrize(("source", "folder"), [("", "demo"), ("src", "src/demo")])
def test_scikit_build_installs_cmake_modules(source, folder):
    script = f"from skbuild import setup\nsetup(packages=['demo'], package_dir={{'': '{source}'}}, cmake_args=[])\n"
    text = f"python_extension_module(_fast)\nadd_library(other)\ninstall(TARGETS _fast LIBRARY DESTINATION {folder})\n"
    contents = files(f"{folder}/__init__.py", setup_py=script) | {"CMakeLists.txt": text}
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo._fast"]
    assert grade_of(setuptools.installed, contents) == "derived"
