"""The modules that meson-python installs."""

import time

import pytest

from pypi_assets.distributions.backends import meson_python
from pypi_assets_tests.distributions.backends.projects import modules_by


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
                "meson.build": "foreach each : [[['x'], []], [['y'], ['y_more.c']]]\n"
                "  py.extension_module(each, made(each[0][0]), install: true)\nendforeach\n"
            },
            ["x", "y"],
            id="a source next to the name",
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


@pytest.mark.parametrize(
    "part", ["'''", "'", "py.install_sources(", "x = [", "foreach a : x\n", "a += a\n", "\\\\'", "x(["]
)
def test_long_meson_files_take_bounded_time(part):
    contents = {"meson.build": "a = ['x', 'y']\n" + part * 20_000}
    assert modules_by(meson_python.installed, contents)[1] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("if get_option('gpu')\nextension\nendif\n", [], id="an option that is off"),
        pytest.param("if get_option('cpu')\nextension\nelse\nother\nendif\n", ["demo._x"], id="an option that is on"),
        pytest.param("if get_option('set')\nextension\nendif\n", ["demo._x"], id="an option that pyproject.toml sets"),
        pytest.param("if p()\nextension\nelse\nother\nendif\n", ["demo._x", "demo._y"], id="an unknown condition"),
        pytest.param("if p()\nextension\nelif get_option('gpu')\nother\nendif\n", ["demo._x"], id="elif"),
        pytest.param("g = get_option('gpu')\nif g\nextension\nendif\n", [], id="a variable"),
        pytest.param(
            "g = false\nif p()\ng = true\nendif\nif g\nextension\nendif\n", ["demo._x"], id="an unknown variable"
        ),
        pytest.param(
            "if get_option('gpu')\nif p()\nextension\nelse\nother\nendif\nendif\nother\n", ["demo._y"], id="ifs in ifs"
        ),
    ],
)  # fmt: skip
def test_options_select_build_targets(text, expected):
    call = "py.extension_module('{}', 'x.c', install: true, install_dir: py.get_install_dir() / 'demo')"
    contents = {
        "meson.build": text.replace("extension", call.format("_x")).replace("other", call.format("_y")),
        "meson.options": "option('gpu', type: 'boolean', value: false)\noption('cpu', type: 'boolean')\n",
        "pyproject.toml": "[tool.meson-python.args]\nsetup = ['-Dset=true']\n",
    }
    assert modules_by(meson_python.installed, contents)[1] == (["demo", *expected] if expected else [])


def test_generated_and_copied_files_respect_tags_and_exclusions():
    contents = {
        "meson.build": "d = py.get_install_dir() / 'demo'\n"
        "custom_target('v', output: 'v.py', install: true, install_dir: d)\n"
        "install_subdir('src', install_dir: d, strip_directory: true, exclude_files: ['b.py'],\n"
        "  exclude_directories: ['no'])\n"
        "shared_library('fast', 'a.c', install: true, install_dir: d)\n"
        "shared_library('far', 'a.c', install: true)\n"
        "py.install_sources('t.py', subdir: 'demo', install_tag: 'tests')\n"
        "py.install_sources('x.py', 'y.py', subdir: 'demo')\n",
        "src/a.py": "",
        "src/b.py": "",
        "src/no/c.py": "",
        "pyproject.toml": "[tool.meson-python]\nwheel.exclude = ['{py_purelib}/demo/y.py']\n",
    }
    expected = ["demo", "demo.a", "demo.libfast", "demo.t", "demo.v", "demo.x"]
    assert modules_by(meson_python.installed, contents)[1] == expected
    contents["pyproject.toml"] += "[tool.meson-python.args]\ninstall = ['--tags=runtime,python-runtime']\n"
    assert modules_by(meson_python.installed, contents)[1] == ["demo", "demo.x"]


def test_loops_run_once_per_item():
    contents = {
        "meson.build": "data = {\n  '_a': {'subdir': 'demo', 'sources': files('a.c')},\n"
        "  '_b': {'subdir': 'demo/sub', 'sources': files('b.c'), 'install': false},\n}\n"
        "foreach name, given : data\n"
        "  py.extension_module(name, install: true, kwargs: given + {'c_args': []})\nendforeach\n"
        "foreach each : ['one', 'two']\n  subdir(each)\nendforeach\n"
        "foreach pair : [['_c', 'c.c'], ['_d', 'd.c']]\n"
        "  py.extension_module(pair[0], pair[1], install: true, subdir: 'demo')\nendforeach\n",
        "one/meson.build": "py.install_sources('x.py', subdir: 'demo')\n",
        "two/meson.build": "py.install_sources('y.py', subdir: 'demo')\n",
    }
    expected = ["demo", "demo._a", "demo._c", "demo._d", "demo.sub", "demo.sub._b", "demo.x", "demo.y"]
    assert modules_by(meson_python.installed, contents)[1] == expected


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    [
        "foreach a : ['1', '2', '3', '4', '5', '6', '7', '8']\n" * 9 + "x = 'y'\n" + "endforeach\n" * 9,
        "x = ['a']\n" + "x = x + x\n" * 5_000,
        "x = 'a'\n" + "x = x + x\n" * 5_000,
        "if p()\n" * 20_000,
        "x = " + "[" * 20_000,
        "x = " + "'@0@'.format(" * 10_000,
    ],
)
def test_hostile_meson_files_terminate(text):
    before = time.process_time()
    modules_by(meson_python.installed, {"meson.build": text})
    assert time.process_time() - before < 5
