"""The modules that setuptools installs: declarations, their order, discovery, and the check against top_level.txt."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets.distributions.members import paths_of
from pypi_assets_tests.distributions.backends.projects import (
    LIBRARY,
    NO_DATA,
    SRC_TREE,
    TREE,
    files,
    grade_of,
    modules_by,
    source_tree,
)

SETTINGS = "[tool.setuptools]\n"

ALL_SOURCES = {"demo.egg-info/SOURCES.txt": "\n".join((*TREE, "demo/tests/project/x.py"))}
"""Names all files of the small projects, like an sdist's SOURCES.txt."""


def test_modules(subtests: pytest.Subtests):
    cases = [
        (
            "a list takes those folders alone",
            files(*TREE, pyproject=NO_DATA + 'packages = ["demo"]\n'),
            ["demo", "demo.core"],
            "pyproject.toml packages",
        ),
        (
            "data below a package come along, and modules are data there",
            files(*TREE, pyproject=SETTINGS + 'packages = ["demo"]\npy-modules = ["one"]\n')
            | {"demo.egg-info/top_level.txt": "demo\none\n", **ALL_SOURCES},
            [*LIBRARY[:2], "demo.plain", "demo.plain.data", *LIBRARY[2:], "demo.tests", "one"],
            "pyproject.toml packages",
        ),
        (
            "package-data",
            files(
                *TREE,
                pyproject=NO_DATA + 'packages = ["demo"]\n[tool.setuptools.package-data]\ndemo = ["tests/*.py"]\n',
            ),
            ["demo", "demo.core", "demo.tests"],
            "pyproject.toml packages",
        ),
        (
            "exclude-package-data",
            files(
                *TREE,
                pyproject=SETTINGS
                + 'packages = ["demo"]\n[tool.setuptools.exclude-package-data]\n"*" = ["tests/*", "plain*"]\n',
            )
            | {"demo.egg-info/top_level.txt": "demo\n", **ALL_SOURCES},
            LIBRARY,
            "pyproject.toml packages",
        ),
        (
            "find takes folders without __init__ along",
            files(
                *TREE,
                pyproject=NO_DATA + '[tool.setuptools.packages.find]\ninclude = ["demo*"]\nexclude = ["*.tests"]\n',
            ),
            ["demo", "demo.core", "demo.plain", "demo.plain.data", "demo.sub", "demo.sub.deep"],
            "pyproject.toml packages.find",
        ),
        (
            "find in src without namespaces",
            files(
                *SRC_TREE,
                pyproject=NO_DATA + '[tool.setuptools.packages.find]\nwhere = ["src"]\nnamespaces = false\n',
            ),
            [*LIBRARY, "demo.tests", "tests", "tests.test_core"],
            "pyproject.toml packages.find",
        ),
        (
            "find in two folders",
            files(
                "a/x/__init__.py", "b/y/__init__.py", pyproject='[tool.setuptools.packages.find]\nwhere = ["a", "b"]\n'
            ),
            ["x", "y"],
            "pyproject.toml packages.find",
        ),
        (
            "package-dir of one package",
            files(
                "lib/core.py",
                "lib/more/x.py",
                pyproject=NO_DATA + 'packages = ["demo"]\npackage-dir = {demo = "lib"}\n',
            ),
            ["demo", "demo.core"],
            "pyproject.toml packages",
        ),
        (
            "setup.cfg find:",
            files(
                *SRC_TREE,
                setup_cfg="[options]\npackages = find:\npackage_dir =\n    = src\n"
                "[options.packages.find]\nwhere = src\nexclude =\n    tests*\n"
                "    *.tests\n",
            ),
            LIBRARY,
            "setup.cfg packages = find:",
        ),
        (
            "setup.cfg find_namespace:",
            files(
                *TREE,
                setup_cfg="[options]\npackages = find_namespace:\n[options.packages.find]\ninclude = demo.plain\n",
            ),
            ["demo", "demo.plain", "demo.plain.data"],
            "setup.cfg packages = find_namespace:",
        ),
        (
            "setup.cfg lists",
            files(*TREE, setup_cfg="[options]\npackages = demo, demo.sub\npy_modules =\n  one\n"),
            [*LIBRARY, "one"],
            "setup.cfg packages",
        ),
        (
            "pbr takes packages with all below",
            files(
                *TREE,
                setup_py="from setuptools import setup\nsetup(pbr=True)\n",
                setup_cfg="[files]\npackages =\n    demo\n",
            ),
            [*LIBRARY, "demo.tests"],
            "setup.cfg [files] packages",
        ),
        (
            "pbr takes all files in packages, as the .egg-info has them",
            files("demo/__init__.py", "demo/tests/project/x.py", setup_cfg="[files]\npackages = demo\n")
            | {"demo.egg-info/top_level.txt": "demo\n", **ALL_SOURCES},
            ["demo", "demo.tests", "demo.tests.project", "demo.tests.project.x"],
            "setup.cfg [files] packages",
        ),
        (
            "setup.py find_packages",
            files(
                *TREE,
                setup_py="from setuptools import setup, find_packages\n"
                "setup(packages=find_packages(exclude=['tests', '*.tests']))\n",
            ),
            LIBRARY,
            "setup.py find_packages",
        ),
        (
            "setup.py that has to be followed",
            files(
                *SRC_TREE,
                setup_py="from setuptools import *\nwhere = 'src'\n"
                "setup(packages=find_packages(where, ['tests']), package_dir={'': where})\n",
            ),
            [*LIBRARY, "demo.tests"],
            "setup.py find_packages",
        ),
        (
            "setup.py lists",
            files(*TREE, setup_py="from distutils.core import setup\nsetup(packages=['demo'], py_modules=['one'])\n"),
            ["demo", "demo.core", "one"],
            "setup.py packages",
        ),
        (
            "top_level.txt where setup.py computes, without folders that are no packages",
            files(*TREE, setup_py="import x\nsetup(packages=x.find())\n") | {"demo.egg-info/top_level.txt": "demo\n"},
            [*LIBRARY, "demo.tests"],
            "top_level.txt",
        ),
        (
            "the only list in a setup.py that can't be followed",
            files(
                *SRC_TREE,
                setup_py="import x\nLIST = {'packages': ['demo', 'demo.sub']}\nx.go(LIST)\nsetup(**x.get(LIST))\n",
            )
            | {"src/demo.egg-info/top_level.txt": "demo\n"},
            LIBRARY,
            "list of packages in setup.py",
        ),
        (
            "the .egg-info lies where an unknown package_dir is",
            files(*SRC_TREE, setup_py="import x\nsetup(packages=['demo', 'demo.sub'], **x.more)\n")
            | {"src/demo.egg-info/top_level.txt": "demo\n"},
            LIBRARY,
            "setup.py packages",
        ),
        (
            "packages lie next to the .egg-info",
            files("demo.py", "lib/odd.py", setup_py="import x\nsetup(packages=x.find())\n")
            | {"lib/demo.egg-info/top_level.txt": "odd\n"},
            ["odd"],
            "top_level.txt",
        ),
        (
            "src layout is taken whole",
            files(*SRC_TREE, pyproject='[project]\nname = "demo"\n'),
            [
                "demo",
                "demo.core",
                "demo.plain",
                "demo.plain.data",
                "demo.sub",
                "demo.sub.deep",
                "demo.tests",
                "docs",
                "docs.conf",
                "one",
                "tests",
                "tests.test_core",
            ],
            "setuptools src layout",
        ),
        (
            "flat layout",
            files(*TREE[:5], *TREE[6:], pyproject='[project]\nname = "demo"\n'),
            ["demo", "demo.core", "demo.plain", "demo.plain.data", "demo.sub", "demo.sub.deep"],
            "setuptools flat layout",
        ),
        (
            "single module",
            files("demo.py", "conftest.py", "noxfile.py", "_hidden.py", pyproject='[project]\nname = "demo"\n'),
            ["demo"],
            "setuptools single module",
        ),
        (
            "an empty top_level.txt means that nothing is installed",
            files(*TREE, setup_py="from setuptools import setup\nsetup()\n") | {"demo.egg-info/top_level.txt": "\n"},
            [],
            "top_level.txt",
        ),
        (
            "what top_level.txt doesn't name is not installed",
            files(*TREE, "extra/__init__.py", pyproject='[project]\nname = "demo"\n')
            | {"demo.egg-info/top_level.txt": "demo\n"},
            ["demo", "demo.core", "demo.plain", "demo.plain.data", "demo.sub", "demo.sub.deep", "demo.tests"],
            "setuptools flat layout",
        ),
        (
            "namespaces of top_level.txt",
            files(
                "google/cloud/demo/__init__.py", "google/cloud/demo/x/y.py", setup_py="import x\nsetup(packages=x.y)\n"
            )
            | {"demo.egg-info/top_level.txt": "google\n"},
            ["google", "google.cloud", "google.cloud.demo"],
            "top_level.txt",
        ),
    ]
    for case, contents, expected, by in cases:
        with subtests.test(case):
            assert modules_by(setuptools.installed, contents) == (by, expected)


