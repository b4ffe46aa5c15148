"""The kind of an sdist, the Pythons that it supports, and its file tree as seen by build backends."""

import bz2
import gzip
import io
import lzma
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Folder, by_folder, merged, paths_of
from pypi_assets.distributions.reader import (
    ends_in_zip,
    is_read_as_tar,
    is_tar,
    kind_notes,
    read_path,
    unread_compression,
)
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.source_tree import MAX_TARGET_LENGTH, clean_path, joined, module_name, moved
from pypi_assets_tests.builders import make_sdist, tar_bytes, zip_bytes
from pypi_assets_tests.distributions.backends.projects import files, source_tree

TAR = tar_bytes({"demo-1.0/setup.py": ""}, format="tar")
ZIP = zip_bytes({"demo-1.0/setup.py": ""})
COMPRESSED = {
    "gzip": gzip.compress(TAR),
    "bzip2": bz2.compress(TAR),
    "xz": lzma.compress(TAR),
    "lzma": lzma.compress(TAR, format=lzma.FORMAT_ALONE),
    "none": TAR,
}


def test_filename_determines_compression(subtests: pytest.Subtests):
    cases = [
        (".tar.gz", {"gzip"}),
        (".TGZ", {"gzip"}),
        (".tar.bz2", {"bzip2"}),
        (".tbz", {"bzip2"}),
        (".tar.xz", {"xz", "lzma"}),
        (".txz", {"xz", "lzma"}),
        (".tlz", {"xz", "lzma"}),
        (".tar.lzma", {"xz", "lzma"}),
        (".tar", set(COMPRESSED)),
        (".zip", set()),
    ]
    for suffix, right in cases:
        with subtests.test(suffix=suffix):
            for name, content in COMPRESSED.items():
                notes = kind_notes(f"demo-1.0{suffix}", content[:512], content)
                assert (notes == []) is (name in right), name
                assert is_read_as_tar(f"demo-1.0{suffix}", content) is (suffix != ".zip")
                assert is_tar(content[:512])


def test_zip_is_not_a_compressed_tar():
    assert not is_tar(ZIP)
    assert not is_read_as_tar("demo-1.0.tar.gz", ZIP)
    assert kind_notes("demo-1.0.zip", ZIP[:512], ZIP) == []
    assert "older versions of pip" in kind_notes("demo-1.0.tar.gz", ZIP[:512], ZIP)[0]
    assert "ends like a zip" in kind_notes("demo-1.0.tar.gz", COMPRESSED["gzip"], ZIP)[0]
    assert "starts like a tar" in kind_notes("demo-1.0.zip", COMPRESSED["gzip"], ZIP)[0]


def test_ends_in_zip_agrees_with_zipfile(subtests: pytest.Subtests):
    cases = [
        b"",
        ZIP,
        ZIP[:-1],
        ZIP + b"rubbish",
        ZIP + bytes(65_535),
        ZIP + bytes(65_536),
        ZIP + bytes(70_000),
        b"PK\5\6",
        b"PK\5\6" + bytes(18),
        b"PK\5\6" + b"x" * 18,
        ZIP + b"PK\5\6",
    ]
    for content in cases:
        with subtests.test(content=content):
            assert ends_in_zip(content[-70_000:]) is zipfile.is_zipfile(io.BytesIO(content))


def test_unsupported_compressions_are_named():
    assert unread_compression(b"\x28\xb5\x2f\xfd....") == "zstd"
    assert unread_compression(b"\x1f\x9d") == "compress"
    assert unread_compression(b"\x1f\x8b") is None


PROJECT = '[project]\nname = "demo"\nversion = "1.0"\n'
POETRY = '[build-system]\nbuild-backend = "poetry.core.masonry.api"\n'
SETUP = "from setuptools import setup\n"
OLD, STATIC = "2.1", "2.2"


