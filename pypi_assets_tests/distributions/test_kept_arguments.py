"""Stored setup.py arguments are used while the rules for following scripts are unchanged, and do not alter records."""

import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions import sdists
from pypi_assets.distributions import setup_script as kept_rules
from pypi_assets.distributions.extract import Extract, decode_extract, encode_extract
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.setup_script import (
    SETUP_SCRIPT_VERSION,
    keep_arguments,
    kept_arguments,
    read_setup_script,
)
from pypi_assets_tests.builders import make_sdist
from pypi_assets_tests.distributions.hostile_sources import SETUP_SCRIPTS
from pypi_assets_tests.distributions.made_extracts import extract_of
from pypi_assets_tests.distributions.test_setup_script import ARGUMENTS, BEFORE, CALLS, FRAGMENTS
from pypi_assets_tests.examples import examples

DIGESTS = {
    7: "a6964f17395dc332c89895d384f579ff52a1a38b73cf14453542499fe0034fdf",
    6: "a4c7d832e59d22124f0f98eb69b8b706c005227b3a54ac0f5b72001b8f0554b5",
    5: "63ed5c21ca68cb76f523e2d0631d2659cff7320113e953036a164cbbc3fdb4b6",
    4: "2d19c7815457523727fe9f7636784971ed5a052a931dd8e5adfdee0b938e75b0",
    3: "212b30810d674a1107eafffbd88286c4acdf68bafbf24b59b77b1a674d8306cd",
    2: "e4392cfb42b94c29d070bb88f2faff6bae352d757b7f08febdfffb27c3bc1cfb",
    1: "8f8b40b443da38b817456b0833b1cc2464c2568c258d1de2d9d3ef508d4f6d96",
}
"""The digest of the arguments in all of SOURCES by version. Old digests stay, so that no version is used twice."""