@pytest.mark.parametrize(
    "script",
    [
        "packages = ['demo']\nfor f, _, _ in os.walk('demo'): packages.append(f)\nsetup(packages=packages)",
        "setup(packages=['demo'] + ['demo.' + name(p) for p in find_packages('demo')])",
        "packages=['demo']\nif sys.version_info > (3,): packages += more()\nsetup(packages=packages)",
        "setup(packages=[p for p in find_packages() if keep(p)])",
        "opts = {'packages': ['demo']}\nopts['packages'].extend(os.listdir())\nsetup(**os.more(opts))",
        "opts = {'packages': ['demo']}\nfor x in os.walk('demo'): opts['packages'] += [x]\nsetup(**opts)",
    ],
)
def test_partly_known_packages_are_not_used(script):
    contents = files(*TREE, setup_py=f"import os, sys\nfrom setuptools import *\n{script}\n")
    contents |= {"demo.egg-info/top_level.txt": "demo\n"}
    assert modules_by(setuptools.installed, contents) == ("top_level.txt", [*LIBRARY, "demo.tests"])


def test_extension_modules(subtests: pytest.Subtests):
    cases = [
        (
            "Extension",
            files(
                "demo/__init__.py",
                "demo/_fast.c",
                setup_py="from setuptools import *\n"
                "setup(packages=['demo'], ext_modules=[Extension('demo._fast', ['demo/_fast.c'])])\n",
            ),
            ["demo", "demo._fast"],
        ),
        (
            "Extension in an argument that can't be followed",
            files(
                "demo/__init__.py",
                "fast.c",
                setup_py="from setuptools import *\nimport x\n"
                "E = [Extension(name='fast', sources=['fast.c'])]\n"
                "setup(packages=['demo'], ext_modules=x.some(E))\n",
            ),
            ["demo", "fast"],
        ),
        (
            "Extension in a comment or a docstring",
            files(
                "demo/__init__.py",
                setup_py='"""Extension(\'demo.a\', [])"""\nfrom setuptools import *\n'
                "import x\n# Extension('demo.b', [])\n"
                "E = [Extension('demo.c', ['#.c'])]\nx.y('''Extension('demo.d')''')\n"
                "setup(packages=['demo'], ext_modules=x.some(E))\n",
            ),
            ["demo", "demo.c"],
        ),
        (
            "Cython's sources",
            files(
                "demo/__init__.py",
                "demo/fast.pyx",
                setup_py="from Cython.Build import cythonize\n"
                "setup(packages=['demo'], ext_modules=cythonize('demo/*.pyx'))\n",
            ),
            ["demo", "demo.fast"],
        ),
        (
            "Cython's sources at the top",
            files(
                "fast.pyx",
                "other.pyx",
                setup_py="from Cython.Build import cythonize\nsetup(ext_modules=cythonize('fa*.pyx'))\n",
            ),
            ["fast"],
        ),
        (
            "Cython is not there unless it is required",
            files(
                "demo/__init__.py",
                "demo/fast.pyx",
                setup_py="setup(packages=['demo'],\n"
                "ext_modules=cythonize([Extension('demo.fast', ['demo/fast.pyx'])]))\n",
                pyproject='[build-system]\nrequires = ["setuptools"]\n',
            ),
            ["demo"],
        ),
        (
            "no Cython is required",
            files("demo/__init__.py", "demo/fast.pyx", setup_py="setup(packages=['demo'])\n"),
            ["demo"],
        ),
        (
            "pyproject.toml",
            files(
                "demo/__init__.py",
                "src/lib.rs",
                pyproject='[project]\nname = "demo"\n[tool.setuptools]\npackages = ["demo"]\n'
                '[[tool.setuptools-rust.ext-modules]]\ntarget = "demo._rust"\n'
                '[[tool.setuptools.ext-modules]]\nname = "demo._c"\n',
            ),
            ["demo", "demo._c", "demo._rust"],
        ),
        (
            "a name in top_level.txt without a file, where something is compiled",
            files("demo/__init__.py", "x.c", setup_py="import x\nsetup(packages=['demo'], **x.y)\n")
            | {"demo.egg-info/top_level.txt": "_demo\ndemo\n"},
            ["_demo", "demo"],
        ),
        (
            "a name in top_level.txt without a file, where nothing is compiled",
            files("demo/__init__.py", setup_py="import x\nsetup(packages=['demo'], **x.y)\n")
            | {"demo.egg-info/top_level.txt": "_demo\ndemo\n"},
            ["demo"],
        ),
    ]
    for case, contents, expected in cases:
        with subtests.test(case):
            assert modules_by(setuptools.installed, contents)[1] == expected