def setup_py(arguments: str) -> dict[str, str]:
    return {"setup.py": f"{SETUP}setup({arguments})"}


def test_requires_python_of_the_build_wins(tmp_path, subtests: pytest.Subtests):
    options = "[options]\npython_requires = >=3.8\n"
    cases = [
        (STATIC, ">=3.7", {"pyproject.toml": f'{PROJECT}requires-python = ">=3.8"'}, ">=3.8", True),
        (STATIC, ">=3.7", {"pyproject.toml": PROJECT}, None, True),
        (STATIC, None, {"pyproject.toml": f'{PROJECT}requires-python = ">=3.8"'}, ">=3.8", True),
        (
            STATIC,
            ">=3.7",
            {"pyproject.toml": f'{PROJECT}dynamic = ["requires-python"]'} | setup_py("x()"),
            ">=3.7",
            False,
        ),
        (OLD, ">=3.7", setup_py("python_requires='>=3.8'"), ">=3.8", True),
        (OLD, None, setup_py("python_requires='>=3.8'"), ">=3.8", False),
        (OLD, ">=3.7", setup_py(""), None, True),
        (OLD, ">=3.7", setup_py("python_requires=unknown()"), ">=3.7", False),
        (OLD, ">=3.7", setup_py("**unknown()"), ">=3.7", False),
        (OLD, ">=3.7", setup_py("pbr=True, python_requires='>=3.8'"), ">=3.7", False),
        (OLD, ">=3.7", setup_py("") | {"setup.cfg": options}, ">=3.8", True),
        (OLD, ">=3.7", {"setup.cfg": options}, ">=3.8", True),
        (OLD, ">=3.7", setup_py("python_requires='>=3.9'") | {"setup.cfg": options}, ">=3.7", False),
        (OLD, ">=3.7", {"setup.cfg": "[flake8]\nx = 1\n"}, ">=3.7", False),
        (
            STATIC,
            ">=3.9,<4.0",
            {"pyproject.toml": f"{POETRY}{PROJECT}[tool.poetry.dependencies]\npython = '^3.10'"},
            ">=3.10,<4.0",
            True,
        ),
        (
            STATIC,
            ">=3.9",
            {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '*'"},
            None,
            True,
        ),
        (
            STATIC,
            ">=3.9",
            {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '3.9.*'"},
            ">=3.9",
            False,
        ),
        (
            STATIC,
            ">=3.9",
            {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '^2.7 || ^3.5'"},
            ">=3.9",
            False,
        ),
    ]
    for version, stated, content, expected, has_note in cases:
        with subtests.test(version=version, stated=stated, content=files):
            headers = [("Requires-Python", stated)] if stated else []
            path = make_sdist(
                tmp_path,
                "demo",
                "1.0",
                files={"demo.py": "", **content},
                metadata_version=version,
                extra_headers=headers,
            )
            record = read_path(path)
            assert record.requires_python == expected
            assert any(note.startswith(AMBIGUOUS) for note in record.notes) is has_note


def test_equivalent_requires_python_has_no_note(tmp_path, subtests: pytest.Subtests):
    cases = [
        (">=3.8,<4", setup_py("python_requires='>= 3.8, < 4'")),
        ("<4,>=3.8", {"pyproject.toml": f'{PROJECT}requires-python = ">=3.8.0, <4.0"'}),
        (">=3.9,<4.0", {"pyproject.toml": f"{POETRY}[tool.poetry]\nname = 'demo'\ndependencies.python = '^3.9'"}),
        ("!=3.0.*,>=2.7", setup_py("python_requires='>=2.7,!=3.0.*'")),
    ]
    for stated, content in cases:
        with subtests.test(stated=stated, content=files):
            path = make_sdist(
                tmp_path, "demo", "1.0", files={"demo.py": "", **content}, extra_headers=[("Requires-Python", stated)]
            )
            record = read_path(path)
            assert record.requires_python == stated
            assert not any(note.startswith(AMBIGUOUS) for note in record.notes)


PATHS = ("demo/__init__.py", "demo/part/a.py", "demo/data.txt", "Other.py", "native/b.so", "docs/index.rst")


def test_packages_and_folders_have_modules():
    tree = source_tree(files(*PATHS))
    assert list(tree.packages) == ["demo"]
    assert tree.folders == {"", "demo", "demo/part", "native"}
    assert tree.tops == ["demo", "native"]
    assert tree.modules_at_top == ["Other"]
    assert tree.has_compiled_modules
    assert not tree.has_compiled_sources


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("demo", ["demo/__init__.py", "demo/part/a.py"]),
        ("demo/part/a.py", ["demo/part/a.py"]),
        ("demo/data.txt", []),
        ("native", ["native/b.so"]),
        ("no", []),
    ],
)
def test_tree_at_path(path, found):
    assert sorted(paths_of(source_tree(files(*PATHS)).at(path))) == found


@pytest.mark.parametrize(("name", "path"), [("demo", "demo"), ("other", "Other.py"), ("docs", None), ("DEMO", "demo")])
def test_exact_case_is_preferred(name, path):
    assert source_tree(files(*PATHS)).named("", name) == path


def test_files_in_a_large_folder_are_found():
    tree = source_tree(files(*(f"demo/module_{number}.py" for number in range(500))))
    assert tree.has_file("demo/module_499.py")
    assert not tree.has_file("demo/module_500.py")


def test_moved_files_keep_relative_paths():
    folders = by_folder(["src/demo/a.py", "src/b.py"])
    assert sorted(paths_of(moved(folders, "src"))) == ["b.py", "demo/a.py"]
    assert sorted(paths_of(moved(folders, "src", "new/place"))) == ["new/place/b.py", "new/place/demo/a.py"]
    with pytest.raises(LimitExceededError):
        moved(folders, "src", "t" * (MAX_TARGET_LENGTH + 1))


def test_paths_and_names():
    assert clean_path(" ./src//demo/") == "src/demo"
    assert clean_path("src\\demo") == "src/demo"
    assert (joined("a", "b"), joined("", "b"), joined("a", "")) == ("a/b", "b", "a")
    assert module_name("My-Demo..pkg") == "my_demo_pkg"


NAMES = st.sampled_from(["a", "b", "a.py", ".py", "b.PY", "a.py.py", "a\nb", "\0", "x.so", "__init__.py", "é.py"])
MEMBERS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=15)


