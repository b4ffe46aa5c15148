"""What the backends that compile install: maturin, scikit-build-core and meson-python."""

import pytest

from pypi_assets.distributions.backends import maturin, meson_python, scikit_build_core
from pypi_assets_tests.distributions.backends.projects import files, modules_by

TABLE = "[tool.maturin]\n"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param(
            files("src/lib.rs", pyproject=TABLE) | {"Cargo.toml": '[package]\nname = "a-b"\n'},
            ["a_b", "a_b.a_b"],
            id="a crate alone gets a package around it",
        ),
        pytest.param(
            files("src/lib.rs", pyproject=TABLE) | {"Cargo.toml": '[package]\nname = "a-b"\n[lib]\nname = "_demo"\n'},
            ["_demo", "_demo._demo"],
            id="the library's name",
        ),
        pytest.param(
            files("src/lib.rs", "demo/__init__.py", "demo/x.py", "tests/t.py", pyproject=TABLE)
            | {"Cargo.toml": '[lib]\nname = "demo"\n'},
            ["demo", "demo.demo", "demo.x"],
            id="a package of the library's name",
        ),
        pytest.param(
            files(
                "py/demo/__init__.py",
                "py/demo/a/b.py",
                pyproject=TABLE + 'python-source = "py"\nmodule-name = "demo._rust"\n',
            ),
            ["demo", "demo._rust", "demo.a", "demo.a.b"],
            id="python-source and module-name",
        ),
        pytest.param(
            files(
                "py/a/__init__.py",
                "py/b/__init__.py",
                "py/c/__init__.py",
                pyproject=TABLE + 'python-source = "py"\npython-packages = ["a", "b"]\n'
                'module-name = "a.x"\n'
                'exclude = ["py/b", {path = "py/a", format = "sdist"}]\n',
            ),
            ["a", "a.x"],
            id="python-packages and exclude",
        ),
        pytest.param(
            files("demo/__init__.py", pyproject=TABLE + 'bindings = "bin"\n'), ["demo"], id="a program brings no module"
        ),
        pytest.param(
            files(pyproject=TABLE + 'manifest-path = "rust/Cargo.toml"\n')
            | {"rust/Cargo.toml": '[lib]\nname = "fast"\n'},
            ["fast", "fast.fast"],
            id="manifest-path",
        ),
        pytest.param(
            files(pyproject=TABLE) | {"Cargo.toml": "[lib\n"}, ["demo", "demo.demo"], id="a broken Cargo.toml"
        ),
    ],
)
def test_maturin(contents, expected):
    assert modules_by(maturin.installed, contents) == ("maturin", expected)


CMAKE = "project(${SKBUILD_PROJECT_NAME})\nset(NAME _core)\npybind11_add_module(${NAME} a.cpp)\n"


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(
            files("src/demo/__init__.py", "src/demo/x.py", "tests/t.py", pyproject='[project]\nname = "demo"\n'),
            ["demo", "demo.x"],
            "scikit-build name",
            id="by name",
        ),
        pytest.param(
            files(
                "a/__init__.py",
                "lib/b/__init__.py",
                "lib/b/t.py",
                pyproject='[tool.scikit-build.wheel]\npackages = ["a", "lib/b"]\nexclude = ["t.py"]\n',
            ),
            ["a", "b"],
            "scikit-build packages",
            id="packages and exclude",
        ),
        pytest.param(
            files("lib/x.py", pyproject='[tool.scikit-build.wheel.packages]\n"ns/demo" = "lib"\n'),
            ["ns", "ns.demo", "ns.demo.x"],
            "scikit-build packages",
            id="packages as a table",
        ),
        pytest.param(
            files("demo/__init__.py")
            | {"CMakeLists.txt": CMAKE + "install(TARGETS ${NAME} LIBRARY DESTINATION demo/sub)\n"},
            ["demo", "demo.sub", "demo.sub._core"],
            "scikit-build name",
            id="a module that CMake installs",
        ),
        pytest.param(
            files("demo/__init__.py", pyproject='[[tool.scikit-build.generate]]\npath = "demo/_version.py"\n'),
            ["demo", "demo._version"],
            "scikit-build name",
            id="a generated module",
        ),
        pytest.param(files("x.py"), [], None, id="nothing of that name"),
    ],
)
def test_scikit_build_core(contents, expected, by):
    assert modules_by(scikit_build_core.installed, contents) == (by, expected)


