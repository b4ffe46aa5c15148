"""What meson-python installs."""

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
def test_long_meson_files_take_no_time_without_end(part):
    contents = {"meson.build": "a = ['x', 'y']\n" + part * 20_000}
    assert modules_by(meson_python.installed, contents)[1] == []
