"""Characters are classified by one version of Unicode, independent of the interpreter's version."""

import hashlib
import sys
import unicodedata

import pytest

from pypi_assets import characters
from pypi_assets.characters import (
    UNICODE_VERSION,
    case_folding,
    casefolded,
    identifier_test,
    is_digits,
    is_identifier,
    is_printable,
    lower,
    lowered,
    named_character,
    normalized_name,
    replace_unprintable,
)

DIGESTS = {
    "PRINTABLE": "14f05098e426fcecfa0cb2a3fb892f4e8104582632eae2f89924ca90e14d3463",
    "IDENTIFIER_STARTS": "4c9d47f0364fd8a55e6315b5fce4e3b8cad224d2ec1b05c3fa7c61b48216172c",
    "IDENTIFIER_PARTS": "6d272738454d76d81adc82e83cafb433a5d55173ed14af21b1d808fbd05c52e1",
}
"""Digests of the tables, which change only together with UNICODE_VERSION."""
WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
LINE_ENDS = "\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
ALL = [chr(code) for code in range(sys.maxunicode + 1)]
NEWER = ["\u200d", "\u30fb", "\U0001e030", "\U00010d50", "\U00031350"]
"""Characters that may be part of an identifier since Unicode 15.0, 15.1 or 16.0."""


@pytest.mark.parametrize("name", DIGESTS)
def test_tables_match_their_digests(name):
    assert hashlib.sha256(getattr(characters, name).encode()).hexdigest() == DIGESTS[name]


@pytest.mark.skipif(unicodedata.unidata_version != UNICODE_VERSION, reason="requires the Unicode version of the tables")
def test_tables_match_interpreter_with_same_unicode_version():
    assert [char for char in ALL if is_printable(char) != char.isprintable()] == []
    assert [char for char in ALL if is_identifier(char) != char.isidentifier()] == []
    assert [char for char in ALL if is_identifier(f"a{char}") != f"a{char}".isidentifier()] == []
    assert [char for char in ALL if casefolded(char) != char.casefold()] == []
    assert [char for char in ALL if lowered(char) != char.lower()] == []


def test_whitespace_and_line_ends_are_the_same_on_each_python():
    assert "".join(char for char in ALL if char.isspace()) == WHITESPACE
    assert "".join(char for char in ALL if len(f"a{char}b".splitlines()) == 2) == LINE_ENDS
    assert "".join(char for char in ALL if f"a{char}".split() == ["a"]) == WHITESPACE
    assert "".join(char for char in ALL if not char.strip()) == WHITESPACE


@pytest.mark.nightly
def test_case_folding_is_the_same_on_each_python():
    folded = "\0".join(casefolded(char) for char in ALL if not "\ud800" <= char <= "\udfff")
    assert hashlib.sha256(folded.encode()).hexdigest() == (
        "00b63aecaf3e90d9ff3e07a5f7351be21c7fded7852e72c762af2ced9fb4bda1"
    )


@pytest.mark.parametrize("char", NEWER)
def test_characters_of_newer_unicode_versions_are_unknown(char):
    assert not is_identifier(f"a{char}b")
    assert casefolded(char) == char
    assert lower(char) == char


def test_identifiers():
    names = ["a", "_1", "é", "变量", "a\u0301", "class"]
    others = ["", "1a", "a-b", "a\u200db", "a b", "a\n", "\u0301a", "a\u30fb", "a\U0001e030", "é\ud800"]
    assert [name for name in (*names, *others) if is_identifier(name)] == names
    for texts in (names, others, ["a", "b"], ["1", "a"]):
        test = identifier_test(*texts)
        assert [test(text) for text in texts] == [is_identifier(text) for text in texts]


def test_printable():
    assert is_printable("aé 变")
    assert not any(map(is_printable, ("a\n", "\x7f", "\x80", "\u200d", "\U00031350", "\ud800", "é\0")))
    assert replace_unprintable("a\u200db\n\U00031350é", "?") == "a?b??é"
    assert replace_unprintable("aé", "?") == "aé"


SMALL = "3c0c9a335f37602e9d48e4ad196961a22f7e9ca27bfdcb9b3c049152edb6a299"
"""Digest of the lowercase of all printable characters."""


@pytest.mark.nightly
def test_lowercase_is_the_same_on_each_python():
    letters = "".join(char + lowered(char) for char in ALL if lowered(char) != char)
    assert hashlib.sha256(letters.encode()).hexdigest() == SMALL
    assert lowered("\u212aELVIN \u0391\u03a3") == "kelvin \u03b1\u03c2"
    assert lowered("\u0391\u03a3\ufeff=\u0391\u03a3\n") == "\u0391\u03a3\ufeff=\u0391\u03a3\n".lower()


@pytest.mark.parametrize("char", ["\u1c89", "\ua7cb", "\U00010d50"])
def test_capital_letters_of_newer_unicode_versions_are_unchanged(char):
    assert lowered(f"A{char}B") == f"a{char}b"


def test_lower_changes_only_ascii_letters():
    assert lower("ABC") == "abc"
    assert lower("ÄB\u212a\u0130\U00010d50") == "Äb\u212a\u0130\U00010d50"
    assert normalized_name("A__b.-C") == "a-b-c"
    assert normalized_name("Ä_B") == "Ä-b"
    assert casefolded("ÄSS") == casefolded("ä\xdf") == "äss"
    for texts in (["Abc", "D"], ["Abc", "ÄSS"], []):
        fold = case_folding(*texts)
        assert [fold(text) for text in texts] == [casefolded(text) for text in texts]


def test_is_digits_accepts_only_ascii_digits():
    assert is_digits("019")
    assert not any(map(is_digits, ("", "1.0", "\u0661", "\xb2", "-1", "1 ")))


def test_named_character_knows_only_names_of_all_pythons():
    assert named_character("SNOWMAN") == "\u2603"
    assert named_character("snowman") == "\u2603"
    assert named_character("HANGUL SYLLABLE GA") == "\uac00"
    for name in ("no such", "ZERO WIDTH JOINER", "LF", "CYRILLIC MODIFIER LETTER SMALL A", "", "SNOWMAN\xe9"):
        assert named_character(name) is None, name
    assert characters.UNICODE_VERSION == "14.0.0"
