"""Entry points of sdists, by the file that declares them, and when they are unknown."""

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets_tests.builders import core_metadata, make_sdist

SETUP = "from setuptools import setup\n"
DECLARED = {"console_scripts": {"run": "demo:main"}, "plugins": {"a.b": "demo:plugin [x]"}}


def test_entry_points(tmp_path, subtests: pytest.Subtests):
    cases = [
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n'
                '[project.entry-points.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.scripts]\n'
                'run = {reference = "demo:main", type = "console"}\n'
                '[tool.poetry.plugins.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[tool.flit.metadata]\nmodule = "demo"\n[tool.flit.scripts]\nrun = "demo:main"\n'
                '[tool.flit.entrypoints.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {
                "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    run = demo:main\n"
                "plugins =\n    a.b = demo:plugin [x]\n"
            },
            DECLARED,
        ),
        (
            {
                "setup.py": f"{SETUP}groups = {{'console_scripts': ['run=demo:main'], "
                "'plugins': 'a.b = demo:plugin [x]'}\nsetup(entry_points=groups)"
            },
            DECLARED,
        ),
        (
            {
                "setup.py": f"{SETUP}setup(entry_points='[console_scripts]\\nrun=demo:main\\n"
                "[plugins]\\na.b = demo:plugin [x]')"
            },
            DECLARED,
        ),
        (
            {
                "demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"),
                "demo.egg-info/entry_points.txt": "[console_scripts]\nrun=demo:main\n[plugins]\na.b=demo:plugin [x]",
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.gui-scripts]\nshow = "demo:show"\n'
                '[project.entry-points.my-group]\n"A-b" = "demo:it"'
            },
            {"gui_scripts": {"show": "demo:show"}, "my-group": {"A-b": "demo:it"}},
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\ndynamic = ["entry-points"]\n'
                '[project.scripts]\nrun = "demo:main"\n',
                "setup.cfg": "[options.entry_points]\nplugins = a.b = demo:plugin [x]\n"
                "console_scripts = run = demo:no\n",
            },
            DECLARED,
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n',
                "setup.cfg": "[options.entry_points]\nplugins = a.b = demo:plugin [x]\n",
            },
            {"console_scripts": {"run": "demo:main"}},
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.scripts]\n'
                'one = {callable = "demo:one", extras = ["x", "y"]}\nfile = {reference = "bin/file", type = "file"}\n'
                '[tool.poetry.plugins.console_scripts]\ntwo = "demo:two"\n'
            },
            {"console_scripts": {"one": "demo:one [x, y]", "two": "demo:two"}},
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nrun = "demo:main"\n'
                '[tool.poetry.scripts]\nold = "demo:old"\n[tool.poetry.plugins.plugins]\n"a.b" = "demo:plugin [x]"'
            },
            DECLARED,
        ),
        (
            {"setup.cfg": "[options.entry_points]\nMy-Group.x =\n    Run-It = demo:main\n    not an entry\n"},
            {"My-Group.x": {"Run-It": "demo:main"}},
        ),
        (
            {"flit.ini": "[metadata]\nmodule = demo\n[scripts]\nRun = demo:main\n"},
            {"console_scripts": {"Run": "demo:main"}},
        ),
        ({"pyproject.toml": '[project]\nname = "demo"\nscripts = 3\n[project.entry-points]\nx = [1]'}, {}),
        (
            {
                "demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"),
                "setup.py": f"{SETUP}setup(entry_points={{'g': ['a=b']}})",
            },
            {"g": {"a": "b"}},
        ),
    ]
    for files, expected in cases:
        with subtests.test(files=files):
            assert read_path(make_sdist(tmp_path, "demo", "1.0", files=files)).entry_points == expected


FOLLOWED = {"setup.py": f"{SETUP}setup(name='demo')"}
DYNAMIC = '[project]\nname = "demo"\ndynamic = ["entry-points"]\n'
BACKEND = '[build-system]\nbuild-backend = "{}"\n'
FLIT = '[tool.flit.metadata]\nmodule = "demo"\n'


