"""Following the statements of a setup.py to its calls of setup()."""

import pytest

from pypi_assets.distributions.setup_script import (
    read_setup_script,
)
from pypi_assets_tests.distributions.setup_scripts import arguments_of, requires


def test_statements_are_followed(subtests: pytest.Subtests):
    cases = [
        ("r = ['a']\nr = ['b']\nsetup(install_requires=r)", ("b",)),
        ("r = ['a']\nr.append('b')\nr += ['c']\nr.extend(('d',))\nsetup(install_requires=r)", tuple("abcd")),
        ("r = s = ['a']\ns.append('b')\nsetup(install_requires=r)", ("a", "b")),
        ("r = []\nr.remove('x')\nsetup(install_requires=r)", None),
        ("r = ['a']\nif sys.argv: r = ['b']\nsetup(install_requires=r)", None),
        ("if sys.argv: r = ['a']\nelse: r = ['a']\nsetup(install_requires=r)", ("a",)),
        ("r = ['a']\nif os.name == 'nt': r.append('b')\nsetup(install_requires=r)", None),
        ("r = ['a']\nif False: r.append('b')\nsetup(install_requires=r)", ("a",)),
        ("r = ['a']\nif sys.version_info < (3,): sys.exit('no')\nsetup(install_requires=r)", ("a",)),
        ("r = ['a']\nif sys.argv:\n  r = ['b']\n  raise SystemExit\nsetup(install_requires=r)", ("a",)),
        ("try: import json\nexcept ImportError: r = ['a']\nelse: r = []\nsetup(install_requires=r)", None),
        ("try: r = ['a']\nexcept ImportError: pass\nsetup(install_requires=r)", ("a",)),
        ("r = ['a']\nfor x in y: r.append(x)\nsetup(install_requires=r)", None),
        ("r = ['a']\nfor r in y: pass\nsetup(install_requires=r)", None),
        ("r = ['a']\nwith open('x') as f: r = f.read()\nsetup(install_requires=r)", None),
        ("r = ['a']\nmatch x:\n  case 1: r.append('b')\nsetup(install_requires=r)", None),
        ("r = ['a']\nasync def f(): r.append('b')\nsetup(install_requires=r)", None),
        ("r = ['a']\nclass C: r.append('b')\nsetup(install_requires=r)", None),
        ("r = ['a']\nwith suppress(E):\n  import y\n  r.append('b')\nsetup(install_requires=r)", None),
        ("r = ['a']\nwith io.open('x') as f: r.append('b')\nsetup(install_requires=r)", ("a", "b")),
        ("r = ['a']\ntry: r.append('b')\nfinally: pass\nsetup(install_requires=r)", None),
        ("r = ['a']\n[r.append(x) for x in y]\nsetup(install_requires=r)", None),
        ("r = ['a']\n[x for x in y if x not in r]\nsetup(install_requires=r)", ("a",)),
        ("r = ['a']\nf = lambda: r.append('b')\nf()\nsetup(install_requires=r)", None),
        ("r = ['a']\ndef f(x): r.append(x)\nwalk(f)\nsetup(install_requires=r)", None),
        ("r = ['a']\n@cache\ndef f(): r.append('b')\nf()\nsetup(install_requires=r)", None),
        ("r = ['a']\nassert 'a' in r\nsetup(install_requires=r)", ("a",)),
        ("r = ['a']\nchange(r)\nsetup(install_requires=r)", None),
        ("r = ['a']\nprint(r)\nsetup(install_requires=r)", ("a",)),
        ("r: list = ['a']\nr, s = ['b'], 1\nsetup(install_requires=r)", ("b",)),
        ("r = 'a'\nexec(open('version.py').read())\nsetup(install_requires=r)", None),
        ("k = {'install_requires': ['a']}\nsetup(**k)", ("a",)),
        ("k = dict(name='x')\nk['install_requires'] = ['a']\nsetup(**k)", ("a",)),
        ("k = dict(name='x')\nk.update(install_requires=['a'])\nsetup(**k)", ("a",)),
        ("k = {}\nif sys.argv: k['install_requires'] = ['a']\nsetup(**k)", None),
        ("k = {'install_requires': ['a']}\nif sys.argv: k.update(x)\nsetup(**k)", None),
        ("k = {'install_requires': ['a']}\nbuild(k)\nsetup(**k)", None),
        ("k = {'extras': []}\nk['extras'] += ['a']\nsetup(install_requires=k['extras'])", ("a",)),
        ("if __name__ == '__main__': setup(install_requires=['a'])", ("a",)),
        ("def main():\n  r = ['a']\n  setup(install_requires=r)\nmain()", ("a",)),
        ("def needed(): return ['a']\nsetup(install_requires=needed())", ("a",)),
        ("def needed(x):\n  if x: return ['a']\n  return []\nsetup(install_requires=needed(y))", None),
        ("def needed(x='a'): return [x]\nsetup(install_requires=needed('b'))", ("b",)),
        ("r = []\ndef more():\n  global r\n  r = ['a']\nmore()\nsetup(install_requires=r)", ("a",)),
        ("try: setup(install_requires=['a'])\nexcept E: setup(install_requires=['b'])", None),
        ("try: setup(install_requires=['a'], ext_modules=e)\nexcept E: setup(install_requires=['a'])", ("a",)),
        ("def setup2(**k): setup(**k)\nsetup2(install_requires=['a'])", ("a",)),
    ]
    for script, expected in cases:
        with subtests.test(script=script):
            assert requires(script) == expected


