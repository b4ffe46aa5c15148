"""How the text of a CMakeLists.txt is split, and its conditions."""

import pytest

from pypi_assets.distributions.backends.cmake_text import expanded, read_commands, source_path, truth


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
def test_commands_and_arguments(text, expected):
    assert parsed(text) == expected


def test_blocks_know_their_ends_and_branches():
    commands = read_commands("if(A)\nforeach(x)\nendforeach()\nelseif(B)\nelse()\nendif()\nif(C)\n")
    assert (commands[0].end, commands[0].branches) == (5, [3, 4])
    assert commands[1].end == 2
    assert commands[6].end == 7


def test_variables_are_replaced_as_far_as_they_are_known():
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
def test_paths_in_the_sdist(folder, path, expected):
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


def test_a_long_condition_is_not_evaluated():
    assert truth(read_commands("if(" + "ON OR " * 100 + "ON)")[0].arguments, {}, set(), lambda *_: None) is None
