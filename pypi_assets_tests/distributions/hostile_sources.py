"""Texts of hostile setup.py, pyproject.toml and setup.cfg files, grouped by oddity."""

# ruff: noqa: E501 - each file is easier to read in one piece

from collections.abc import Callable

from pypi_assets.distributions.limits import MIB
from pypi_assets_tests.builders import Content
from pypi_assets_tests.distributions.raw_archives import deflate

MANY = 20_000


DEEP = "a" + ".a" * MANY
DEEP_PATH = DEEP.replace(".", "/")


def built_by(backend: str, settings: str) -> str:
    return f"[build-system]\nbuild-backend = '{backend}'\n[project]\nname = 'demo'\nversion = '1.0'\n{settings}"


def nested(opening: str, closing: str, depth: int) -> str:
    return f"from setuptools import setup\nsetup(name='demo', packages={opening * depth}1{closing * depth})\n"


SENTINEL = "was-run"
TRIPWIRE = f"open({SENTINEL!r}, 'w').close()\n"
SETUP = "from setuptools import setup, find_packages\n"
SETUP_SCRIPTS: dict[str, Callable[[], Content]] = {
    "runs something": lambda: f"{SETUP}{TRIPWIRE}setup(name='demo', py_modules=['demo'])\n",
    "runs something in its arguments": lambda: (
        f"{SETUP}setup(name='demo', py_modules=[__import__('os').system('touch {SENTINEL}')])\n"
    ),
    "runs something by a decorator and a default": lambda: (
        f"@exec({TRIPWIRE!r})\ndef f(x=exec({TRIPWIRE!r})): pass\n{SETUP}setup()\n"
    ),
    "ends the process": lambda: f"import os\nos._exit(3)\n{SETUP}setup()\n",
    "never ends": lambda: f"while True: pass\n{SETUP}setup(packages=[x for x in range(10**18)])\n",
    "calls itself": lambda: f"def f(): return f()\n{SETUP}setup(packages=f(), name=f())\n",
    "names defined by themselves": lambda: (
        f"a = a + a\nb = c\nc = b\nd = [d]\n{SETUP}setup(packages=a, name=b, py_modules=d)\n"
    ),
    "names that double": lambda: SETUP + "a = ['x']\n" + "a = a + a\n" * 100 + "setup(packages=a)\n",
    "names that double, each from the one before": lambda: (
        SETUP
        + "a0 = ['x']\n"
        + "".join(f"a{n} = a{n - 1} + a{n - 1}\n" for n in range(1, 100))
        + "setup(packages=a99, install_requires=a99)\n"
    ),
    "names that nest, each twice in the next": lambda: (
        SETUP
        + "a0 = ['x']\n"
        + "".join(f"a{n} = [a{n - 1}, a{n - 1}]\n" for n in range(1, 100))
        + "setup(packages=a99, extras_require={'x': a99})\n"
    ),
    "a string that doubles": lambda: SETUP + "a = 'x'\n" + "a += a\n" * 100 + "setup(packages=[a], version=a)\n",
    "multiplies lists and strings": lambda: (
        f"{SETUP}setup(name='a' * 10**10, packages=['a'] * 10**10, version='1' * (1 << 40))\n"
    ),
    "a wide format": lambda: (
        f"{SETUP}setup(name=f\"{{'a':>10000000000}}\", version='%10000000000d' % 1, url='{{:>9999999999}}'.format(1))\n"
    ),
    "shifts and powers": lambda: f"{SETUP}setup(version=str(1 << 10**10), packages=[10 ** 10 ** 10])\n",
    "an int of 5,000 digits": lambda: f"{SETUP}setup(version={'1' * 5000})\n",
    "a hex int of a million digits": lambda: (
        f"{SETUP}setup(name='demo', version=0x{'f' * 10**6}, packages=['a', 0x{'f' * 10**5}])\n"
    ),
    "a string of 1 MB": lambda: f"{SETUP}setup(version={'1' * MIB!r})\n",
    "20,000 arguments": lambda: f"{SETUP}setup({','.join(f'a{n}={n}' for n in range(MANY))})\n",
    "20,000 packages": lambda: f"{SETUP}setup(packages={[f'p{n}' for n in range(MANY)]})\n",
    "150 parentheses": lambda: nested("(", ")", 150),
    "20,000 parentheses": lambda: nested("(", ")", MANY),
    "a megabyte of parentheses": lambda: "(" * MIB,
    "20,000 brackets": lambda: nested("[", "]", MANY),
    "150 lists": lambda: nested("[", "]", 150),
    "20,000 braces": lambda: nested("{", "}", MANY),
    "20,000 minus signs": lambda: nested("-", "", MANY),
    "5,000 minus signs": lambda: nested("-", "", 5000),
    "20,000 nots": lambda: nested("not ", "", MANY),
    "20,000 lambdas": lambda: nested("lambda: ", "", MANY),
    "20,000 attributes": lambda: nested("", ".a", MANY),
    "20,000 calls": lambda: nested("", "()", MANY),
    "20,000 subscripts": lambda: nested("", "[0]", MANY),
    "20,000 sums": lambda: nested("", "+1", MANY),
    "2,000 sums of strings": lambda: (
        f"{SETUP}setup(name='demo', packages=['a'{'+ chr(97)' * 2000}], version='1'{' + chr(49)' * 900})\n"
    ),
    "20,000 comparisons": lambda: nested("", "<1", MANY),
    "20,000 powers": lambda: nested("1**", "", MANY),
    "20,000 conditions": lambda: nested("1 if 1 else ", "", MANY),
    "10,000 elifs": lambda: "if a: pass\n" + "elif b: pass\n" * 10_000 + f"{SETUP}setup()\n",
    "900 elifs": lambda: "if a: pass\n" + "elif b: pass\n" * 900 + f"{SETUP}setup()\n",
    "500 indents": lambda: "".join(" " * n + "if 1:\n" for n in range(500)) + " " * 500 + "setup()\n",
    "90 indents": lambda: (
        "".join(" " * n + "if 1:\n" for n in range(90)) + " " * 90 + "setup(name='demo', py_modules=['demo'])\n"
    ),
    "f-strings in f-strings": lambda: nested("f\"{f'{", "}'}\"", 1000),
    "80,000 lines": lambda: "x = 1\n" * 80_000 + "setup()\n",
    "500 KB of commas": lambda: "x = [" + "1," * 250_000 + "]\nsetup()\n",
    "a megabyte of commas": lambda: "x = [" + "1," * 500_000 + "]\n",
    "a line of 1 MB": lambda: f"# {'x' * MIB}\n{SETUP}setup()\n",
    "20,000 continued lines": lambda: "x = 1 \\\n" + "+ 1 \\\n" * MANY + "\n",
    "Python 2": lambda: (
        "from distutils.core import setup\nprint 'x'\nexec 'y'\nsetup(name='demo', py_modules=['demo'])\n"
    ),
    "NUL bytes": lambda: f"{SETUP}setup(name='de\0mo')\n",
    "UTF-16": lambda: f"{SETUP}setup(name='demo')\n".encode("utf-16"),
    "Latin-1, undeclared": lambda: f"# \xe9\n{SETUP}setup(name='demo', py_modules=['demo'])\n".encode("latin-1"),
    "Latin-1, declared": lambda: f"# coding: latin-1\n# \xe9\n{SETUP}setup(name='demo', py_modules=['demo'])\n".encode(
        "latin-1"
    ),
    "an encoding that is none": lambda: f"# coding: no-such-thing\n{SETUP}setup()\n",
    "an encoding that is no text": lambda: f"# coding: rot13\n{SETUP}setup()\n",
    "zip as its encoding": lambda: f"# coding: zip\n{SETUP}setup()\n",
    "idna as its encoding": lambda: f"# coding: idna\n{'x' * 100_000}\n",
    "unicode_escape as its encoding": lambda: f"# coding: unicode_escape\n\\ud800\n{SETUP}setup()\n",
    "escapes that make the parser warn": lambda: (
        f"{SETUP}setup(name='demo', description='\\d\\w', py_modules=['demo'])\n1 is 1\n"
    ),
    "surrogates in strings": lambda: (
        f"{SETUP}setup(name='demo', version='\\ud800', packages=['\\udfff', 'de\\0mo'], install_requires=['\\ud800'])\n"
    ),
    "find_packages with paths": lambda: (
        f"{SETUP}setup(packages=find_packages(where='../../etc', include=['**/*a*a*a*a*a*b'] * 99))\n"
    ),
    "find_packages with unhashable arguments": lambda: (
        f"{SETUP}setup(packages=find_packages({{}}, [[]], include={{1: 2}}, exclude=[None, b'x']))\n"
    ),
    "package_dir that leads out": lambda: (
        f"{SETUP}setup(packages=['demo', 'etc'], package_dir={{'': '../..', 'etc': '/etc', 'x': 'a' * 9**9}})\n"
    ),
    "names of the wrong kind": lambda: (
        f"{SETUP}setup(name=1, version=[], packages={{}}, py_modules=1.5, install_requires=3, extras_require=[1], package_dir=[])\n"
    ),
    "bytes for text": lambda: (
        f"{SETUP}setup(name=b'demo', packages=[b'demo'], py_modules=b'demo', install_requires=b'a')\n"
    ),
    "setup called 10,000 times": lambda: SETUP + "setup(name='demo')\n" * 10_000,
    "setup called in itself": lambda: SETUP + "setup(x=" * 90 + "1" + ")" * 90 + "\n",
    "keywords by stars": lambda: (
        f"{SETUP}args = {{**args, 'x': 1}}\nsetup(*args, **args, **{{'name': 'demo', **args}})\n"
    ),
    "a list that holds itself": lambda: (
        f"{SETUP}a = []\na.append(a)\na += [a, {{'x': a}}]\nsetup(packages=a, extras_require={{'x': a}})\n"
    ),
    "a dict that holds itself": lambda: (
        f"{SETUP}d = {{}}\nd['x'] = d\nd.update(d)\nsetup(**d, extras_require=d, entry_points=d)\n"
    ),
    "dicts that compare with themselves": lambda: (
        f"{SETUP}d = {{}}\nd['x'] = d\ne = {{}}\ne['x'] = e\nif u: f = d\nelse: f = e\nsetup(packages=[1] if d == e else f)\n"
    ),
    "lists that extend themselves": lambda: (
        SETUP + "a = ['x']\n" + "a.extend(a)\na += a\n" * 100 + "setup(packages=a)\n"
    ),
    "a long requirement, 16,384 times": lambda: (
        SETUP
        + "s = 'x'\n"
        + "s += s\n" * 16
        + "a = [s]\n"
        + "a += a\n" * 14
        + "setup(name='demo', install_requires=a)\n"
    ),
    "a million requirements in one string": lambda: (
        SETUP + "s = 'x\\n'\n" + "s += s\n" * 20 + "setup(name='demo', install_requires=s)\n"
    ),
    "find_packages with long arguments, 4,096 times": lambda: (
        SETUP
        + "a = ['x']\n"
        + "a += a\n" * 14
        + "p = find_packages(include=a)\n"
        + "p += p\n" * 12
        + "setup(packages=p)\n"
    ),
    "a string that doubles by %": lambda: (
        SETUP + "s = 'x'\n" + "s = '%s%s' % (s, s)\n" * 100 + "setup(name=s, packages=[s])\n"
    ),
    "a string that doubles by %(name)s": lambda: (
        SETUP + "s = 'x'\n" + "s = '%(a)s%(a)s' % {'a': s}\n" * 100 + "setup(name=s)\n"
    ),
    "a string that doubles by f": lambda: (
        SETUP + "s = 'x'\n" + "s = f'{s}{s}'\n" * 100 + "setup(name=s, packages=[s])\n"
    ),
    "a string that doubles by format": lambda: (
        SETUP + "s = 'x'\n" + "s = '{0}{0}'.format(s)\n" * 100 + "setup(name=s, packages=[s])\n"
    ),
    "a string that doubles by join": lambda: (
        SETUP + "s = 'x'\n" + "s = s.join([s, s, s])\n" * 100 + "setup(name=s, packages=[s])\n"
    ),
    "a string that doubles by replace": lambda: (
        SETUP + "s = 'x'\n" + "s = s.replace('x', 'xx')\n" * 100 + "setup(name=s, packages=[s])\n"
    ),
    "a path that doubles": lambda: (
        SETUP + "import os\ns = 'x'\n" + "s = os.path.join(s, s)\n" * 100 + "setup(name=s, packages=[s])\n"
    ),
    "lists of lists, spread": lambda: SETUP + "a = ['x']\n" + "a = [*a, *a]\n" * 100 + "setup(packages=[*a, *a])\n",
    "dicts that are spread": lambda: (
        SETUP + "d = {'a': ['x']}\n" + "d = {**d, **d, str(d): d}\n" * 100 + "setup(extras_require=d)\n"
    ),
    "functions that call each other twice": lambda: (
        SETUP
        + "def f0(): return ['x']\n"
        + "".join(f"def f{n}(): return f{n - 1}() + f{n - 1}()\n" for n in range(1, 100))
        + "setup(packages=f99())\n"
    ),
    "functions that call themselves twice": lambda: (
        f"{SETUP}def f(x): return f(x) + g(x)\ndef g(x): return f(x) + g(x)\nsetup(packages=f(1))\n"
    ),
    "a sorted set of everything": lambda: (
        f"{SETUP}setup(packages=sorted(set([1, 'a', None, [], {{}}, b'x', 1.5, ...])), name=max([]), version=min('', key=1))\n"
    ),
    "unhashable keys": lambda: (
        f"{SETUP}setup(package_dir={{[]: 'x', {{}}: 'y', (1, []): 'z'}}, extras_require=dict([([], 1)]), x={{1, [], 'a'}})\n"
    ),
    "indices that are wrong": lambda: (
        f"{SETUP}a = ['x']\nsetup(name=a[10**30], version=a['x'], packages=a[::0], py_modules='x'[None], url=a[1:2:3:4] if 0 else {{}}['y'])\n"
    ),
    "formats that are wrong": lambda: (
        f"{SETUP}setup(name='%d %s' % 'x', version='%(a)s' % [], url='{{0.__class__}} {{a[0]}} {{'.format(1), author='%*d' % (10**9, 1), x='%.1000000000f' % 1.5)\n"
    ),
    "names of 20,000 parts": lambda: (
        f"{SETUP}setup(packages=['{DEEP}'], py_modules=['{DEEP}'], namespace_packages=['{DEEP}'], package_dir={{'': 'src', 'x': 'y'}}, ext_modules=[Extension('{DEEP}', ['a.c'])])\n"
    ),
    "a year of indices": lambda: f"{SETUP}setup(packages=[p for p in ['a'] * 10 for q in range(10**9) if p])\n",
    "comprehensions of comprehensions": lambda: (
        f"{SETUP}setup(packages=[a for a in [b for b in [c for c in range(10**9)]] for d in range(10**9)])\n"
    ),
}


