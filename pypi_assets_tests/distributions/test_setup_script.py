"""setup.py parsed as syntax: literal values are found, other values are unknown, and nothing is run."""

import builtins
import warnings
from contextlib import suppress
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.setup_script import (
    MAX_SOURCE_BYTES,
    FindPackages,
    SetupArguments,
    read_setup_script,
)
from pypi_assets_tests.distributions.setup_scripts import arguments_of
from pypi_assets_tests.examples import examples


def test_literal_arguments():
    arguments = arguments_of(
        """
setup(
    name="demo", version="1.0", python_requires=">=3.8", packages=["a", "a.b"], py_modules=("c",),
    package_dir={"": "src"}, namespace_packages=["n"], install_requires="x>1\\ny\\n", zip_safe=False,
    extras_require={"test": ["t"], ":os_name=='nt'": "w"}, entry_points={"g": "n = m:o"},
    ext_modules=[Extension("a.c", ["c.c"]), Extension(name="d", sources=[])],
)"""
    )
    assert (arguments.name, arguments.version, arguments.python_requires) == ("demo", "1.0", ">=3.8")
    assert arguments.packages == ("a", "a.b")
    assert arguments.py_modules == ("c",)
    assert arguments.package_dir == {"": "src"}
    assert arguments.namespace_packages == ("n",)
    assert arguments.install_requires == ("x>1", "y")
    assert arguments.extras_require == {"test": ("t",), ":os_name=='nt'": ("w",)}
    assert arguments.entry_points == {"g": ("n = m:o",)}
    assert arguments.ext_modules == ("a.c", "d")
    assert arguments.is_complete
    assert "zip_safe" in arguments.given


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# -*- coding: latin-1 -*-\n"])
def test_encodings_and_newlines(start, newline):
    text = f"{start}# \xe4\nfrom setuptools import setup\nsetup(name='a')\n".replace("\n", newline)
    source = text.encode("latin-1" if "latin" in start else "utf-8")
    assert read_setup_script(source).name == "a"
    assert read_setup_script(b"# \xe4 without a cookie" + newline.encode() + b"setup(name='a')").name == "a"


def test_python_2_syntax():
    script = """
import os
print "hello"
print >>f, "x"
try:
    pass
except (A, B), e:
    raise ValueError, "no"
os.chmod("x", 0755)
setup(name='a')
"""
    assert arguments_of(script).name == "a"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (b"", "setup.py doesn't call setup()"),
        (b"from x import setup\n", "setup.py doesn't call setup() where it can be followed"),
        (b"def f():\n  setup()\n", "setup.py doesn't call setup() where it can be followed"),
        (b"setup(\n", "setup.py is not Python 3 syntax"),
        (b"setup(name='a')\0", "setup.py is not Python 3 syntax"),
        (b"# coding: no-such\nsetup(?)", "setup.py is not Python 3 syntax"),
        (b"setup(" + b"(" * 5000, "setup.py is too long or too deep"),
        (b"setup(name=" + b"-" * 100_000 + b"1)", "setup.py is too long or too deep"),
        (b"setup(name='a')" + b" " * MAX_SOURCE_BYTES, f"setup.py is larger than {MAX_SOURCE_BYTES} bytes"),
    ],
)
def test_unreadable_script_is_a_problem(source, problem):
    assert read_setup_script(source) == SetupArguments(problem=problem)


def test_parser_warnings_are_suppressed():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert arguments_of("x = '\\d'\nif 1is 1: pass\nsetup(name='a')").name == "a"
    assert caught == []


FRAGMENTS = st.sampled_from(
    [
        "x = ['a']",
        "x += x",
        "x = x + ['b']",
        "x.append(x)",
        "x = {**x}",
        "x = {'a': x}",
        "x['a'] = x",
        "del x",
        "if x: x = 1",
        "if y:\n  x = 'a'\nelse:\n  x = y",
        "for x in x: pass",
        "while x: x = x[0]",
        "for y in x: x += [y, *x]",
        "for x, y, z in os.walk('a'): x.append(x)",
        "x = [y for y, _, _ in os.walk(x)]",
        "if sys.version_info > (3,): x += x\nelse: x = []",
        "if y: x = ['b']",
        "if y: x = {'c': x}",
        "x[x] += x",
        "x = x % x",
        "x = '%s' % (x,)",
        "x = f'{x}'",
        "x = x.format(x)",
        "x = ','.join(x)",
        "def f(x=1): return x",
        "x = f(x)",
        "def f(): f()",
        "f()",
        "x = [x for x in x if x]",
        "setup(name=x, packages=x, extras_require=x)",
        "setup(**x)",
        "setup(x)",
        "x = find_packages(*x, **x)",
        "x = cythonize(x)",
        "x = Extension(x, x)",
        "x = dict(x)",
        "x = sum(x, x)",
        "global x",
        "try: x = x.split(x)\nexcept E: return x",
        "x, y = x",
        "x = (y := x)",
        "x = x or y",
        "x = [*x, *x]",
        "x = x[0]",
        "exec(x)",
        "match x:\n  case [y]: pass",
        "class x: x = 1",
        "import x.y as x",
    ]
)