@pytest.mark.parametrize(
    ("builds", "expected"),
    [
        pytest.param(
            {
                "meson.build": "py = import('python').find_installation(pure: false)\n"
                "subdir('demo') # comment (\nsubdir('none')\n",
                "demo/meson.build": "sources = ['__init__.py', 'a.py']\nsources += files('b.py')\n"
                "py.install_sources(\n  sources,\n  subdir: 'demo',\n)\n"
                "py.extension_module('_c', 'c.c', install: true, subdir: 'demo')\n"
                "py.extension_module('_not', 'c.c', subdir: 'demo')\n",
            },
            ["demo", "demo._c", "demo.a", "demo.b"],
            id="install_sources and extension_module, through subdir",
        ),
        pytest.param(
            {
                "meson.build": "foreach name : ['x', 'y']\n"
                "  py.extension_module(name, name + '.c', install: true, subdir: 'demo' / 'sub')\n"
                "endforeach\n"
            },
            ["demo", "demo.sub", "demo.sub.x", "demo.sub.y"],
            id="foreach of a list",
        ),
        pytest.param(
            {
                "meson.build": "exts = {\n  'x': {'sources': ['x1.c', 'x2.c']},\n"
                "  'y': {'sources': 'y.c'},\n}\nforeach name, given : exts\n"
                "  py.extension_module(name, given.get('sources'), install: true)\n"
                "endforeach\n"
            },
            ["x", "y"],
            id="foreach of a dict",
        ),
        pytest.param(
            {
                "meson.build": "foreach pair : [['x', 'x.c'], ['y', 'y.c']]\n"
                "  py.extension_module(pair[0], pair[1], install: true)\nendforeach\n"
            },
            ["x", "y"],
            id="foreach of pairs",
        ),
        pytest.param(
            {
                "meson.build": "where = py.get_install_dir() / 'ns'\n"
                "install_subdir('src/demo', install_dir: where)\n"
                "configure_file(output: 'version.py', install_dir: py.get_install_dir() / 'ns' / 'demo')\n"
                "install_data('doc.py', install_dir: get_option('datadir'))\n",
                "src/demo/__init__.py": "",
                "src/demo/deep/x.py": "",
            },
            ["ns", "ns.demo", "ns.demo.deep", "ns.demo.deep.x", "ns.demo.version"],
            id="folders and written files that come to the packages' place",
        ),
        pytest.param({"meson.build": "project('demo', 'c')\n"}, [], id="nothing is installed"),
        pytest.param(
            {"meson.build": "subdir('a')\n", "a/meson.build": "subdir('..')\nsubdir('')\nx = [\n"},
            [],
            id="broken and circular",
        ),
    ],
)
def test_meson_python(builds, expected):
    assert modules_by(meson_python.installed, builds)[1] == expected


@pytest.mark.parametrize("part", ["install(TARGETS x ", "set(a b", "${", "pybind11_add_module( ", "\t"])
def test_long_cmake_files_take_no_time_without_end(part):
    contents = files("demo/__init__.py") | {"CMakeLists.txt": "pybind11_add_module(x)\n" + part * 20_000}
    assert "demo" in modules_by(scikit_build_core.installed, contents)[1]


@pytest.mark.parametrize(
    "part", ["'''", "'", "py.install_sources(", "x = [", "foreach a : x\n", "a += a\n", "\\\\'", "x(["]
)
def test_long_meson_files_take_no_time_without_end(part):
    contents = {"meson.build": "a = ['x', 'y']\n" + part * 20_000}
    assert modules_by(meson_python.installed, contents)[1] == []