START = "import os, sys\nfrom setuptools import Extension, find_packages, setup\n"
WHOLE = (
    """
REQUIRES = ["attrs>=20"]
REQUIRES += ("six",)
EXTRAS = {"test": ["pytest"], **{"doc": "sphinx\\nmyst\\n"}}
EXTRAS.update(dev=["tox"], **{":python_version < '3'": ["old"]})
setup(name="demo", version="1.%d" % 2, install_requires=REQUIRES, extras_require=EXTRAS, python_requires=">=3.9",
      entry_points={"console_scripts": ["run = demo:main"], "more": "a = b:c\\nd = e:f"}, namespace_packages=("space",))
""",
    """
FILES = [os.path.join("demo", each) for each in ("a.c", "b.c")]
FAST = [Extension("demo.fast", FILES), Extension("demo.slow", sources=["demo/slow.pyx"])]
setup(ext_modules=FAST + cythonize(["lib/*.pyx"]), packages=["demo", *find_packages("src", exclude=("tests",))],
      package_dir={"": "src", "demo": "demo"}, package_data={"demo": ["*.txt"]}, entry_points="[g]\\nn = m:o",
      rust_extensions=[RustExtension("demo.rust"), Extension("demo.*", ["demo/*.pyx"])])
""",
    """
if "--fast" in sys.argv:
    setup(name="demo", packages=["a"], version="1")
else:
    setup(name="demo", packages=["b"], py_modules=["c"], version="1")
""",
    "setup('positional', name='demo')\n",
    "def main():\n    setup(name='demo')\nif __name__ == '__main__':\n    main()\n",
    "print 'two'\nraise ValueError, 'old'\nsetup(name='demo', mode=0755, py_modules=['x'])\n",
    "# \xe9\nsetup(name='\xe9')\n",
    "setup(\n",
    "call(name='demo')  # setup\n",
    "setup(name='a')\n" * 30,
    "x += x\n" * 30 + "setup(name='a')\n",
    "x = ['a']\n" + "x += x\n" * 30 + "setup(name='a')\n",
)
STATEMENTS = r"""
x = ["a"]; x.append("b")
x.extend(("b", "c"))
x.insert(0, "b")
x.pop()
change(x)
print(x)
x: list = ["b"]
x, (y, *z) = ["b"], (1, 2)
x = y = ["b"]; y.append("c")
x = x + ["b"]
x = ("a",) + ("b",)
x += s
x[0] = "b"
del x
s += "b"
s = s.replace("b", "").upper()
s = " a b ".strip().title()
x = "a b".split()
x = "a,b".split(",")
x = "a\nb".splitlines()
x = ",".join(x).split(",")
x = [s, "%s %d%%" % ("b", 1), "%(k)s" % {"k": "c"}, "{} {n}".format("d", n=2), f"{s}!e"]
s = "%5d" % 1
s = f"{1:>5}"
s = s if s else "b"
s = "b" if u else "b"
s = "b" if u else "c"
s = s or "b"
s = not s and "b"
s = "b" if s == "a" else "c"
s = "b" if "a" in x else "c"
s = "b" if "a" not in d else "c"
s = x[0] + d["k"]
s = x[5]
s = d.get("k", "b")
s = d.get("l", "b")
s = "a" * 3
s = "a" "b" r"\d" + os.sep + os.curdir
s = "\ud800"
s = os.path.join("a", "", os.path.dirname("b/c"), os.path.abspath("d"), os.getcwd())
s = open("a").read()
s = (lambda: x.append("b"))()
x = [*x, *("b",), *u]
x = [e + "b" for e in x if e]
x = [e for e in x if u]
x = [e for e in u if x.append("b")]
x = sorted(set(["b", "a", "b"]))
x = list(("b", "c"))
x = tuple(d)
x = list(d.values())
x = sum([["b"], ["c"]], [])
x = (y := ["b"])
x = find_packages()
x = find_packages(where="./src//", include=["a*"], exclude="b")
x = setuptools.find_packages()
x = other.find_packages()
from other import find_packages; x = find_packages()
from setuptools import find_namespace_packages as f; x = f("src")
from setuptools import *; x = find_packages()
from other import *; x = find_packages()
d = dict(d, l="b")
d = {**d, "l": "b"}
d = d | {"l": "b"}
d |= {"l": "b"}
d["k"] = "b"
d["k"] += "b"
d[u] = "b"
d.update(k="b", l="c")
d.update(u)
d.setdefault("k", "b")
d.setdefault("l", "b")
d.pop("k")
d.clear()
d = d.copy(); d["l"] = "b"
d = {k: "b" for k in d}
d = {**u}
m = cythonize("*.pyx") + [Extension("c", x), Extension(name="d", sources=["d.pyx"]), Extension("e.*", ["e.pyx"])]
m = [u]
if s:$  x = ["b"]
if u:$  x = ["b"]
if u:$  x.append("b")
if u:$  raise x
if u:$  x = ["b"]$else:$  x = ["b"]
for e in x:$  x.append(e)
for x in u: pass
while u:$  s = "b"$  break
with open("a") as x: s = "b"
with u:$  s = "b"
try:$  import a as s$except ImportError:$  s = "b"
try:$  s = "b"$finally:$  x = ["b"]
match u:$  case 1:$    x.append("b")
class A:$  x = ["b"]
def f(): return ["b"]$x = f()
def f(a, b="b", *, c="c"): return [a, b, c]$x = f("a", c="d")
def f(*a, **k): return k$d = f(l="b")
def f():$  global s$  s = "b"$f()
def f():$  if u: return "b"$  return "c"$s = f()
def f(): return f()$s = f()
@u$def f(): return "b"$s = f()
def f(): x.append("b")$atexit.register(f)
exec(u)
import setuptools as t; t.setup(name="t")
x = [1] if x else ["b"]
x += [u]
x = "%s" % ("b" != s)
s = s.lower() if s.startswith("a") else s.encode()
s = "b".join(u) + "{".format()
m += 1
d.update([1])
def f(*a): x.append("b")$f(1, 2)
with u:$  import y$  def f(): x.append("b")$  change(f)
assert x.append("b")
raise SystemExit(x.pop())
return
d["options"] = {"build_py": {"build_lib": s, "force": True, "compile": None}}
d["options"] = {"build_py": {"build_lib": u}}
d["extra_path"] = "a,b"
d["extra_path"] = (s, u)
import sys; sys.argv.append("--x"); x = [x, d]["--x" in sys.argv]
""".strip()
"""One statement per line, `$` for a line's end. The effect of each is checked separately."""
FRAME = """
import setuptools
s, x, d, m = "a", ["a"], {"k": "a"}, [Extension("c", ["c.c"])]
%s
setup(name=s, version="1" + s, packages=x, py_modules=x, install_requires=["r", s], package_dir=d, ext_modules=m, **d)
"""
SOURCES = (*WHOLE, *(FRAME % statement.replace("$", "\n") for statement in STATEMENTS.splitlines()))
"""Add to them only together with a new version."""


def built(*scripts: str) -> Extract:
    """Return the extract of one or more sdists in one archive, with modules that scripts may name."""
    files = {}
    for number, script in enumerate(scripts):
        top = "demo-1.0" if not number else f"other{number}"
        members = ("a/__init__.py", "b.py", "one.py", "src/demo/__init__.py", "demo/slow.pyx", "tests/__init__.py")
        files |= {f"{top}/{name}": b"" for name in members} | {f"{top}/setup.py": script.encode()}
    return extract_of(files, {name: content for name, content in files.items() if name.endswith("setup.py")})