def test_missing_and_unknown_arguments_differ():
    assert arguments_of("setup(name='x')").is_complete
    assert not arguments_of("setup(name='x', **unknown)").is_complete
    assert not arguments_of("k = {}\nk.update(y)\nsetup(**k)").is_complete
    unknown = arguments_of("setup(install_requires=r)")
    assert unknown.is_complete
    assert unknown.given == {"install_requires"}
    assert unknown.install_requires is None


@pytest.mark.parametrize(
    "call", ["setuptools.setup(name='a')", "distutils.core.setup(name='a')", "s(name='a')", "setup (name='a')"]
)
def test_setup_call_variants(call):
    imports = "import setuptools, distutils.core\nfrom setuptools import setup as s\n"
    assert arguments_of(imports + call).name == "a"


def test_return_outside_function_keeps_earlier_calls():
    assert read_setup_script("setup(name='a')\nreturn\n").name == "a"


EXTENSIONS = "from setuptools import Extension, setup\nimport sys, os\n"


@pytest.mark.parametrize(
    ("script", "packages", "extensions", "uncertain"),
    [
        (
            (
                "def run(full):\n  more = {}\n  if full: more = {'ext_modules': [Extension('a.b', [])]}\n"
                "  setup(packages=['a'], **more)\ntry: run(True)\nexcept Exception: run(False)"
            ),
            ("a",),
            ("a.b",),
            {"ext_modules"},
        ),
        (
            "names = ['a']\nif found('FULL'): names.append('a.full')\nsetup(packages=names)",
            ("a", "a.full"),
            None,
            {"packages"},
        ),
        (
            (
                "if os.name == 'nt': modules = [Extension('win', [])]\nelse: modules = [Extension('unix', [])]\n"
                "setup(ext_modules=modules)"
            ),
            None,
            ("win", "unix"),
            {"ext_modules"},
        ),
        (
            "k = dict(packages=['a'])\nif found(): k['ext_modules'] = [Extension('a.b', [])]\nsetup(**k)",
            ("a",),
            ("a.b",),
            {"ext_modules"},
        ),
        (
            (
                "e = []\nfor name in ['x', 'y']:\n  if name in found: continue\n  e += [Extension('a.' + name, [])]\n"
                "setup(packages=['a'], ext_modules=e)"
            ),
            ("a",),
            ("a.x", "a.y"),
            {"ext_modules"},
        ),
        (
            "e = None\nif sys.platform != 'win32': e = Extension('a.b', [])\nsetup(ext_modules=[e] if e else [])",
            None,
            ("a.b",),
            {"ext_modules"},
        ),
        ("if x: setup(packages=['a', 'b'])\nelse: setup(packages=['a'])", ("a", "b"), None, {"packages"}),
        ("e = [Extension('a', [])]\nif x: e.clear()\nsetup(ext_modules=e)", None, None, set()),
    ],
)
def test_conditional_arguments_are_uncertain(script, packages, extensions, uncertain):
    arguments = arguments_of(EXTENSIONS + script)
    assert (arguments.packages, arguments.ext_modules, arguments.uncertain) == (packages, extensions, uncertain)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("sys.version_info >= (3,)", {"": "new"}),
        ("sys.version_info < (3, 0)", {"": "old"}),
        ("sys.version_info[0] == 2", {"": "old"}),
        ("sys.version_info[:2] > (2, 7)", {"": "new"}),
        ("not sys.version_info.major < 3", {"": "new"}),
        ("six.PY2", {"": "old"}),
        ("sys.version_info >= (3, 6)", None),
        ("sys.version_info == (3,)", None),
    ],
)
def test_version_conditions_assume_python_3(condition, expected):
    script = f"if {condition}: where = {{'': 'new'}}\nelse: where = {{'': 'old'}}\nsetup(package_dir=where)"
    assert arguments_of(EXTENSIONS + script).package_dir == expected