def setuptools_find(**options: object) -> str:
    return "[tool.setuptools.packages.find]\n" + "".join(f"{name} = {value!r}\n" for name, value in options.items())


CATASTROPHE = "**/" * 50 + "*a" * 50 + "b"
PYPROJECTS: dict[str, Callable[[], Content]] = {
    "broken": lambda: "[project\nname = ",
    "20,000 arrays deep": lambda: f"x = {'[' * MANY}{']' * MANY}",
    "20,000 inline tables deep": lambda: f"x = {'{a = ' * MANY}1{'}' * MANY}",
    "a key of 20,000 parts": lambda: "a" + ".a" * 20_000 + " = 1",
    "a key of 40,000 parts": lambda: "a" + ".a" * 2 * MANY + " = 1",
    "a table of 40,000 parts": lambda: f"[a{'.a' * 2 * MANY}]",
    "500 keys of 500 parts": lambda: "".join(f"a{'.a' * 500}.k{n} = 1\n" for n in range(500)),
    "7,000 keys of 30 parts in a table of 30": lambda: (
        f"[a{'.a' * 29}]\n" + "".join(f"a{'.a' * 28}.k{n} = 1\n" for n in range(7_000))
    ),
    "20,000 tables": lambda: "".join(f"[t{n}]\n" for n in range(MANY)),
    "20,000 tables of one array": lambda: "[[t]]\n" * MANY,
    "an int of 20,000 digits": lambda: f"x = {'1' * MANY}",
    "a hex int of a million digits": lambda: f"x = 0x{'f' * 10**6}",
    "a float of 20,000 digits": lambda: f"x = 0.{'1' * MANY}e999999999",
    "impossible dates": lambda: "x = 2024-99-99T99:99:99Z",
    "a date of long ago": lambda: "x = 0000-00-00",
    "a string of 1 MB": lambda: f"x = '{'x' * MIB}'",
    "an open string of 1 MB": lambda: f'x = """{"x" * MIB}',
    "100,000 quotes": lambda: '"' * 100_000,
    "escapes that are surrogates": lambda: 'x = "\\ud800"',
    "20,000 dependencies": lambda: (
        f"[project]\nname = 'demo'\nversion = '1.0'\ndependencies = {[f'r{n}' for n in range(MANY)]}"
    ),
    "values of the wrong kind": lambda: "project = 1\ntool = []\nbuild-system = ''",
    "values of the wrong kind, deeper": lambda: (
        "[project]\nname = []\nversion = 1\ndependencies = {}\noptional-dependencies = 3\n"
        "scripts = 'x'\ndynamic = 'x'\nentry-points = 1\nrequires-python = 3.8\nimport-names = 1\n"
        "[tool]\nsetuptools = 1\npoetry = []\nhatch = 'x'\nflit = 1\npdm = 1\nmaturin = []\nuv = 2\n[build-system]\nbuild-backend = 1"
    ),
    "tools of the wrong kind": lambda: (
        "[tool.setuptools]\npackages = 1\npy-modules = {}\npackage-dir = [1]\n"
        "[tool.poetry]\npackages = [1, {}, {include = 1}, {include = 'x', from = 2}]\n[tool.hatch.build]\ntargets = 1\n"
        "[tool.pdm]\nbuild = []\n[tool.flit]\nmodule = []\n[tool.uv]\nbuild-backend = []\n[tool.maturin]\nmodule-name = []"
    ),
    "setuptools finds where it must not": lambda: setuptools_find(where=["../..", "/etc", "..", "a/../.."]),
    "setuptools finds by catastrophic patterns": lambda: setuptools_find(
        include=[CATASTROPHE] * 9, exclude=[CATASTROPHE] * 9
    ),
    "setuptools' folders lead out": lambda: (
        "[tool.setuptools]\npackages = ['demo', '..', '/etc', 'a..b', '.']\npackage-dir = {'' = '../..', etc = '/etc'}"
    ),
    "hatchling's folders lead out": lambda: (
        "[build-system]\nbuild-backend = 'hatchling.build'\n[tool.hatch.build.targets.wheel]\n"
        "packages = ['../..', '/etc', 'src/../../x']\nsources = ['..']\nforce-include = {'/etc/passwd' = 'demo/passwd.py', '../x' = '../y'}"
    ),
    "hatchling's patterns are catastrophic": lambda: (
        "[build-system]\nbuild-backend = 'hatchling.build'\n[tool.hatch.build]\n"
        f"include = ['{CATASTROPHE}', '!{CATASTROPHE}']\nexclude = ['{CATASTROPHE}', '[', '[!', '\\', '[]-a]']"
    ),
    "poetry's patterns are catastrophic": lambda: (
        "[build-system]\nbuild-backend = 'poetry.core.masonry.api'\n[tool.poetry]\nname = 'demo'\n"
        f"packages = [{{include = '{CATASTROPHE}'}}, {{include = '../**/*', from = '/etc'}}]\ninclude = ['{CATASTROPHE}']\nexclude = ['{CATASTROPHE}']"
    ),
    "pdm's patterns are catastrophic": lambda: (
        "[build-system]\nbuild-backend = 'pdm.backend'\n[tool.pdm.build]\n"
        f"includes = ['{CATASTROPHE}', '../**']\nexcludes = ['{CATASTROPHE}']\npackage-dir = '../..'"
    ),
    "uv's folders lead out": lambda: (
        "[build-system]\nbuild-backend = 'uv_build'\n[tool.uv.build-backend]\nmodule-root = '../..'\nmodule-name = ['..', '/etc', 'a..b']"
    ),
    "maturin's folders lead out": lambda: (
        "[build-system]\nbuild-backend = 'maturin'\n[tool.maturin]\npython-source = '../..'\nmodule-name = '..a..b'\npython-packages = ['..']"
    ),
    "scikit-build's folders lead out": lambda: (
        "[build-system]\nbuild-backend = 'scikit_build_core.build'\n[tool.scikit-build]\nwheel.packages = ['../..', '/etc']\nwheel.exclude = ['**']"
    ),
    "flit's module leads out": lambda: (
        "[build-system]\nbuild-backend = 'flit_core.buildapi'\n[tool.flit.module]\nname = '../../etc'"
    ),
    "setuptools' names have 20,000 parts": lambda: built_by(
        "setuptools.build_meta",
        f"[tool.setuptools]\npackages = ['{DEEP}']\npy-modules = ['{DEEP}']\npackage-dir = {{x = '{DEEP_PATH}', '' = '{DEEP_PATH}'}}\n[[tool.setuptools.ext-modules]]\nname = '{DEEP}'\nsources = []",
    ),
    "hatchling's folders have 20,000 parts": lambda: built_by(
        "hatchling.build",
        f"[tool.hatch.build.targets.wheel]\npackages = ['{DEEP_PATH}']\nsources = ['{DEEP_PATH}']\nforce-include = {{'{DEEP_PATH}' = '{DEEP_PATH}'}}",
    ),
    "poetry's folders have 20,000 parts": lambda: built_by(
        "poetry.core.masonry.api",
        f"[tool.poetry]\npackages = [{{include = '{DEEP_PATH}', from = '{DEEP_PATH}', to = '{DEEP_PATH}'}}]",
    ),
    "flit's module has 20,000 parts": lambda: built_by("flit_core.buildapi", f"[tool.flit.module]\nname = '{DEEP}'"),
    "uv's names have 20,000 parts": lambda: built_by(
        "uv_build", f"[tool.uv.build-backend]\nmodule-name = '{DEEP}'\nmodule-root = '{DEEP_PATH}'"
    ),
    "maturin's names have 20,000 parts": lambda: built_by(
        "maturin",
        f"[tool.maturin]\nmodule-name = '{DEEP}'\npython-source = '{DEEP_PATH}'\npython-packages = ['{DEEP}']",
    ),
    "scikit-build's folders have 20,000 parts": lambda: built_by(
        "scikit_build_core.build", f"[tool.scikit-build]\nwheel.packages = ['{DEEP_PATH}']"
    ),
    "a backend of the project's own": lambda: (
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.', '../..']"
    ),
}

