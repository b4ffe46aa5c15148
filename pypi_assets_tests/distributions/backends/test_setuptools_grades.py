"""The modules that setup.py adds to other declarations, and their grades."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets_tests.distributions.backends.projects import (
    LIBRARY,
    NO_DATA,
    SRC_TREE,
    TREE,
    files,
    grade_of,
    modules_by,
)

ADDED = """
names = ['demo']
for p in find_packages('demo', exclude=['tests']): names += [f'demo.{p}']
setup(packages=names)
"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("setup(packages=['demo'] + ['demo.' + p for p in find_packages('demo')])", [*LIBRARY, "demo.tests"]),
        (
            ADDED,
            LIBRARY,
        ),
    ],
)
def test_found_packages_with_prefix(script, expected):
    contents = files(*TREE, setup_py=f"from setuptools import *\n{script}\n")
    assert modules_by(setuptools.installed, contents) == ("setup.py find_packages", expected)
    assert grade_of(setuptools.installed, contents) == "exact"


WALKING = "import os\nfrom distutils.core import setup\n"
FOUND = """
def found(name):
  return [at for at, _, _ in os.walk(name) if os.path.exists(os.path.join(at, '__init__.py'))]
"""
EACH = "for folder, _, names in os.walk('demo'):\n  if '__init__.py' in names: found.append(folder)\n"


@pytest.mark.parametrize(
    "script",
    [
        f"{FOUND}setup(packages=found('demo'))",
        f"found = []\n{EACH}setup(packages=found)",
        f"found = []\nfor other in unknown():\n  found.append('a')\nfound = []\n{EACH}setup(packages=found)",
    ],
)
def test_packages_found_by_os_walk(script):
    contents = files(*TREE, setup_py=WALKING + script)
    assert modules_by(setuptools.installed, contents) == ("setup.py find_packages", [*LIBRARY, "demo.tests"])
    assert grade_of(setuptools.installed, contents) == "derived"
    with_names = contents | {"demo.egg-info/top_level.txt": "demo\n"}
    assert modules_by(setuptools.installed, with_names) == ("top_level.txt", [*LIBRARY, "demo.tests"])


ONE = {"pyproject.toml": NO_DATA + 'py-modules = ["one"]\n'}
OTHER_CFG = "[options]\npackages = demo.sub\npy_modules = other\n"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (ONE | {"setup.py": "setup(packages=['demo'])"}, ["demo", "demo.core", "one"]),
        (ONE | {"setup.py": "setup(packages=['demo'], py_modules=['other'])"}, ["demo", "demo.core", "one"]),
        (ONE | {"setup.cfg": OTHER_CFG}, ["demo.sub", "demo.sub.deep", "one"]),
        ({"setup.py": "setup(packages=['demo'])", "setup.cfg": OTHER_CFG}, ["demo", "demo.core", "other"]),
    ],
)
def test_packages_and_modules_can_have_different_declarations(contents, expected):
    modules = modules_by(setuptools.installed, files(*TREE, "other.py") | contents)[1]
    assert [name for name in modules if name != "demo" or "demo" in expected] == expected


def test_package_discovery_runs_despite_extension_modules():
    script = "setup(packages=found(), ext_modules=[Extension('demo._x', ['x.c'])])"
    contents = files(*TREE, "x.c", setup_py=f"from setuptools import *\n{script}") | ONE
    contents |= {"demo.egg-info/top_level.txt": "demo\none\n"}
    assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo._x", *LIBRARY[1:], "demo.tests", "one"]


NAMED = '[project]\nname = "demo"\n'


