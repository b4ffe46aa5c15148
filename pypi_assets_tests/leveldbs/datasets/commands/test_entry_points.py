"""The name of a command is the text before the first `=` of its line, whatever follows."""

import pytest

from pypi_assets.leveldbs.datasets.commands.entry_points import command_names


def test_command_name_ends_at_the_first_equals_sign(subtests: pytest.Subtests) -> None:
    cases = [
        ([], []),
        (["http = httpie.__main__:main"], ["http"]),
        (["http=httpie.__main__:main", "  http  =other:main"], ["http"]),
        (["b = x:y", "A = x:y", "a = x:y"], ["A", "a", "b"]),
        (["demo = demo.cli:main [extra, other]"], ["demo"]),
        (["demo [extra] = demo:main"], ["demo [extra]"]),
        (["two words = x:y", "dash-ed.py = x:y", "größe = x:y"], ["dash-ed.py", "größe", "two words"]),
        (["one = two = three"], ["one"]),
        (["no attribute = demo", "nothing ="], ["no attribute", "nothing"]),
        (["demo"], ["demo"]),
        (["= demo:main", " = demo:main", "", "   ", "="], []),
        (["tab\t=\tx:y\n"], ["tab"]),
    ]
    for lines, names in cases:
        with subtests.test(lines=lines):
            assert command_names(lines) == names
            assert command_names(iter([*lines, *lines])) == names