SETUP_CFGS: dict[str, Callable[[], Content]] = {
    "interpolation": lambda: "[options]\npackages = %(packages)s\npy_modules = %(x)s ${x:y}\n",
    "sections and options twice": lambda: "[options]\npackages = a\npackages = demo\n[options]\npy_modules = demo\n",
    "no section": lambda: "packages = demo\n",
    "a line of 1 MB": lambda: f"[options]\npackages = {'x' * MIB}\n",
    "20,000 sections": lambda: "".join(f"[s{number}]\na = b\n" for number in range(MANY)),
    "a value of 40,000 lines": lambda: "[options]\npackages =\n" + "  demo\n" * 40_000,
    "random bytes": lambda: deflate(bytes(range(256)) * 99),
    "rubbish": lambda: "[\n]\n[]\n[options\n= x\n: y\n  z\n[options]\n=\npackages\n",
    "folders that lead out": lambda: (
        "[options]\npackages = find:\npackage_dir =\n  = ../..\n  etc = /etc\n  =\n[options.packages.find]\nwhere = ../../etc\n"
        f"include = {CATASTROPHE}\nexclude = {CATASTROPHE}\n"
    ),
    "files that it would read": lambda: (
        "[metadata]\nname = file: /etc/passwd\nversion = attr: os.system\n[options]\ninstall_requires = file: /etc/passwd\n"
    ),
}