def test_arguments_change_only_with_the_version() -> None:
    arguments = [msgspec.structs.astuple(read_setup_script(START + source)) for source in SOURCES]
    ordered = [[sorted(value) if isinstance(value, frozenset) else value for value in values] for values in arguments]
    digest = hashlib.sha256(msgspec.json.encode(ordered)).hexdigest()
    assert digest == DIGESTS.get(SETUP_SCRIPT_VERSION), (
        "The same setup.py gives different arguments: raise SETUP_SCRIPT_VERSION in"
        " distributions/setup_script.py, so that stored arguments are ignored, and add the new digest here:"
        f" {SETUP_SCRIPT_VERSION + 1}: {digest!r}"
    )


@given(
    st.lists(FRAGMENTS, max_size=30) | st.lists(st.sampled_from(BEFORE), max_size=4),
    st.sampled_from(CALLS),
    st.lists(st.sampled_from(ARGUMENTS), max_size=4, unique_by=lambda each: each.partition("=")[0]),
)
@settings(max_examples=examples(200), deadline=None)
def test_stored_arguments_do_not_change_the_record(before, call, arguments) -> None:
    source = START + "\n".join([*before, call.format("\n    ".join(sorted(arguments, key="**x".__eq__)))])
    plain = built(source)
    read = built(source)
    sdists.condense(read)

    kept = kept_arguments(read.setup_arguments)
    assert kept is None or kept == read_setup_script(source)
    assert make_record(decode_extract(encode_extract(read)), "demo-1.0.zip") == make_record(plain, "demo-1.0.zip")


def test_stored_arguments_are_not_longer_than_the_script(subtests: pytest.Subtests) -> None:
    for name in SETUP_SCRIPTS:
        with subtests.test(name=name):
            source = SETUP_SCRIPTS[name]()
            content = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")

            assert len(keep_arguments(content)) <= len(content)


def test_lists_longer_than_their_script_are_not_stored() -> None:
    script = START + "a = ['x', 'y', 'z', 'v']\n{}setup(packages=a)\n"

    assert keep_arguments(script.format("a += a\n" * 3).encode()) != b""
    assert keep_arguments(script.format("a += a\n" * 9).encode()) == b""


@pytest.mark.parametrize(
    "source", ["x = 1", "setup(", "f = 1 ? setup()", f"{START}setup(packages=" + "-" * 9999 + "1)"]
)
def test_problems_are_not_stored(source) -> None:
    assert read_setup_script(source).problem is not None
    assert keep_arguments(source.encode()) == b""


def test_sdist_extract_stores_setup_arguments(tmp_path: Path, monkeypatch) -> None:
    script = START + "setup(name='demo', version='1.0', packages=['demo'], install_requires=['a'])\n"
    path = make_sdist(tmp_path, "demo", "1.0", files={"setup.py": script, "demo/__init__.py": ""}, pkg_info=False)
    with path.open("rb") as file:
        reading = read_distribution(file, path.name, hash_content=False)

    def fail(source: bytes) -> None:
        raise AssertionError("setup.py is followed once more")

    monkeypatch.setattr(sdists, "read_setup_script", fail)
    stored = decode_extract(encode_extract(reading.extract))
    assert make_record(stored, path.name) == reading.record
    assert reading.record.requires_dist == ("a",)


def test_arguments_of_other_rules_are_ignored(monkeypatch) -> None:
    script = START + "setup(name='demo', py_modules=['one'])\n"
    read = built(script)
    monkeypatch.setattr(kept_rules, "SETUP_SCRIPT_VERSION", SETUP_SCRIPT_VERSION + 1)
    stale = replace(read, setup_arguments=keep_arguments(script.replace("one", "wrong").encode()))
    assert make_record(stale, "demo-1.0.zip").modules == ()  # made by the same rules, so it is used
    monkeypatch.undo()

    assert make_record(stale, "demo-1.0.zip").modules == ("one",)


def test_arguments_of_several_scripts_are_not_stored() -> None:
    read = built(START + "setup(name='demo', py_modules=['one'])", START + "setup(name='other', py_modules=['b'])")
    sdists.condense(read)

    assert read.setup_arguments == b""


def test_stored_bytes_are_deterministic() -> None:
    source = f"{START}setup({', '.join(f'{name}={name!r}' for name in 'zyxwvutsrqponmlkjihgfedcba')})\n".encode()

    assert keep_arguments(source) == keep_arguments(source)
    assert msgspec.msgpack.decode(keep_arguments(source))[1][14] == sorted("abcdefghijklmnopqrstuvwxyz")
