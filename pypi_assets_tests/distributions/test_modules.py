"""Modules: what `import` finds."""

import importlib.machinery
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.modules import find_modules
from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import make_wheel

EXTENSION_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
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
    ],
)
def test_modules_of_paths(paths, expected):
    assert find_modules(paths).names == expected


def test_what_has_no_dotted_name_is_counted():
    found = find_modules(["2to3.py", "my-app/x.py", "numpy.libs/libfoo-0cf9.so.3", "numpy.libs/libbar-a1.so", "ok.py"])
    assert found.names == ("ok",)
    assert found.unnameable == 3


def test_names_of_absurd_depth_or_length_are_left_out():
    found = find_modules(["/".join("a" * 32) + "/b.py", "x" * 501 + ".py", "/".join("a" * 31) + "/b.py"])
    assert found.names[-1] == ".".join("a" * 31) + ".b"
    assert found.unnameable == 2


def test_a_module_hides_the_folder_of_its_name():
    found = find_modules(["a.py", "a/b.py", "c.py", "c/__init__.py", "c/d.py"])
    assert found.names == ("a", "c", "c.d")
    assert found.notes == ("1 module files are left out: a module beside their folder hides them",)


def test_compiled_files_do_not_count_in_a_source_tree():
    assert find_modules(["a.so", "b.pyc", "c.py"], compiled=False).names == ("c",)


def importable(root: Path, prefix: str = "") -> set[str]:
    """The modules that the import system itself finds under `root`, without running any.

    A namespace counts where a module is found below it.
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
    """Paths of files, none of which is also a folder."""
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


@settings(max_examples=60, deadline=None)
@given(trees())
def test_modules_of_a_wheel_are_those_that_import_finds(paths):
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