COMPUTED = "import x\nsetup(packages=x.found(), package_dir=x.places(), ext_modules=[])\n"


@pytest.mark.parametrize(
    ("project", "names", "expected"),
    [
        ("space.demo", "space", ["space", "space.demo", "space.demo.core", "space.demo.sub"]),
        ("demo", "demo", ["demo", "demo.core", "demo.sub"]),
        ("demo", "other", []),
    ],
)
def test_top_folder_can_be_the_package(project, names, expected):
    contents = files("__init__.py", "core.py", "sub/__init__.py", "sub/data/x.py", "docs/conf.py", setup_py=COMPUTED)
    contents |= {"x.egg-info/top_level.txt": f"{names}\n"}
    assert modules_by(setuptools.installed, contents, project) == ("top_level.txt", expected)
    assert grade_of(setuptools.installed, contents, project) == "guessed"


def test_computed_packages_without_egg_info_are_unknown():
    assert setuptools.installed(source_tree(files(*TREE, setup_py="import x\nsetup(packages=x.find())\n"))) is None


def test_stub_packages_are_found():
    contents = files("demo-stubs/__init__.pyi", pyproject='[tool.setuptools]\npackages = ["demo-stubs"]\n')
    installed = setuptools.installed(source_tree(contents | {"x.egg-info/top_level.txt": "demo-stubs\n"}))
    assert installed is not None
    assert paths_of(installed.files) == ["demo-stubs/__init__.pyi"]


