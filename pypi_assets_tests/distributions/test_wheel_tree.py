"""Trees of wheels: code that runs or is imported without appearing as a module, and impossible paths."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import folders_of
from pypi_assets.distributions.wheel_tree import installed_tree, tree_notes, tree_problems
from pypi_assets_tests.examples import examples


def notes(*paths, modules=(), **files):
    extract = Extract(folders_of(paths), {name.replace("_pth", ".pth"): content for name, content in files.items()})
    return list(tree_notes(extract, installed_tree(extract.members), modules))


def test_tree_equals_site_packages():
    tree = installed_tree(folders_of(["a/b.py", "x.data/purelib/c.py", "x.data/scripts/d", "x-1.dist-info/RECORD"]))
    assert [(place, inside.names) for place, inside in tree] == [("a", ["b.py"]), ("", ["c.py"])]


def problems_of(paths):
    members = folders_of(paths)
    return tree_problems(members, installed_tree(members))


def test_paths_that_are_file_and_folder(subtests: pytest.Subtests):
    cases = [
        (["a", "a/b.py"], ["a is a file and a folder"]),
        (["a", "a/b/c/d.py"], ["a is a file and a folder"]),
        (["a.py", "a.py/b.py"], ["a.py is a file and a folder"]),
        (["x.data/purelib/a", "a/b.py"], ["a is a file and a folder"]),
        (["c/a", "c/a/b.py"], ["c/a is a file and a folder"]),
        (["a", "ba/b.py", "a.txt", "c/a/d"], []),
        (["x.data/scripts/a", "x.data/scripts/a/b"], ["bin/a is a file and a folder"]),
        (["x.data/scripts/a", "x.data/data/bin"], ["bin is a file and a folder"]),
        (["x.data/headers/a", "x.data/headers/a/b", "x.data/scripts/a/b"], ["a is a file and a folder"]),
        (["x-1.dist-info/WHEEL/a"], []),
        (["x-1.dist-info/WHEEL", "x-1.dist-info/WHEEL/a"], ["x-1.dist-info/WHEEL is a file and a folder"]),
        (["x-1.dist-info/WHEEL", "x-1.dist-info/INSTALLER/a"], ["x-1.dist-info/INSTALLER is a file and a folder"]),
        (["x-1.dist-info", "x-1.dist-info/WHEEL"], ["x-1.dist-info is a file and a folder"]),
        (["a/b", "x.data/data/lib/python3.11/site-packages/a"], ["a is a file and a folder"]),
        ([*(f"f{number:05}" for number in range(3000)), "f00007/a.py"], ["f00007 is a file and a folder"]),
    ]
    for paths, problems in cases:
        with subtests.test(paths=paths):
            assert list(problems_of(paths)) == problems


PATHS = st.lists(st.sampled_from(("a", "b", "a.py", "c.txt")), min_size=1, max_size=4).map("/".join)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PATHS, unique=True, max_size=8))
def test_each_path_that_is_file_and_folder_is_named(paths):
    folders = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}
    problems = list(problems_of(paths))
    assert sorted(problems) == sorted(f"{path} is a file and a folder" for path in folders & set(paths))


def test_deep_folders_take_bounded_memory():
    paths = [f"a{number}/" + "b/" * 1500 + "c.py" for number in range(1000)]
    with pytest.raises(LimitExceededError):
        list(problems_of(paths))


def test_hundred_thousand_folders_take_bounded_time():
    paths = [*(f"f{number}" for number in range(50_000)), *(f"g{number}/a" for number in range(50_000))]
    assert list(problems_of(paths)) == []


def test_windows_imports_modules_from_the_prefix():
    assert notes("x.data/data/a/b.py", "x.data/data/c.so", "x.data/data/share/d.py") == [
        "ambiguous archive: modules on Windows alone, by the data scheme: a, a.b"
    ]
    assert notes("x.data/data/DLLs/a.pyd", "x.data/data/Lib/b/c.py") == [
        "ambiguous archive: modules on Windows alone, by the data scheme: a, b, b.c"
    ]
    assert notes("x.data/data/a.pth") == [
        "ambiguous archive: .pth files with some Pythons alone, by the data scheme: a.pth"
    ]


@pytest.mark.parametrize(
    ("path", "is_deciding"),
    [
        ("pyvenv.cfg", True),
        ("bin/pyvenv.cfg", True),
        ("python311._pth", True),
        ("lib/python313.zip", True),
        ("python313.zip/a/b.txt", True),
        ("share/pyvenv.cfg", False),
        ("lib/other.zip", False),
    ],
)
def test_files_that_change_the_module_search_path(path, is_deciding):
    deciding = [note for note in notes(f"x.data/data/{path}") if "decide" in note]
    text = f"ambiguous archive: files that decide where some Pythons look for modules: {path}"
    assert deciding == ([text] if is_deciding else [])


def test_windows_only_modules():
    assert notes("a\\b.py", "c.pyw") == ["ambiguous archive: modules on Windows alone: a, a.b, c"]
    assert notes("a\\b.txt") == [
        "ambiguous archive: names in 1 folders have a backslash, which parts folders on Windows alone"
    ]
    assert notes("..\\a.py", "b/..\\..\\c.py", "d.py", modules=["d"])[0].startswith("ambiguous archive: names in 2")
    assert notes("x.data\\purelib\\a.py") == ["ambiguous archive: modules on Windows alone: a"]
    assert notes("a.py", modules=["a"]) == []


@pytest.mark.parametrize(
    ("folder", "is_site"),
    [
        ("lib/python3.11/site-packages", True),
        ("lib64/python3.13t/site-packages", True),
        ("local/lib/python3.11/dist-packages", True),
        ("Lib/site-packages", True),
        ("lib/python3.11", True),
        ("lib/pypy3.9/site-packages", True),
        ("lib", False),
        ("share/lib/python3.11/site-packages", False),
        ("lib/python3.11-config", False),
    ],
)
def test_data_scheme_reaches_site_packages_of_some_pythons(folder, is_site):
    every = notes(f"x.data/data/{folder}/a.py", f"x.data/data/{folder}/b.pth")
    partial = [note for note in every if "with some Pythons" in note]
    assert partial == (
        [
            "ambiguous archive: modules with some Pythons alone, by the data scheme: a",
            "ambiguous archive: .pth files with some Pythons alone, by the data scheme: b.pth",
        ]
        if is_site
        else []
    )


def test_scripts_and_metadata_in_schemes():
    assert notes("x.data/scripts/b", "x.data/scripts/a.py", "x.data/data/bin/c") == ["installs scripts: a.py, b, c"]
    assert notes("x.data/purelib/y-1.dist-info/METADATA") == [
        "ambiguous archive: metadata are installed that pip does not resolve from: x.data/purelib/y-1.dist-info"
    ]
    [note] = notes(*(f"x.data/scripts/script{number:03}" for number in range(100)))
    assert note.endswith(" and 82 more")


def test_startup_files():
    content = b"import a\nsub\n../up\n/abs\nC:\\x\n"
    assert notes("sub/secret.py", "sub/in/more.py", "e.pth", modules=["sub", "sub.secret"], e_pth=content) == [
        "start-up code: e.pth",
        "further path: e.pth: sub, with the modules in, in.more, secret",
        "further path: e.pth: ../up, outside of site-packages",
        "further path: e.pth: /abs, outside of site-packages",
        "further path: e.pth: C:\\x, outside of site-packages",
    ]
    assert notes("e.pth", e_pth=b"nothing\n") == ["further path: e.pth: nothing"]