def test_doubt_lowers_the_grade(subtests: pytest.Subtests):
    cases = [
        ("literal", files(*TREE, setup_py="setup(packages=['demo'])"), "exact"),
        ("further arguments", files(*TREE, setup_py="setup(packages=['demo'], **more())"), "derived"),
        ("a missing folder", files(*TREE, setup_py="setup(packages=['demo', 'gone'])"), "derived"),
        ("all folders missing", files(*TREE, setup_py="setup(packages=['gone'])"), "guessed"),
        ("package_dir", files(*TREE, setup_py="setup(packages=['demo'], package_dir=f())"), "derived"),
        ("package_data", files(*TREE, setup_py="setup(packages=['demo'], package_data=f())"), "derived"),
        ("ext_modules", files(*TREE, setup_py="setup(packages=['demo'], ext_modules=f())"), "derived"),
        ("test", files(*TREE, setup_py="setup(packages=['demo'], cmdclass={'test': T})"), "exact"),
        ("build_py", files(*TREE, setup_py="setup(packages=['demo'], cmdclass={'build_py': B})"), "derived"),
        ("commands", files(*TREE, setup_py="setup(packages=['demo'], cmdclass=commands())"), "derived"),
        ("cffi", files(*TREE, setup_py="setup(packages=['demo'], cffi_modules=['b.py:f'])"), "derived"),
        ("pyproject.toml", files(*TREE, pyproject=NAMED + NO_DATA + 'packages = ["demo"]\n'), "exact"),
        ("src layout", files(*SRC_TREE[:2], pyproject=NAMED), "exact"),
        ("flat layout", files(*TREE[:2], pyproject=NAMED), "exact"),
        ("two packages, which setuptools refuses", files("a/x.py", "b/x.py", pyproject=NAMED), "derived"),
        ("nothing is declared", files(*TREE[:2], setup_py="setup()"), "derived"),
        (
            "top_level.txt has more",
            files(*TREE, setup_py="setup(packages=['demo'])") | {"demo.egg-info/top_level.txt": "demo\none\n"},
            "derived",
        ),
        (
            "top_level.txt alone",
            files(*TREE, setup_py="setup(packages=f())") | {"demo.egg-info/top_level.txt": "demo\n"},
            "derived",
        ),
        (
            "top_level.txt and a command that may install more",
            files(*TREE, setup_py="setup(packages=f(), cmdclass={'install_lib': I})")
            | {"demo.egg-info/top_level.txt": "demo\n"},
            "guessed",
        ),
        (
            "top_level.txt names what is not there",
            files(*TREE, setup_py="setup(packages=f())") | {"demo.egg-info/top_level.txt": "demo\ngone\n"},
            "guessed",
        ),
    ]
    for case, contents, expected in cases:
        with subtests.test(case):
            assert grade_of(setuptools.installed, contents) == expected


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (files("demo/__init__.py", pyproject='[tool.setuptools]\npackages = ["demo"]\n'), "exact"),
        (
            files(
                "demo/__init__.py",
                pyproject='[tool.setuptools]\npackages = ["demo"]\ncmdclass = {build_py = "demo.build.Own"}\n',
            ),
            "derived",
        ),
        (
            files(
                "demo/__init__.py",
                pyproject='[build-system]\nrequires = ["grpcio-tools>=1"]\n[tool.setuptools]\npackages = ["demo"]\n',
            ),
            "derived",
        ),
        (files("demo/__init__.py", setup_py="setup(packages=['demo'], cmdclass={'build_ext': Own})\n"), "exact"),
    ],
)  # fmt: skip
def test_own_build_code_lowers_the_grade(contents, expected):
    assert grade_of(setuptools.installed, contents) == expected


def test_top_level_txt_does_not_hide_declared_modules(subtests: pytest.Subtests):
    setup = "from setuptools import setup, find_packages\n"
    cases = [
        {"setup_py": f"{setup}setup(packages=['demo', 'evil'])\n"},
        {"setup_py": f"{setup}setup(packages=find_packages())\n"},
        {"setup_py": f"{setup}setup(packages=['demo'], py_modules=['evil'])\n"},
        {"setup_py": f"{setup}PACKAGES = ['demo']\nif x:\n    PACKAGES.append('evil')\nsetup(packages=PACKAGES)\n"},
        {"setup_py": f"{setup}setup(packages=['demo'], ext_modules=[Extension('evil', ['e.c'])])\n"},
        {"setup_cfg": "[options]\npackages =\n    demo\n    evil\n"},
        {"pyproject": '[project]\nname = "demo"\n[tool.setuptools]\npackages = ["demo", "evil"]\n'},
    ]
    for settings in cases:
        with subtests.test(settings=settings):
            module = "evil.py" if "py_modules" in str(settings) else "evil/__init__.py"
            contents = files("demo/__init__.py", *([] if "ext" in str(settings) else [module]), **settings)
            contents |= {"demo.egg-info/top_level.txt": "demo\n"}
            assert modules_by(setuptools.installed, contents)[1] == ["demo", "evil"]
            assert grade_of(setuptools.installed, contents) == "derived"
