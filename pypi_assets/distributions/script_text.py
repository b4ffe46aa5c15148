"""Decode a setup.py and rewrite its text so that each supported version of Python parses it in the same way.

Syntax that the oldest version rejects is rejected: f-strings of PEP 701, type parameters, `except A, B:`, template
strings. Nesting and the length of numbers have fixed limits, well below the limits of all interpreters. f-strings,
which each version parses differently, become templates: `f"a{b}"` is read as `("%s%s"%("a",(b)))`.
"""

import codecs
import re
from dataclasses import dataclass, field

from pypi_assets.characters import is_identifier, lower, named_character
from pypi_assets.distributions.setup_state import TooLongError

_LITERAL = re.compile(r"(?:[^{}]++|\{\{|\}\})++")
_SPEC = re.compile(r"[^{}]+")
_STRING = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'[^']*'|\"[^\"]*\"", re.DOTALL)
_UNSPECIAL = re.compile(r"[^{}()\[\]'\"!:=<>\\#]+|[!=<>]=|[<>]")
_CONVERSION = re.compile(r"!([sra])(?=[}:])")
_CLOSING_BRACKETS = {"(": ")", "[": "]", "{": "}"}


class NoFStringError(Exception):
    """Python 3.11 rejects the f-string."""


@dataclass(frozen=True, slots=True)
class Field:
    """The content of braces: its expression, and expressions in its format. `is_plain` means formatted as by str()."""

    expressions: tuple[str, ...]
    is_plain: bool


def split_f_string(content: str) -> list[str | Field]:
    """Return the texts and fields of an f-string without its quotes. Backslashes stay as written. Raise NoFStringError.

    >>> split_f_string("a{b}")
    ['a', Field(expressions=('b',), is_plain=True)]
    """
    pieces: list[str | Field] = []
    at = 0
    while at < len(content):
        if literal := _LITERAL.match(content, at):
            pieces.append(literal[0].replace("{{", "{").replace("}}", "}"))
            at = literal.end()
        elif content[at] == "{":
            each, at = _field(content, at + 1)
            pieces.append(each)
        else:
            raise NoFStringError
    return pieces


def _field(content: str, at: int, depth: int = 0) -> tuple[Field, int]:
    """Return the field whose brace opened before `at`, and the position of its end."""
    end = _expression_end(content, at)
    expressions = [content[at:end]]
    if not expressions[0].strip() or "\\" in expressions[0] or depth > 1:
        raise NoFStringError
    is_plain = True
    if content.startswith("=", end):  # `{name=}` shows the name, too
        is_plain = False
        end += 1
        while content[end : end + 1].isspace():
            end += 1
    if conversion := _CONVERSION.match(content, end):
        is_plain &= conversion[1] == "s"
        end = conversion.end()
    if content.startswith(":", end):
        is_plain = False
        end += 1
        while not content.startswith("}", end):
            if content.startswith("{", end):
                inner, end = _field(content, end + 1, depth + 1)
                expressions += inner.expressions
            elif spec := _SPEC.match(content, end):
                end = spec.end()
            else:
                raise NoFStringError
    if not content.startswith("}", end):
        raise NoFStringError
    return Field(tuple(expressions), is_plain), end + 1


def _expression_end(content: str, at: int) -> int:
    """Return the end of the expression at `at`: before a `}`, `!`, `:` or `=` outside of brackets and strings."""
    closing: list[str] = []
    while at < len(content):
        char = content[at]
        if skipped := _UNSPECIAL.match(content, at) or _STRING.match(content, at):
            at = skipped.end()
            continue
        if char in _CLOSING_BRACKETS:
            closing.append(_CLOSING_BRACKETS[char])
        elif closing and char == closing[-1]:
            closing.pop()
        elif not closing and char in "}!:=":
            return at
        elif char not in "!:=":
            break  # an unclosed quote, a bracket that closes nothing, a backslash or a comment
        at += 1
    raise NoFStringError


MAX_BRACKETS = 60
"""The maximum nesting of brackets, including those of expressions in f-strings."""
MAX_OPERATORS = 400
"""The maximum number of operators and brackets in one expression, a limit for the depth of its tree.

Interpreters fail from 800 on.
"""
MAX_NESTING_WORDS = 100
"""The maximum number of `elif` and `lambda` in a script. Each may be nested in the one before."""
MAX_NUMBER_LENGTH = 600
"""Interpreters can be set to reject numbers from 640 digits on."""