def test_no_entry_points_declared(tmp_path, subtests: pytest.Subtests):
    cases = [
        {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"), "setup.py": "exec(x)"},
        {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"), "demo.egg-info/entry_points.txt": "\n"},
        {"pyproject.toml": '[project]\nname = "demo"\n', "setup.py": "exec(x)"},
        {"pyproject.toml": f"{DYNAMIC}", **FOLLOWED},
        {"pyproject.toml": DYNAMIC},
        {"pyproject.toml": DYNAMIC + "[tool.poetry]\npackages = []\n" + BACKEND.format("poetry.core.masonry.api")},
        {"pyproject.toml": '[tool.poetry]\nname = "demo"\n'},
        {"pyproject.toml": FLIT},
        {"pyproject.toml": BACKEND.format("setuptools.build_meta")},
        {"pyproject.toml": BACKEND.format("setuptools.build_meta"), "setup.cfg": "[metadata]\nname = demo\n"},
        {"setup.cfg": "[options]\npackages = demo\n"},
        {"setup.cfg": "[options]\npackages = demo\n", **FOLLOWED},
        {"setup.cfg": "[options.entry_points]\nconsole_scripts =\n", **FOLLOWED},
        {"flit.ini": "[metadata]\nmodule = demo\n"},
        {"setup.py": f"{SETUP}setup(entry_points={{'console_scripts': []}})"},
        {"setup.py": f"{SETUP}options = {{'name': 'demo'}}\nif x:\n    setup(**options)\nelse:\n    setup()\n"},
        {"pyproject.toml": "[tool.black]\nx = 1\n", **FOLLOWED},
    ]
    for files in cases:
        with subtests.test(files=files):
            assert read_path(make_sdist(tmp_path, "demo", "1.0", files=files)).entry_points == {}


def test_build_settings_override_a_different_egg_info(tmp_path, subtests: pytest.Subtests):
    pkg_info = {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0")}
    egg_info = pkg_info | {"demo.egg-info/entry_points.txt": "[console_scripts]\na=demo:a [x]\n"}
    a, b = {"console_scripts": {"a": "demo:a [x]"}}, {"console_scripts": {"b": "demo:b"}}
    setup_py = {"setup.py": f"{SETUP}setup(entry_points={{'console_scripts': ['b = demo:b']}})"}
    poetry = '[tool.poetry]\nname = "demo"\n[tool.poetry.scripts]\nb = "demo:b"\n'
    backend = '[build-system]\nbuild-backend = "poetry.core.masonry.api"\n'
    cases = [
        (egg_info | setup_py, b, True),
        (pkg_info | setup_py, b, True),
        (egg_info | {"setup.py": f"{SETUP}setup()"}, {}, True),
        (egg_info | {"setup.cfg": "[options.entry_points]\nconsole_scripts =\n  b = demo:b\n"}, b, True),
        (egg_info | {"pyproject.toml": '[project]\nname = "demo"\n[project.scripts]\nb = "demo:b"'}, b, True),
        (egg_info | {"pyproject.toml": backend + poetry}, b, True),
        (egg_info | {"pyproject.toml": poetry}, a, False),
        (egg_info | {"setup.py": f"{SETUP}setup(entry_points=unknown())"}, a, False),
        (
            egg_info | {"setup.py": f"{SETUP}setup(entry_points={{'console_scripts': ['a=demo:a[x]'], 'g': []}})"},
            a,
            False,
        ),
        (egg_info, a, False),
    ]
    for files, expected, has_note in cases:
        with subtests.test(files=files):
            record = read_path(make_sdist(tmp_path, "demo", "1.0", files={"demo.py": "", **files}))
            assert record.entry_points == expected
            assert any(note.startswith(AMBIGUOUS) for note in record.notes) is has_note


def test_unknown_entry_points(tmp_path, subtests: pytest.Subtests):
    cases = [
        {"demo.py": ""},
        {"setup.py": f"{SETUP}setup(entry_points=unknown)"},
        {"setup.py": f"{SETUP}setup(entry_points={{'console_scripts': [unknown, 'run = demo:main']}})"},
        {"setup.py": f"{SETUP}setup(entry_points={{unknown: ['run = demo:main']}})"},
        {"setup.py": f"{SETUP}setup(**unknown)"},
        {"setup.py": f"{SETUP}if x:\n    setup(entry_points={{'a': ['b = c:d']}})\nelse:\n    setup()\n"},
        {"setup.py": "exec(open('real_setup.py').read())"},
        {"setup.py": "from setuptools import setup as set_up\n(lambda: set_up())()"},
        {"setup.py": "def setup(:"},
        {"setup.py": f"{SETUP}setup(pbr=True)", "setup.cfg": "[entry_points]\nconsole_scripts =\n    a = b:c\n"},
        {"setup.cfg": "[options.entry_points]\nconsole_scripts =\n", "setup.py": f"{SETUP}setup(**unknown)"},
        {"setup.cfg": "[options]\nentry_points = file: points.txt\n", **FOLLOWED},
        {"setup.cfg": "[egg_info]\ntag_build =\n"},
        {"pyproject.toml": "[tool.black]\nx = 1\n"},
        {"pyproject.toml": DYNAMIC, "setup.py": f"{SETUP}setup(entry_points=unknown)"},
        {"pyproject.toml": DYNAMIC + '[project.scripts]\nrun = "demo:main"\n', "setup.py": "exec(x)"},
        {"pyproject.toml": DYNAMIC + '[tool.setuptools.dynamic]\nentry-points = {file = "points.txt"}\n'},
        {"pyproject.toml": DYNAMIC + BACKEND.format("hatchling.build")},
        {"pyproject.toml": BACKEND.format("maturin")},
        {"pyproject.toml": BACKEND.format("builder") + 'backend-path = ["."]\n', **FOLLOWED},
        {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "*"\n', "setup.py": "exec(x)"},
        {
            "pyproject.toml": '[tool.poetry]\nname = "demo"\n' + BACKEND.format("setuptools.build_meta"),
            "setup.py": "exec(x)",
        },
        {"pyproject.toml": FLIT, "entry_points.txt": "[console_scripts]\nrun = demo:main\n"},
        {"pyproject.toml": f'{FLIT}entry-points-file = "points.txt"\n'},
        {"flit.ini": "[metadata]\nmodule = demo\nentry-points-file = points.txt\n"},
        {"other.egg-info/PKG-INFO": "", "another.egg-info/PKG-INFO": "", "setup.py": "exec(x)"},
    ]
    for files in cases:
        with subtests.test(files=files):
            assert read_path(make_sdist(tmp_path, "demo", "1.0", files=files)).entry_points is None


def test_truncated_sdist_has_unknown_entry_points(tmp_path):
    """Cut an archive: entry_points.txt may have been in the missing part."""
    members = {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"), "setup.py": "", "more.bin": "x" * 100_000}
    path = make_sdist(tmp_path, "demo", "1.0", files=members, format="tar")
    path.write_bytes(path.read_bytes()[:60_000])
    record = read_path(path)
    assert record.error is not None
    assert record.project == "demo"
    assert record.entry_points is None
