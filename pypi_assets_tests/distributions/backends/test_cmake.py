"""CMakeLists.txt: splitting into commands, conditions, and the modules that install() places."""

import pytest

from pypi_assets.distributions.backends import cmeel
from pypi_assets.distributions.backends.cmake_installs import BuildTarget, Installs
from pypi_assets.distributions.backends.cmake_text import expanded, read_commands, source_path, truth
from pypi_assets.distributions.members import paths_of
from pypi_assets.distributions.sdist_modules import find_sdist_modules
from pypi_assets_tests.distributions.backends.projects import files, modules_by, source_tree


def parsed(text):
    return [(command.name, [argument.text for argument in command.arguments]) for command in read_commands(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Set(A b c)", [("set", ["A", "b", "c"])]),
        ('set(A "b c" #d)\n e)', [("set", ["A", "b c", "e"])]),
        ("set(A [=[b ]] c]=] d)", [("set", ["A", "b ]] c", "d"])]),
        ("#[[ set(A b) ]] set(B c)", [("set", ["B", "c"])]),
        ("if((A) AND B)\nendif()", [("if", ["(", "A", ")", "AND", "B"]), ("endif", [])]),
        ('set(A b\\ c "d\\"e")', [("set", ["A", "b\\ c", 'd\\"e'])]),
        ("set(A b", []),
        (") ) set(A)", [("set", ["A"])]),
    ],
)
def test_read_commands_splits_arguments(text, expected):
    assert parsed(text) == expected


def test_blocks_have_ends_and_branches():
    commands = read_commands("if(A)\nforeach(x)\nendforeach()\nelseif(B)\nelse()\nendif()\nif(C)\n")
    assert (commands[0].end, commands[0].branches) == (5, [3, 4])
    assert commands[1].end == 2
    assert commands[6].end == 7


def test_known_variables_are_replaced():
    variables = {"A": "x", "NAME": "A", "LONG": "y" * 100}
    assert expanded("${A}/${B}/${${NAME}}", variables, 50) == "x/$<B>/x"
    assert expanded("${LONG}", variables, 50) == "y" * 50
    assert expanded("*\\.py", variables, 50) == "*.py"


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [
        ("a", "b/./c", "a/b/c"),
        ("a", "../b", "b"),
        ("a", "../../b", None),
        ("a", "<source>/b", "b"),
        ("a", "<binary>/b", None),
        ("a", "/usr/lib", None),
        ("a", "${UNKNOWN}/b", None),
    ],
)
def test_paths_in_sdist(folder, path, expected):
    assert source_path(folder, path) == expected


def test_conditions(subtests: pytest.Subtests):
    cases = [
        ("ON", True),
        ("off", False),
        ("YES_IT_IS", True),
        ("UNKNOWN", None),
        ("NOT UNKNOWN", None),
        ("UNKNOWN OR ON", True),
        ("UNKNOWN AND OFF", False),
        ("UNKNOWN AND ON", None),
        ("NOT (OFF OR ON)", False),
        ("NAME STREQUAL demo", True),
        ('"${NAME}" STREQUAL "other"', False),
        ("UNKNOWN STREQUAL UNKNOWN2", False),
        ("${UNKNOWN} STREQUAL demo", None),
        ("NAME MATCHES d.*", None),
        ("CMAKE_VERSION VERSION_LESS 3.15 OR ON", True),
        ("DEFINED NAME", True),
        ("DEFINED UNKNOWN", None),
        ("DEFINED ENV{HOME}", False),
        ("EXISTS here", True),
        ("NOT TARGET there", True),
        ("DOUBT", None),
        ("DOUBT STREQUAL x", None),
        ('"text"', False),
        ("", None),
        ("AND AND", None),
    ]
    for condition, expected in cases:
        with subtests.test(condition=condition):
            variables = {"YES_IT_IS": "1", "NAME": "demo", "DOUBT": "x"}
            arguments = read_commands(f"if({condition})")[0].arguments
            assert (
                truth(arguments, variables, {"DOUBT"}, lambda kind, name: (kind, name) == ("EXISTS", "here"))
                is expected
            )


def test_long_condition_is_not_evaluated():
    assert truth(read_commands("if(" + "ON OR " * 100 + "ON)")[0].arguments, {}, set(), lambda *_: None) is None


TREE = source_tree(files("a.py", "src/b.py", "src/sub/c.py", "src/tests/t.py", "src/d.txt", "src/e.pyi"))


def installs(command, folder="", **more):
    installed = Installs(TREE, **{"package": "demo", "inside": "", **more})
    installed.add(command.split(), folder)
    return sorted(paths_of(installed.files()))


def test_install_files_and_folders(subtests: pytest.Subtests):
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


def test_install_joins_source_and_target_folders():
    assert installs("FILES b.py DESTINATION x", "src", inside="demo") == ["demo/x/b.py"]
    assert installs("FILES b.py DESTINATION .", "src", inside="demo") == ["demo/b.py"]


def test_install_skips_other_components():
    command = "FILES a.py DESTINATION demo COMPONENT python"
    assert installs(command, components=("python",)) == ["demo/a.py"]
    assert installs(command, components=("other",)) == []
    assert installs("FILES a.py DESTINATION demo", components=("python",)) == []


def test_install_targets():
    installed = Installs(TREE, "demo", "")
    installed.targets = {
        "core": BuildTarget("", is_module=True),
        "moved": BuildTarget("", is_module=True),
        "shared": BuildTarget("lib"),
        "named": BuildTarget("lib"),
        "left": BuildTarget("lib"),
    }
    words = "TARGETS moved shared named EXPORT e RUNTIME DESTINATION bin LIBRARY DESTINATION x"
    installed.add(words.split(" "), "")
    installed.set_properties("named", {"PREFIX": "", "OUTPUT_NAME": "other"})
    assert list(installed.modules()) == ["demo.core", "x.moved", "x.libshared", "x.other"]


def test_cmeel_installs_nothing_into_site_packages():
    contents = files("demo/__init__.py", pyproject='[build-system]\nbuild-backend = "cmeel.build"\n')
    assert modules_by(cmeel.installed, contents) == ("cmeel prefix", [])
    modules = find_sdist_modules(source_tree(contents))
    assert (modules.names, modules.by, modules.grade) == ((), "cmeel prefix", "derived")