SETUP = "from setuptools import *\n"
NAMESPACE = ("demo/__init__.py", "demo/data/x.py", "other/__init__.py", "f.c")
TOP_LEVEL = {"demo.egg-info/top_level.txt": "demo\n"}


@pytest.mark.parametrize(
    ("contents", "by", "expected"),
    [
        pytest.param(
            files(*NAMESPACE, setup_py=SETUP + "setup(name='demo')\n"),
            "setuptools flat layout",
            ["demo", "demo.data", "demo.data.x"],
            id="a call that declares nothing",
        ),
        pytest.param(
            files(*NAMESPACE, setup_py=SETUP + "setup()\n", setup_cfg="[metadata]\nname = demo\n"),
            "setuptools flat layout",
            ["demo", "demo.data", "demo.data.x"],
            id="a setup.cfg that declares nothing",
        ),
        pytest.param(
            files(*NAMESPACE, setup_py=SETUP + "setup(ext_modules=[Extension('demo', ['f.c'])])\n"),
            "setup.py ext_modules",
            ["demo"],
            id="extension modules alone",
        ),
        pytest.param(
            files(
                *NAMESPACE,
                setup_py=SETUP + "setup(ext_modules=[Extension('demo._f', ['f.c'])])\n",
                pyproject='[project]\nname = "demo"\n',
            ),
            "setuptools flat layout",
            ["demo", "demo._f", "demo.data", "demo.data.x"],
            id="extension modules next to a [project] table",
        ),
        pytest.param(
            files(*NAMESPACE, setup_py=SETUP + "setup(setup_requires=['pbr'], pbr=True)\n"),
            "top_level.txt",
            ["demo"],
            id="pbr finds the packages",
        ),
    ],
)
def test_discovery_is_compared_with_top_level(contents, by, expected):
    assert modules_by(setuptools.installed, contents | TOP_LEVEL) == (by, expected)


