"""The names of the modules that `import` finds."""

import importlib.machinery
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.members import by_folder
from pypi_assets.distributions.module_names import ModuleNames, find_modules
from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.examples import examples

EXTENSION_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


def modules_of(paths: list[str]) -> ModuleNames:
    return find_modules(by_folder(paths))


def test_modules_from_paths(subtests: pytest.Subtests):
    cases = [
        (["six.py"], ("six",)),
        (["a/__init__.py", "a/_b.py", "a/c/__init__.py"], ("a", "a._b", "a.c")),
        (["google/cloud/x/__init__.py"], ("google", "google.cloud", "google.cloud.x")),
        (["a/__init__.py", "a/sub/x.py"], ("a", "a.sub", "a.sub.x")),
        (["m/_s.cpython-311-x86_64-linux-gnu.so"], ("m", "m._s")),
        (["m/_s.cp311-win_amd64.pyd", "n.abi3.so", "o.pypy39-pp73-darwin.so"], ("m", "m._s", "n", "o")),
        (["a.cpython-32mu.so", "b.so", "c.pyd"], ("a", "b", "c")),
        (["p/__init__.pyi", "p/x.pyi", "py.typed"], ()),
        (["a/__main__.py", "__main__.py", "__init__.py"], ("a", "a.__main__")),
        (["a/__pycache__/b.cpython-311.pyc", "a/__pycache__/c.py"], ()),
        (["old/__init__.pyc", "old/b.pyc"], ("old", "old.b")),
        (["a/data/x.json", "a/__init__.py"], ("a",)),
        (["class.py"], ("class",)),
    ]
    for paths, expected in cases:
        with subtests.test(paths=paths):
            assert modules_of(paths).names == expected


ABI_TAGS = (
    ".abi3 .abi3t .cpython-311-x86_64-linux-gnu .cpython-313t-darwin .cpython-36m-i386-linux-gnu .cp311-win_amd64"
    " .cp39-mingw_x86_64 .pypy39-pp73-x86_64-linux-gnu .graalpy231-310-native-x86_64-linux"
)


def test_abi_tag_is_removed_from_the_name(subtests: pytest.Subtests):
    for tag in ["", *ABI_TAGS.split()]:
        with subtests.test(tag=tag):
            for suffix in ("so", "pyd"):
                assert modules_of([f"m/_s{tag}.{suffix}", "m/__init__.py"]).names == ("m", "m._s")


def test_other_dots_are_not_abi_tags():
    modules = modules_of(["m/_s.debug.so", "m/a.b.py", "m/c.cpython-311.pyc"])
    assert (modules.names, modules.unnameable) == ((), 3)


@pytest.mark.parametrize(
    ("paths", "stubs"),
    [
        (["foo-stubs/__init__.pyi", "foo-stubs/bar.pyi", "foo-stubs/sub/x.pyi"], ("foo", "foo.bar", "foo.sub.x")),
        (["foo-stubs/bar.pyi", "foo/bar.py", "foo/__init__.py"], ("foo.bar",)),
        (["foo/__init__.py", "foo/a.pyi", "foo/a.py", "foo/b.pyi", "foo/__init__.pyi"], ("foo.b",)),
        (["foo/__init__.pyi", "foo/x.pyi", "top.pyi"], ("foo", "foo.x", "top")),
        (["foo/_c.abi3.so", "foo/_c.pyi"], ()),
        (["my-app/x.pyi", "foo/a-b.pyi", "__init__.pyi", "foo/__pycache__/x.pyi", "foo-stubs/py.typed"], ()),
    ],
)
def test_stubs_are_listed_by_their_module(paths, stubs):
    modules = modules_of(paths)
    assert modules.stubs == stubs
    assert modules.unnameable == 0


def test_repeated_folders_are_merged():
    modules = find_modules(
        [*by_folder(["a.py", "p/__init__.py", "p/b.py"]), *by_folder(["c.py", "p/b.pyi", "p/d.pyi"])]
    )
    assert (modules.names, modules.stubs) == (("a", "c", "p", "p.b"), ("p.d",))


def test_unnameable_modules_are_counted():
    modules = modules_of(["2to3.py", "my-app/x.py", "numpy.libs/libfoo-0cf9.so.3", "numpy.libs/libbar-a1.so", "ok.py"])
    assert modules.names == ("ok",)
    assert modules.unnameable == 3


def test_very_deep_or_long_names_are_skipped():
    modules = modules_of(["/".join("a" * 32) + "/b.py", "x" * 501 + ".py", "/".join("a" * 31) + "/b.py"])
    assert modules.names[-1] == ".".join("a" * 31) + ".b"
    assert modules.unnameable == 2


def test_module_hides_folder_of_the_same_name():
    modules = modules_of(["a.py", "a/b.py", "c.py", "c/__init__.py", "c/d.py"])
    assert modules.names == ("a", "c", "c.d")
    assert modules.notes == ("1 module files are left out: a module of the same name as their folder hides them",)


def importable(root: Path, prefix: str = "") -> set[str]:
    """Return the modules that the import system finds below `root`, without running any.

    A namespace package counts if it contains a module.
    """
    found = set()
    names = {path.name.partition(".")[0] for path in root.iterdir()} - {"__pycache__", "__init__"}
    for name in names if prefix else names - {"__main__"}:
        spec = importlib.machinery.PathFinder.find_spec(name, [str(root)])
        if spec is None or not name.isidentifier():
            continue
        below = set()
        for location in spec.submodule_search_locations or ():
            below |= importable(Path(location), f"{prefix}{name}.")
        if spec.origin is not None or below:
            found |= {f"{prefix}{name}"} | below
    return found


NAMES = ["a", "b", "_c", "class", "é", "1x", "d-e", "__main__", "__init__"]
FOLDERS = [*NAMES, "__pycache__"]
SUFFIXES = st.sampled_from([".py", ".py", ".pyi", EXTENSION_SUFFIX, ".abi3.so", ".so", ".txt"])


@st.composite
def trees(draw):
    """Draw paths of files, none of which is also a folder."""
    return draw(
        st.lists(
            st.builds(
                lambda folders, name, suffix: "/".join([*folders, name + suffix]),
                st.lists(st.sampled_from(FOLDERS), max_size=3),
                st.sampled_from(NAMES),
                SUFFIXES,
            ),
            max_size=12,
            unique=True,
        )
    )


@settings(max_examples=examples(60), deadline=None)
@given(trees())
def test_wheel_modules_match_the_import_system(paths):
    with tempfile.TemporaryDirectory() as folder:
        wheel = make_wheel(Path(folder), "demo", "1.0", files=dict.fromkeys(paths, b""))
        record = read_path(wheel)
        root = Path(folder) / "unpacked"
        root.mkdir()
        for path in paths:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(b"")
        importlib.machinery.PathFinder.invalidate_caches()
        assert record.error is None
        assert set(record.modules) == importable(root)
