"""Functions that a setup.py calls, such as find_packages() and Extension()."""

import pytest

from pypi_assets.distributions.setup_script import (
    FindPackages,
)
from pypi_assets_tests.distributions.setup_scripts import arguments_of, requires


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'a b'.split()", ("a", "b")),
        ("'a, b'.split(', ')", ("a", "b")),
        ("'''\na\nb'''.strip().splitlines()", ("a", "b")),
        ("['a>={}'.format(version), 'b=={0}.{x}'.format(1, x=2)]", ("a>=1.5", "b==1.2")),
        ("table.get('none', ['d'])", ("d",)),
        ("['{:>999999999}'.format('a')]", None),
    ],
)
def test_method_values(expression, expected):
    script = f"version = '1.5'\nmore = ['m']\ntable = {{'k': ['t']}}\nsetup(install_requires={expression})"
    assert requires(script) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("list(more)", ("m",)),
        ("sorted(set(more + more))", ("m",)),
        ("sum([more, ['b']], [])", ("m", "b")),
    ],
)
def test_function_values(expression, expected):
    script = f"version = '1.5'\nmore = ['m']\ntable = {{'k': ['t']}}\nsetup(install_requires={expression})"
    assert requires(script) == expected


def test_find_packages(subtests: pytest.Subtests):
    cases = [
        ("find_packages()", FindPackages()),
        ("find_packages('src', ['tests'])", FindPackages("src", exclude=("tests",))),
        ("find_packages(where='./src/', include=['a*'])", FindPackages("src", include=("a*",))),
        ("find_packages(exclude='ab')", FindPackages(exclude=("a", "b"))),
        ("find_packages(os.path.join(here, 'src'))", FindPackages("src")),
        ("setuptools.find_namespace_packages(include=['a.*'])", FindPackages(include=("a.*",), namespaces=True)),
        ("find_packages(unknown)", None),
        ("[p for p in find_packages() if p != 'x']", FindPackages(is_guess=True)),
        ("['a.' + p for p in find_packages('a')]", FindPackages("a", prefix="a.")),
        ("['%s.%s' % ('a', p) for p in find_packages('a')]", FindPackages("a", prefix="a.")),
        ("[f'a.b.{p}' for p in find_packages('c')]", FindPackages("c", prefix="a.b.")),
        ("['.'.join(('a', 'b', p)) for p in find_packages('c')]", FindPackages("c", prefix="a.b.")),
        ("[p + '.a' for p in find_packages()]", None),
    ]
    for expression, expected in cases:
        with subtests.test(expression=expression):
            here = "import setuptools\nhere = os.path.abspath(os.path.dirname(__file__))\n"
            assert arguments_of(f"{here}setup(packages={expression})").packages == (expected and (expected,))


def test_found_and_listed_packages_are_joined():
    assert arguments_of("setup(packages=find_packages() + ['b'])").packages == (FindPackages(), "b")


def test_redefined_find_packages_is_unknown():
    fallback = "try: from setuptools import find_packages\nexcept ImportError:\n  def find_packages(): return ['a']\n"
    assert arguments_of(f"{fallback}setup(packages=find_packages())").packages is None


@pytest.mark.parametrize(
    "imports",
    [
        "from build_utils import find_packages",
        "from build_utils import *",
        "from .setuptools import find_packages",
        "import build_utils\nfind_packages = build_utils.find_packages",
        "find_packages = setuptools.PEP420PackageFinder.find",
    ],
)
def test_find_packages_of_another_module_is_unknown(imports):
    assert arguments_of(f"{imports}\nsetup(packages=find_packages())").packages is None
    assert arguments_of("import build_utils\nsetup(packages=build_utils.find_packages())").packages is None


def test_membership_in_found_packages_is_unknown():
    script = "names = find_packages()\nif 'demo' not in names:\n  names.append('demo')\nsetup(packages=names)"
    arguments = arguments_of(script)
    assert (arguments.packages, arguments.uncertain) == ((FindPackages(), "demo"), {"packages"})


@pytest.mark.parametrize(
    ("script", "modules", "sources"),
    [
        ("ext_modules=cythonize('a/*.pyx')", (), ("a/*.pyx",)),
        ("ext_modules=cythonize([Extension('a.b', ['b.pyx']), 'c.pyx'])", ("a.b",), ("c.pyx",)),
        ("ext_modules=[Extension('*', ['a/*.pyx'])]", (), ("a/*.pyx",)),
        ("rust_extensions=[RustExtension('a._rust')]", ("a._rust",), ()),
        ("ext_modules=[Extension(unknown, [])]", None, ()),
        ("ext_modules=extensions()", None, ()),
        ("", None, ()),
    ],
)
def test_extension_modules(script, modules, sources):
    arguments = arguments_of(f"from Cython.Build import cythonize\nsetup({script})")
    assert (arguments.ext_modules, arguments.cython_sources) == (modules, sources)
