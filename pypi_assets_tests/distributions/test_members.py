"""Files by folder are the same files."""

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.members import Folder, by_folder, merged, paths_of

NAMES = st.sampled_from(["a", "b", "a.py", ".py", "b.PY", "a.py.py", "a\nb", "\0", "x.so", "__init__.py", "é.py"])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=15)


@given(PATHS)
def test_what_is_put_by_folder_comes_back(paths: list[str]) -> None:
    files = by_folder(paths)
    assert sorted(paths_of(files)) == sorted(paths)
    assert list(dict(files)) == list(dict.fromkeys(path.rpartition("/")[0] for path in paths))
    for folder, inside in files:
        assert len(inside) == len(inside.names) == sum(path.rpartition("/")[0] == folder for path in paths)
        assert all(name in inside for name in inside.names)


@given(PATHS, PATHS)
def test_merged_files_are_there_once(some: list[str], more: list[str]) -> None:
    some, more = list(dict.fromkeys(some)), list(dict.fromkeys(more))
    files = merged(by_folder(some) + by_folder(more))
    assert sorted(paths_of(files)) == sorted({*some, *more})
    assert len(dict(files)) == len(files)


def test_a_part_of_a_name_is_not_in_a_folder() -> None:
    (_, inside), *_ = by_folder(["long.py", "other.so", "x.py"])
    assert inside == Folder("long/x/", "other.so/")
    for name in ("ong.py", "lon.py", "long", "ther.so", "other", "long.py/x.py", ".py", ""):
        assert name not in inside


def test_what_can_be_no_module_is_seen_at_once() -> None:
    assert Folder("", "data.json/py.typed/").others_are_data
    for name in ("a.py", "a.pyi", "a.pyc", "a.pyx", "a.pyd", "a.abi3.so"):
        inside = by_folder([name])[0][1]
        assert inside.sources or not inside.others_are_data