@given(MEMBERS)
def test_by_folder_round_trip(paths: list[str]) -> None:
    files = by_folder(paths)
    assert sorted(paths_of(files)) == sorted(paths)
    assert list(dict(files)) == list(dict.fromkeys(path.rpartition("/")[0] for path in paths))
    for folder, inside in files:
        assert len(inside) == len(inside.names) == sum(path.rpartition("/")[0] == folder for path in paths)
        assert all(name in inside for name in inside.names)


@given(MEMBERS, MEMBERS)
def test_merged_files_are_unique(first: list[str], second: list[str]) -> None:
    first, second = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    files = merged(by_folder(first) + by_folder(second))
    assert sorted(paths_of(files)) == sorted({*first, *second})
    assert len(dict(files)) == len(files)


def test_partial_name_is_not_in_folder() -> None:
    (_, inside), *_ = by_folder(["long.py", "other.so", "x.py"])
    assert inside == Folder("long/x/", "other.so/")
    for name in ("ong.py", "lon.py", "long", "ther.so", "other", "long.py/x.py", ".py", ""):
        assert name not in inside


def test_data_files_are_recognized() -> None:
    assert Folder("", "data.json/py.typed/").others_are_data
    for name in ("a.py", "a.pyi", "a.pyc", "a.pyx", "a.pyd", "a.abi3.so"):
        inside = by_folder([name])[0][1]
        assert inside.sources or not inside.others_are_data