_COOKIE = re.compile(rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))??[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_KNOWN_ENCODINGS = (
    "ascii us-ascii iso-8859-2 iso-8859-15 cp1250 cp1251 cp1252 windows-1251 windows-1252 koi8-r"
    " gbk gb2312 big5 euc-kr euc-jp shift-jis"
)
ENCODINGS = frozenset(_KNOWN_ENCODINGS.split())
"""Encodings that a cookie may name in addition to UTF-8 and Latin-1. Their tables do not change."""

_SINGLE = r"'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
_TRIPLE = r"'''[^'\\]*+(?:'{0,2}+(?:\\.|[^'\\])[^'\\]*+)*+'''"
_DIGITS = r"[0-9](?:_?[0-9])*+"
_TOKEN = re.compile(
    rf"""(?:[ \t\f]++|\#[^\n]*+)*+
    (?:(?P<operator>(?!<>|\.[0-9])[^\s'"\\A-Za-z0-9_\x80-\U0010ffff])
    |(?P<string>(?P<prefix>[rR][bBfF]?|[bBfF][rR]?|[uU])?
        (?P<quoted>{_TRIPLE}|{_TRIPLE.replace("'", '"')}|{_SINGLE}|{_SINGLE.replace("'", '"')}))
    |(?P<template>(?:[tT][rR]?|[rR][tT])['"])
    |(?P<name>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*+)
    |(?P<newline>\n)
    |(?P<number>0[xX](?:_?[0-9a-fA-F])++|0[bB](?:_?[01])++|0[oO](?:_?[0-7])++
        |(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?[jJ]?)
    |(?P<continuation>\\\n)
    |(?P<end>\Z))
    """,
    re.DOTALL | re.VERBOSE,
)
_AFTER_NUMBER = re.compile(r"(?:and|else|for|if|in|is|not|or|)(?![A-Za-z0-9_\x80-\U0010ffff])")
_LATIN_1 = re.compile(r"(?:latin-?1|iso-?8859-1|iso-latin-1|l1)(?![0-9])")
_NAMED = re.compile(r"\\(?:N(?:\{([^}]{0,200}+)\})?|.)", re.DOTALL)
_WORDS = (
    "False None True and as assert async await break class continue def del elif else except finally for from global"
    " if import in is lambda nonlocal not or pass raise return try while with yield"
)
_KEYWORDS = frozenset(_WORDS.split())
"""The keywords of Python 3.11 and all later versions."""
_NESTING = frozenset({"elif", "lambda"})
_CLOSING = frozenset(")]}")
_OPENING = {"(": ")", "[": "]", "{": "}"}


class NoScriptError(Exception):
    """At least one supported version of Python cannot parse the text."""


def decode_script(content: bytes) -> str:
    """Return the text of a setup.py with `\\n` line ends, decoded by its byte order mark or its cookie (PEP 263).

    Without them it is UTF-8, or Latin-1 if it is not valid UTF-8. Unknown encodings are ignored.
    """
    encoding = "utf-8"
    if not content.startswith(codecs.BOM_UTF8) and (cookie := _COOKIE.match(content)):
        named = lower(cookie[1].decode("ascii")).replace("_", "-")
        if named in ENCODINGS:
            encoding = named
        elif _LATIN_1.match(named):
            encoding = "latin-1"
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def common_script(text: str) -> str:
    """Return `text`, a result of `decode_script`, rewritten. Raise NoScriptError and TooLongError."""
    return _Rewriting().rewritten(f"{text}\n")


@dataclass(slots=True)
class _Rewriting:
    """The pending edits of a script, and counters that limit its nesting.

    `edits` are places in the text, in order, with their replacements. `operators` counts the operators of the current
    expression. `outer` has the closing bracket of each open one and the count when it opened. `strings` are adjacent
    string literals, and `has_f_string` is True if one of them is an f-string.
    """

    edits: list[tuple[int, int, str]] = field(default_factory=list)
    operators: int = 0
    outer: list[tuple[str, int]] = field(default_factory=list)
    strings: list[re.Match[str]] = field(default_factory=list)
    has_f_string: bool = False
    nesting_words: int = 0
    is_in_except: bool = False

    def rewritten(self, text: str) -> str:
        kind = None
        previous, last = "", "\n"  # the two previous tokens
        for token in iter(_TOKEN.scanner(text).match, None):  # type: ignore[attr-defined]
            kind = token.lastgroup
            value = token[kind]
            if kind == "string":
                self.strings.append(token)
                if token["prefix"] or "\\N" in value:
                    self.add_unusual_string(token)
                value = "'"
            elif kind == "operator":
                if self.strings:
                    self.end_strings()
                if value == "[" and previous in {"class", "def"}:  # type parameters
                    raise NoScriptError
                self.add_operator(value)
            elif kind == "newline" and self.outer:
                continue
            elif kind == "continuation":
                if last == "\n":  # versions differ in the indentation of a line that begins with its continuation
                    raise NoScriptError
                continue
            else:
                self.end_strings()
                if kind == "name":
                    self.add_name(value, last)
                elif kind == "newline":
                    self.operators = 0
                    self.is_in_except = False
                elif kind == "number":
                    self.add_number(value, text, token.end())
                else:
                    break
            previous, last = last, value
        if kind != "end":
            raise NoScriptError
        return self.edited(text)

    def edited(self, text: str) -> str:
        if not self.edits:
            return text
        pieces = []
        at = 0
        for start, end, replacement in self.edits:
            pieces += [text[at:start], replacement]
            at = end
        return "".join((*pieces, text[at:]))

    def add_number(self, number: str, text: str, end: int) -> None:
        if len(number) > MAX_NUMBER_LENGTH or not (following := _AFTER_NUMBER.match(text, end)):
            raise NoScriptError
        if following[0]:
            self.edits.append((end, end, " "))  # `1if x` is deprecated and may become an error

    def add_operator(self, operator: str) -> None:
        if operator in _OPENING:
            self.outer.append((_OPENING[operator], self.operators))
            self.check_brackets()
        elif operator in _CLOSING:
            if not self.outer or self.outer[-1][0] != operator:
                raise NoScriptError
            self.operators = self.outer.pop()[1]
        elif operator == "," or operator == ";":
            if self.is_in_except and not self.outer:
                raise NoScriptError
            self.operators = self.outer[-1][1] + 1 if self.outer else 0
        elif operator == ":" and not self.outer:
            self.is_in_except = False
        self.count_operator()

    def add_name(self, name: str, last: str) -> None:
        if name in _KEYWORDS:
            self.count_operator()
            if name in _NESTING:
                self.nesting_words += 1
                if self.nesting_words > MAX_NESTING_WORDS:
                    raise TooLongError
                if self.is_in_except:
                    raise NoScriptError
            self.is_in_except |= name == "except"
        elif last == "type" or not is_identifier(name):
            raise NoScriptError

    def count_operator(self) -> None:
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise TooLongError

    def check_brackets(self) -> None:
        if len(self.outer) > MAX_BRACKETS:
            raise TooLongError

    def add_unusual_string(self, token: re.Match[str]) -> None:
        """Add a string with a prefix, or a string that may use character names."""
        prefix = lower(token["prefix"] or "")
        is_f_string = "f" in prefix
        names_characters = "\\N" in token["quoted"] and "r" not in prefix and "b" not in prefix
        if names_characters and (is_f_string or not _has_known_names(token["quoted"])):
            raise NoScriptError
        self.has_f_string |= is_f_string

    def end_strings(self) -> None:
        """Rewrite the adjacent strings if any of them is an f-string."""
        if self.has_f_string:
            parts = [part for token in self.strings for part in self.parts_of(token)]
            template = f'("{"%s" * len(parts)}"%({"".join([f"{part}," for part in parts])}))'
            self.edits.append((self.strings[0].start("string"), self.strings[-1].end(), template))
            self.has_f_string = False
        self.strings.clear()

    def parts_of(self, token: re.Match[str]) -> list[str]:
        """Return the expressions that make up a string. An expression in brackets has no known text."""
        prefix, quoted = token["prefix"] or "", token["quoted"]
        if "f" not in lower(prefix):
            return [token["string"]]
        quote = quoted[:3] if quoted[:3] in {"'''", '"""'} else quoted[0]
        try:
            pieces = split_f_string(quoted[len(quote) : -len(quote)])
        except NoFStringError:
            raise NoScriptError from None
        raw = "r" if "r" in lower(prefix) else ""
        return [self.expression(each) if isinstance(each, Field) else _literal(raw, quote, each) for each in pieces]

    def expression(self, found: Field) -> str:
        """Return the content of a field, rewritten like the rest of the script."""
        expressions = []
        for text in found.expressions:
            inside = _Rewriting(outer=[*self.outer, (")", self.operators)], operators=self.operators + 1)
            inside.nesting_words = self.nesting_words
            inside.check_brackets()
            expressions.append(f"({inside.rewritten(text)})")
            if len(inside.outer) != len(self.outer) + 1:
                raise NoScriptError
            self.nesting_words = inside.nesting_words
        return expressions[0] if found.is_plain else f"[{','.join(expressions)}]"


def _has_known_names(text: str) -> bool:
    """Check whether each `\\N{...}` in `text` is a character name that all versions of Python know."""
    names = [match[1] for match in _NAMED.finditer(text) if match[0][1] == "N"]
    return all(name and named_character(name) for name in names)


def _literal(raw: str, quote: str, text: str) -> str:
    """Return `text`, a part of a string between `quote`, as a string literal, or `[]` if it needs more than quotes."""
    before = text.removesuffix(quote[0])
    is_escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
    if before == text and is_escaped:
        return "[]"
    if before != text and not is_escaped:
        if raw:
            return "[]"
        text = f"{before}\\{quote[0]}"
    return f"{raw}{quote}{text}{quote}"