def test_extension_modules_without_egg_info_are_the_only_modules():
    contents = files(*NAMESPACE, setup_py=SETUP + "setup(ext_modules=[Extension('fast', ['f.c'])])\n")
    assert modules_by(setuptools.installed, contents) == ("setup.py ext_modules", ["fast"])


BOTH = ("a/__init__.py", "b/__init__.py", "lib/a/__init__.py", "lib/a/x.py", "m.py", "n.py")


@pytest.mark.parametrize(
    ("script", "options", "by", "expected"),
    [
        ("packages=['a']", "packages = b", "setup.py packages", ["a"]),
        ("packages=[]", "packages = b", "setup.cfg packages", ["b"]),
        ("py_modules=['m']", "packages = b\npy_modules = n", "setup.cfg packages", ["b", "m"]),
        ("packages=['a']", "py_modules = n", "setup.py packages", ["a", "n"]),
        ("package_dir={'': 'lib'}", "packages = a", "setup.cfg packages", ["a", "a.x"]),
        ("package_dir={'': 'lib'}", "packages = a\npackage_dir =\n  = .", "setup.cfg packages", ["a", "a.x"]),
        ("packages=['a']", "package_dir =\n  = lib", "setup.py packages", ["a", "a.x"]),
        ("zip_safe=False", "packages = a", "setup.cfg packages", ["a"]),
    ],
)
def test_setup_py_comes_before_setup_cfg(script, options, by, expected):
    contents = files(*BOTH, setup_py=f"{SETUP}setup({script})\n", setup_cfg=f"[options]\n{options}\n")
    assert modules_by(setuptools.installed, contents) == (by, expected)


def test_computed_packages_come_before_setup_cfg():
    contents = files(*BOTH, setup_py=f"{SETUP}import x\nsetup(packages=x.y)\n", setup_cfg="[options]\npackages = b\n")
    assert modules_by(setuptools.installed, contents) == (None, [])
    contents["demo.egg-info/top_level.txt"] = "a\n"
    assert modules_by(setuptools.installed, contents) == ("top_level.txt", ["a"])


@pytest.mark.parametrize(
    ("script", "setup_cfg", "expected"),
    [
        ("package_data={'demo': ['data/*.py']}", "", ["demo", "demo.data", "demo.data.x"]),
        ("", "[options.package_data]\ndemo = *.txt, data/*.py\n", ["demo", "demo.data", "demo.data.x"]),
        ("package_data={'demo': []}", "[options.package_data]\ndemo = data/*.py\n", ["demo"]),
        ("package_data={'': ['*.txt']}", "", ["demo"]),
    ],
)
def test_package_data_may_name_modules(script, setup_cfg, expected):
    contents = files(*NAMESPACE, setup_py=f"{SETUP}setup(packages=['demo'], {script})\n", setup_cfg=setup_cfg)
    assert modules_by(setuptools.installed, contents)[1] == expected


def test_empty_pattern_matches_nothing():
    contents = files(*NAMESPACE, setup_py=SETUP + "setup(packages=find_packages(exclude=['']))\n")
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "other"]


@pytest.mark.parametrize("folder", ["dist", "env", "venv", "requirements"])
def test_top_folders_that_are_not_packages(folder):
    contents = files("demo/__init__.py", f"{folder}/x.py", pyproject='[project]\nname = "demo"\n')
    assert modules_by(setuptools.installed, contents) == ("setuptools flat layout", ["demo"])