def test_environment_variables_are_assumed_unset(subtests: pytest.Subtests):
    cases = [
        ("os.environ.get('FULL')", False),
        ("os.environ.get('FULL', 'False').upper() in ('1', 'TRUE')", False),
        ("os.getenv('PURE', '1') == '1'", True),
        ("int(os.environ.get('LEVEL', '2')) != 1", True),
        ("bool(os.environ.get('FULL', ''))", False),
        ("environ.get('PURE', 'yes').startswith('y')", True),
        ("'FULL' in os.environ", False),
        ("not 'PURE' in os.environ", True),
        ("'--full' in sys.argv", False),
        ("'bdist_wheel' in sys.argv", True),
        ("bool('bdist_wheel' in sys.argv)", True),
        ("sys.platform == 'win32' and 'FULL' in os.environ", False),
        ("sys.platform == 'win32' or 'PURE' not in os.environ", True),
        ("(os.environ.get('FULL') or 'no') == 'yes'", False),
    ]
    for condition, holds in cases:
        with subtests.test(condition=condition):
            for script in (
                f"names = ['a']\nif {condition}: names += ['a.b']\nsetup(packages=names)",
                (
                    f"x = False\nif {condition}: x = True\nnames = ['a']\n"
                    "if x is True: names += ['a.b']\nsetup(packages=names)"
                ),
                f"setup(packages=['a', 'a.b'] if {condition} else ['a'])",
            ):
                arguments = arguments_of(f"{EXTENSIONS}from os import environ\n{script}")
                assert arguments.packages == (("a", "a.b") if holds else ("a",))
                assert "environment" in arguments.uncertain


def test_call_after_unknown_condition_is_uncertain():
    arguments = arguments_of("names = ['a']\nfound() and names.append('b')\nsetup(packages=names)")
    assert (arguments.packages, arguments.uncertain) == (("a", "b"), {"packages"})


def test_optional_import_is_assumed_to_succeed():
    script = "try: from Cython.Build import cythonize\nexcept ImportError: cythonize = None\n"
    arguments = arguments_of(f"{EXTENSIONS}{script}setup(ext_modules=cythonize([Extension('a.b', ['a/b.pyx'])]))")
    assert (arguments.ext_modules, arguments.partial) == (("a.b",), frozenset())


def test_ext_package_prefixes_extension_modules():
    script = "e = [Extension('b', ['b.pyx']), Extension('c', [])]\nsetup(ext_modules=e, ext_package={})"
    arguments = arguments_of(EXTENSIONS + script.format("'a'"))
    assert (arguments.ext_modules, arguments.cython_modules, arguments.ext_package) == (("a.b", "a.c"), {"a.b"}, "a")
    assert arguments_of(EXTENSIONS + script.format("'a' * 300")).ext_modules == ("b", "c")
    assert arguments_of(EXTENSIONS + script.format(f"'{'a' * 300}'")).ext_modules == ("b", "c")


def test_python_2_only_script_is_followed():
    script = "if sys.version_info[0] >= 3:\n  print('no')\n  sys.exit(1)\nsetup(packages=['a'])"
    assert arguments_of(EXTENSIONS + script).packages == ("a",)


def test_version_specific_requirements_are_unknown():
    script = "r = ['a']\nif sys.version_info < (3,): r.append('b')\nsetup(install_requires=r)"
    assert requires(EXTENSIONS + script) == ("a",)
    script = "if sys.version_info < (3,): setup(install_requires=['b'])\nelse: setup(install_requires=['a'])"
    assert requires(EXTENSIONS + script) is None


@pytest.mark.parametrize(
    "script",
    [
        "from x import AExtension, BExtension\nmade = AExtension\nif cuda: made = BExtension\n",
        "from x import AExtension, BExtension\nmade = BExtension if cuda else AExtension\n",
        "import x\nmade = x.AExtension if cuda else x.BExtension\n",
    ],
)
def test_extension_name_is_known_for_any_class(script):
    arguments = arguments_of(f"{script}setup(packages=['a'], ext_modules=[made('a.b', sources=found())])")
    assert (arguments.ext_modules, arguments.uncertain) == (("a.b",), frozenset())