@given(st.lists(FRAGMENTS, max_size=30))
@settings(max_examples=examples(300), deadline=None)
def test_any_script_is_read_without_an_error(fragments):
    script = "\n".join([*fragments, "setup(entry_points=x, package_dir=x, ext_modules=x, install_requires=x)"])
    assert isinstance(read_setup_script(script), SetupArguments)


BEFORE = (
    "from setuptools import find_namespace_packages as find_packages",
    "from setuptools import (\n    find_packages,\n    setup,\n)",
    "from build_utils import find_packages",
    "from build_utils import *",
    "from build_utils import setup",
    "from distutils.core import setup as find_packages",
    "try:\n    from setuptools import setup, find_packages\nexcept ImportError:\n    from distutils.core import setup",
    "find_packages = setuptools.find_namespace_packages",
    "find_packages = setuptools.PEP420PackageFinder.find",
    "setuptools = build_utils",
    "def find_packages(where):\n    return ['mine']",
    "if x:\n    def find_packages(): return ['mine']",
    '"""Call\nsetup(\n    packages=[\'wrong\'],\n)\n"""',
    "TEXT = '''\nNAMES = ['wrong']\npackages=['wrong'],\n'''",
    "OLD = dict(\n    packages=['wrong'],\n    py_modules=['wrong'],\n)",
    "def more(\n    packages=['wrong'],\n    package_dir={'': 'wrong'},\n):\n    pass",
    "if False:\n    packages=['wrong']",
    "packages = ['right']",
    "NAMES = ['right']",
    "NAMES = ['right', \"a', 'b\"]",
    "NAMES = ('right')",
    "NAMES = ('right',)",
    "NAMES += ['more']",
    "if 'more' not in NAMES:\n    NAMES = ['changed']",
    "if 'demo' in NAMES:\n    NAMES = ['changed']",
    "match x:\n    case 1:\n        NAMES.append('more')",
    "with x:\n    NAMES.append('more')",
    "try:\n    NAMES.append('more')\nfinally:\n    pass",
    "while x:\n    NAMES.append('more')\n    break",
    "NAMES = find_packages()",
    "NAMES = NAMES + NAMES",
    "if x:\n    NAMES.append('more')",
    "for NAMES in x:\n    pass",
    "change(\nNAMES=['wrong']\n)",
    "# it's setup's: packages=['wrong'],",
    "name = 'it\\'s \\\npackages=[]'",
    "x = 2 ** 8",
)


ARGUMENTS = (
    "packages=['a', \"b\"],",
    "packages=NAMES,",
    "packages=packages,",
    "packages=('a'),",
    "packages=['a' 'b'],",
    "packages=[\"a', 'b\"],",
    "packages=find_packages(),",
    "packages=find_packages() + ['more'],",
    "packages=find_packages(exclude=('tests')),",
    "packages=find_packages(exclude=('tests',)),",
    "packages=find_packages(exclude='tests'),",
    "packages=find_packages('src', NAMES, ['a*']),",
    "packages=find_packages(where=NAMES),",
    "packages=setuptools.find_packages(include=NAMES),",
    "packages=find_namespace_packages(where='./src//'),",
    "py_modules=['one'],",
    "py_modules=NAMES,",
    "py_modules=find_packages(),",
    "package_dir={'': 'src', \"a\": 'lib/a'},",
    "package_dir={'': 'src', **x},",
    "description='packages=[wrong],',",
    "# packages=['wrong'],",
    "options=dict(\n    packages=['wrong'],\n    py_modules=['wrong'],\n),",
    "key=lambda x,\n    packages=['wrong'], y=1: 0,",
    'long_description="""\n    packages=[\'wrong\'],\n""",',
    "zip_safe=2**0,",
    "**x",
)


