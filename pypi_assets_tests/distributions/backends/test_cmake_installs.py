"""Where install() puts modules."""

import pytest

from pypi_assets.distributions.backends.cmake_installs import Installs, Target
from pypi_assets.distributions.members import paths_of
from pypi_assets_tests.distributions.backends.projects import files, source_tree

TREE = source_tree(files("a.py", "src/b.py", "src/sub/c.py", "src/tests/t.py", "src/d.txt", "src/e.pyi"))


def installs(command, folder="", **more):
    found = Installs(TREE, **{"package": "demo", "inside": "", **more})
    found.add(command.split(), folder)
    return sorted(paths_of(found.files()))


def test_files_and_folders(subtests: pytest.Subtests):
    cases = [
        ("FILES a.py src/d.txt none.py DESTINATION demo", ["demo/a.py"]),
        ("FILES <binary>/made.py DESTINATION demo", ["demo/made.py"]),
        ("PROGRAMS a.py DESTINATION demo RENAME b.py", ["demo/b.py"]),
        ("FILES a.py DESTINATION $<UNKNOWN>", []),
        ("FILES a.py DESTINATION /usr/lib", []),
        ("FILES a.py DESTINATION <platlib>/demo", ["demo/a.py"]),
        ("FILES a.py DESTINATION <prefix>/x", ["x/a.py"]),
        ("FILES a.py TYPE DATA", []),
        (
            "DIRECTORY src DESTINATION demo PATTERN tests EXCLUDE",
            ["demo/src/b.py", "demo/src/e.pyi", "demo/src/sub/c.py"],
        ),
        (
            "DIRECTORY src/ DESTINATION demo FILES_MATCHING PATTERN *.py PATTERN t.py EXCLUDE",
            ["demo/b.py", "demo/sub/c.py"],
        ),
        ("DIRECTORY src/ DESTINATION demo FILES_MATCHING REGEX \\\\.pyi$", ["demo/e.pyi"]),
        ("DIRECTORY src/ DESTINATION demo FILES_MATCHING REGEX ([a-z]+)+", []),
        ("DIRECTORY <binary>/src DESTINATION demo", []),
        ("EXPORT x DESTINATION demo", []),
        ("", []),
    ]
    for command, expected in cases:
        with subtests.test(command=command):
            assert installs(command) == expected


def test_paths_are_those_below_the_folder_of_the_command_and_the_folder_to_install_to():
    assert installs("FILES b.py DESTINATION x", "src", inside="demo") == ["demo/x/b.py"]
    assert installs("FILES b.py DESTINATION .", "src", inside="demo") == ["demo/b.py"]


def test_components_leave_out_what_has_another():
    command = "FILES a.py DESTINATION demo COMPONENT python"
    assert installs(command, components=("python",)) == ["demo/a.py"]
    assert installs(command, components=("other",)) == []
    assert installs("FILES a.py DESTINATION demo", components=("python",)) == []


def test_targets():
    found = Installs(TREE, "demo", "")
    found.targets = {
        "core": Target("", is_module=True),
        "moved": Target("", is_module=True),
        "shared": Target("lib"),
        "named": Target("lib"),
        "left": Target("lib"),
    }
    words = "TARGETS moved shared named EXPORT e RUNTIME DESTINATION bin LIBRARY DESTINATION x"
    found.add(words.split(" "), "")
    found.set_properties("named", {"PREFIX": "", "OUTPUT_NAME": "other"})
    assert list(found.modules()) == ["demo.core", "x.moved", "x.libshared", "x.other"]
