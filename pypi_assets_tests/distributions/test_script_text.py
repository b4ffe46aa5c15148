"""A setup.py is decoded and rewritten so that every Python parses it alike."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.script_text import (
    MAX_BRACKETS,
    MAX_NESTING_WORDS,
    MAX_NUMBER_LENGTH,
    MAX_OPERATORS,
    Field,
    NoFStringError,
    NoScriptError,
    common_script,
    decode_script,
    split_f_string,
)
from pypi_assets.distributions.setup_state import TooLongError
from pypi_assets_tests.examples import examples


def plain(text: str) -> Field:
    return Field((text,), is_plain=True)


def formatted(*texts: str) -> Field:
    return Field(texts, is_plain=False)


def test_f_string_parts(subtests: pytest.Subtests):
    cases = [
        ("", []),
        ("a", ["a"]),
        ("a{b}c", ["a", plain("b"), "c"]),
        ("{{a}}{b}", ["{a}", plain("b")]),
        ("{a!s}", [plain("a")]),
        ("{a!r}", [formatted("a")]),
        ("{a=}", [formatted("a")]),
        ("{a = !r:>3}", [formatted("a ")]),
        ("{a:>3}", [formatted("a")]),
        ("{a:{b}.{c}}", [formatted("a", "b", "c")]),
        ("{a['b']}", [plain("a['b']")]),
        ("{'}'}", [plain("'}'")]),
        ("{f(a, {b: c})}", [plain("f(a, {b: c})")]),
        ("{a != b}", [plain("a != b")]),
        ("{a == b <= c}", [plain("a == b <= c")]),
        ("{(lambda x: 1)}", [plain("(lambda x: 1)")]),
        ("{a:=3}", [formatted("a")]),
        ('{"""a"""}', [plain('"""a"""')]),
    ]
    for content, parts in cases:
        with subtests.test(content=content):
            assert split_f_string(content) == parts


def test_texts_that_are_not_f_strings(subtests: pytest.Subtests):
    cases = [
        "{",
        "}",
        "a}",
        "{}",
        "{ }",
        "{a",
        "{a!}",
        "{a!x}",
        "{a!r",
        "{a:",
        "{a:{b:{c:{d}}}}",
        "{a\\n}",
        "{a#}",
        "{(a}",
        "{a)}",
        "{'a}",
    ]
    for content in cases:
        with subtests.test(content=content), pytest.raises(NoFStringError):
            split_f_string(content)


@given(st.text("ab{}()[]:!=r's,. ", max_size=12))
@settings(max_examples=examples(1000))
def test_f_string_of_this_python_is_split(content):
    try:
        tree = ast.parse(f'f"{content}"', mode="eval").body
    except SyntaxError:
        return
    try:
        parts = split_f_string(content)
    except NoFStringError:
        return  # rejected by Python 3.11, accepted by later versions
    if isinstance(tree, ast.JoinedStr):
        fields = [each for each in parts if isinstance(each, Field)]
        assert len(fields) == sum(isinstance(value, ast.FormattedValue) for value in tree.values)


def test_decoding(subtests: pytest.Subtests):
    cases = [
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\xef\xbb\xbf\xc3\xa9", "é"),
        (b"\xc3\xa9", "é"),
        (b"\xe9", "é"),
        (b"# coding: latin-1\n\xc3\xa9", "# coding: latin-1\n\xc3\xa9"),
        (b"#!/usr/bin/python\n# -*- coding: cp1251 -*-\n\xe9", "#!/usr/bin/python\n# -*- coding: cp1251 -*-\n\u0439"),
        (b"# coding=UTF_8\n\xc3\xa9", "# coding=UTF_8\né"),
        (b"# coding: rot13\nfrghc", "# coding: rot13\nfrghc"),
        (b"# coding: cp1251\n# coding: latin-1\n\xe9", "# coding: cp1251\n# coding: latin-1\n\u0439"),
        (b"a = 1\n# coding: cp1251\n\xe9", "a = 1\n# coding: cp1251\né"),
        (b"# coding: gbk\n\xff", "# coding: gbk\n\xff"),
    ]
    for content, text in cases:
        with subtests.test(content=content):
            assert decode_script(content) == text


def test_portable_scripts_are_unchanged(subtests: pytest.Subtests):
    cases = [
        "",
        "a = 'b' \"c\" '''d\n''' # e'",
        "x = u'a' + R'\\N{x}'; y = rb'\\a' b\"\" + rb'\\N'",
        "if a: b = [1, 0x1f, 1_000.5e-3j, .5, 1.]",
        "a = b \\\n  + c",
        "变量 = '\U00031350\u200d'",
        "type = 1; type(type); print(type in a, type if b else c)",
        "from a import type as b",
        "try:\n  pass\nexcept (A, B) as c:\n  pass",
        "match a:\n  case [b, c]: pass",
        "with (a as b, c as d): pass",
        "a = '\\N{SNOWMAN}\\\\N{none}'",
    ]
    for text in cases:
        with subtests.test(text=text):
            assert common_script(text) == f"{text}\n"
            ast.parse(text)


def test_rewritten_scripts_mean_the_same(subtests: pytest.Subtests):
    cases = [
        ("f'a'", "a"),
        ("f'a{b}c'", "aBc"),
        ("f'{b}' 'c' f\"{b!s}\"", "BcB"),
        ("('a' # f'\n  f'{b}'\n\n  'c')", "aBc"),
        ("'a' \\\n f'{b}'", "aB"),
        ("f'{{{b}}}'", "{B}"),
        ("f'{f\"{b}c\"}d'", "Bcd"),
        ("f'''{\nb}'''", "B"),
        ("f'''a\"{b}\"'''", 'a"B"'),
        ("f'''a\\'{b}'''", "a'B"),
        ("fR'\\d{b}'", "\\dB"),
        ("f'\\t{b}'", "\tB"),
        ("f'{d[\"k\"]}'", "V"),
        ("f'{b if b else d}'", "B"),
        ("[0, 2if b else 3]", [0, 2]),
        ("0x1for x", 31),
    ]
    for text, meaning in cases:
        with subtests.test(text=text):
            rewritten = common_script(f"result = {text}")
            assert "f'" not in rewritten.partition("#")[0]
            names = {"b": "B", "d": {"k": "V"}, "x": 0}
            exec(rewritten, names)
            assert names["result"] == meaning


@pytest.mark.parametrize(
    "text", ["f'{b!r}'", "f'{b:>3}'", "f'{b=}'", "f'{b:{d}}'", "f'\\{b}'", "rf'\\{b}'", "fr'''\"{b}'''"]
)
def test_formatted_text_is_not_a_literal(text):
    tree = ast.parse(common_script(f"x = {text}")).body[0].value
    assert isinstance(tree, ast.BinOp)
    assert any(isinstance(node, ast.List) for node in tree.right.elts) or "'''" in text


def test_scripts_rejected_by_some_python_are_rejected(subtests: pytest.Subtests):
    cases = [
        "type A = int",
        "if a: type A = int",
        "type match = int",
        "def f[T](x): pass",
        "class A[T]: pass",
        "try:\n  pass\nexcept A, B:\n  pass",
        "try:\n  pass\nexcept lambda: A:\n  pass",
        "t'a'",
        'T"a"',
        "rt'a'",
        "tR'''a'''",
        "f'{\"\\n\"}'",
        "f'{'a'}'",
        "f'{a#}'",
        "f'{a'",
        "f'a}'",
        "f'\\N{SNOWMAN}'",
        "'\\N{no such}'",
        "'\\N{CYRILLIC MODIFIER LETTER SMALL A}'",
        "'\\N'",
        "a\u200db = 1",
        "a\u30fb = 1",
        "\U0001e030 = 1",
        "a <> b",
        "1a",
        "1ifx",
        "1_",
        "0777L",
        "if a:\n\\\n  b",
        "\\\na",
        "a = 'b",
        "a = '''b",
        "(]",
        "(a",
        "a)",
        "a \\ b",
        "a\x0b",
        "9" * (MAX_NUMBER_LENGTH + 1),
    ]
    for text in cases:
        with subtests.test(text=text), pytest.raises((NoScriptError, SyntaxError)):
            ast.parse(common_script(text))


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_BRACKETS + 1),
        "-" * (MAX_OPERATORS + 1) + "1",
        "a" + ".a" * (MAX_OPERATORS + 1),
        "a if b else " * MAX_OPERATORS + "c",
        "not " * (MAX_OPERATORS + 1) + "c",
        "a" + "()" * (MAX_OPERATORS + 1),
        "x = " + "lambda a, b: " * (MAX_NESTING_WORDS + 1) + "1",
        "if a: pass\n" + "elif a: pass\n" * (MAX_NESTING_WORDS + 1),
        "f'{" + "(" * MAX_BRACKETS + "a" + ")" * MAX_BRACKETS + "}'",
    ],
)
def test_too_deep_nesting_is_rejected(text):
    with pytest.raises(TooLongError):
        common_script(text)


def test_deepest_allowed_nesting_is_parsed(subtests: pytest.Subtests):
    cases = [
        "(" * MAX_BRACKETS + "1" + ")" * MAX_BRACKETS,
        "{1: [f(a=" * (MAX_BRACKETS // 3) + "1" + ")]}" * (MAX_BRACKETS // 3),
        "".join(f"{' ' * depth}if a:\n" for depth in range(99))
        + f"{' ' * 99}x = "
        + "not " * (MAX_OPERATORS - 1)
        + "a",
        "".join(f"{' ' * depth}try:\n" for depth in range(99))
        + f"{' ' * 99}x = "
        + "(" * MAX_BRACKETS
        + ")" * MAX_BRACKETS
        + "\n"
        + "".join(f"{' ' * depth}finally: pass\n" for depth in reversed(range(99))),
        "x = " + "-a**" * (MAX_OPERATORS // 4) + "1",
        "x = " + "a if b else " * (MAX_OPERATORS // 2 - 1) + "c",
        "x = " + "lambda a, b: " * MAX_NESTING_WORDS + "1",
        "if a: pass\n" + "elif a: pass\n" * MAX_NESTING_WORDS,
        "'a' " * 5000,
        "x = [" + "1, " * 20_000 + "]",
        "a = 1\n" * 10_000,
    ]
    for text in cases:
        with subtests.test(text=text):
            ast.parse(common_script(text))


PIECES = (
    *(
        "f'",
        "'",
        '"',
        "'''",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "a",
        " ",
        "\n",
        "\\\n",
        "\\",
        "\\N{",
        "x}",
        "1",
        "if",
        "type",
    ),
    *("except", ",", ":", "lambda", "def f", "t'", "rb'", "!r", "=", "#", "é", "\u200d", "\x0c", "\t", ";", "0x", "_"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@settings(max_examples=examples(2000))
def test_any_text_is_parsed_or_rejected(text):
    try:
        rewritten = common_script(text)
    except (NoScriptError, TooLongError):
        return
    try:
        before, after = ast.parse(text), ast.parse(rewritten)
    except (SyntaxError, ValueError):
        return
    if rewritten == f"{text}\n":
        assert ast.dump(before) == ast.dump(after)