CALLS = (
    "setup(\n    {}\n)\n",
    "setuptools.setup(\n    {}\n)\n",
    "if False:\n    setup(\n    {}\n)\n",
    "if x: \\\nsetup(\n    {}\n)\n",
    "setup(\n    {}\n) if x else None\n",
    "def install():\n    setup(\n    {}\n)\n",
    "setup(\n    {}\n)\nNAMES = ['late']\n",
    "packages = NAMES\nsetup(\n    {}\n)\n",
)


class _Manager:
    """The value of `x` in a script: a context manager with a chosen truth value."""

    def __init__(self, truth: bool) -> None:
        self.truth = truth

    def __bool__(self) -> bool:
        return self.truth

    def __eq__(self, other: object) -> bool:
        return self.truth

    __hash__ = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def run(source: str, truth: bool) -> list[dict]:
    """Return the arguments of each setup() call when the script is run, up to the first error."""
    calls = []

    def found(name):
        def find(where=".", exclude=(), include=("*",)):
            folder = "/".join(part for part in where.split("/") if part not in {"", "."})
            return [FindPackages(folder or ".", tuple(include), tuple(exclude), name == "find_namespace_packages")]

        return find

    def setup(**arguments):
        calls.append(arguments)

    finder = SimpleNamespace(find=found("find_namespace_packages"))
    setuptools = SimpleNamespace(
        setup=setup,
        find_packages=found("find_packages"),
        find_namespace_packages=found("find_namespace_packages"),
        PEP420PackageFinder=finder,
    )
    foreign = SimpleNamespace(find_packages=lambda *_, **__: ["foreign"], setup=setup)
    modules = {"setuptools": setuptools, "build_utils": foreign}

    def imported(name, *_):
        return modules.get(name, setuptools)

    names = {"__builtins__": vars(builtins) | {"__import__": imported}, "x": _Manager(truth), "change": dict}
    names |= {"__name__": "__main__"}
    # "import *" needs real modules.
    stars = {
        f"from {name} import *": "".join(f"from {name} import {each}\n" for each in vars(module))
        for name, module in modules.items()
    }
    for star, lines in stars.items():
        source = source.replace(star, lines)
    with suppress(NameError, TypeError, AttributeError, ValueError):
        exec(compile(source, "setup.py", "exec"), names)
    return calls


def as_list(value):
    return [value] if isinstance(value, str) else value


@given(
    st.lists(st.sampled_from(BEFORE), max_size=4),
    st.sampled_from(CALLS),
    st.lists(st.sampled_from(ARGUMENTS), max_size=3, unique_by=lambda each: each.partition("=")[0]),
)
@settings(max_examples=examples(600), deadline=None)
def test_arguments_match_those_of_a_run(before, call, arguments):
    source = "\n".join(
        [
            "import setuptools",
            "from setuptools import *",
            *before,
            call.format("\n    ".join(sorted(arguments, key="**x".__eq__))),
        ]
    )
    parsed = read_setup_script(source)
    for truth in (False, True):
        for got in run(source, truth):
            for name, known in (("packages", parsed.packages), ("py_modules", parsed.py_modules)):
                if known is not None and name in parsed.uncertain:
                    assert set(as_list(got.get(name, []))) <= set(known)
                elif known is not None:
                    assert known == tuple(as_list(got[name]))
            if parsed.package_dir is not None and "package_dir" not in parsed.uncertain:
                assert parsed.package_dir == got.get("package_dir")
            if parsed.is_complete:
                assert got.keys() <= parsed.given


def test_python_2_statements_are_skipped(subtests: pytest.Subtests):
    cases = [
        'print "a", "b" % c,',
        'print """a\nb"""',
        'print "a" \\\n  "b"',
        'if x: print "a"',
        'try: import y\nexcept ImportError, e: print "no"',
        "print >>sys.stderr, 'a'",
        "print >>sys.stderr",
        'if x: print >> f, "a"',
        'raise SystemExit, ("a"\n  "b")',
        "exec 'a = 1' in names",
        "if x <> 1: pass",
        "x = `1`",
        "x = ur'a'",
        "os.chmod('x', 0755)",
        "if x:\n        a = 1\n\tb = 2",
    ]
    for line in cases:
        with subtests.test(line=line):
            if line.startswith("raise"):
                line = f"def fail():\n  {line}"
            arguments = arguments_of(f"import os, sys\n{line}\nsetup(packages=['a'])\nprint 'done'")
            assert (arguments.packages, arguments.is_complete, arguments.problem) == (("a",), True, None)
