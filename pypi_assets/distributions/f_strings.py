"""Splits the text of an f-string as Python 3.11 does: before PEP 701, which let an expression hold quotes of the string
around it, backslashes and comments."""

import re
from dataclasses import dataclass

_LITERAL = re.compile(r"(?:[^{}]++|\{\{|\}\})++")
_SPEC = re.compile(r"[^{}]+")
_STRING = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'[^']*'|\"[^\"]*\"", re.DOTALL)
_UNSPECIAL = re.compile(r"[^{}()\[\]'\"!:=<>\\#]+|[!=<>]=|[<>]")
_CONVERSION = re.compile(r"!([sra])(?=[}:])")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class NoFStringError(Exception):
    """Python 3.11 refuses the f-string."""


@dataclass(frozen=True, slots=True)
class Field:
    """What is in braces: its expression, and those in its format. `is_plain` where it is formatted as str() does it."""

    expressions: tuple[str, ...]
    is_plain: bool


def split_f_string(content: str) -> list[str | Field]:
    """The texts and fields of an f-string's `content`, without quotes. Backslashes stay as written.

    Raises NoFStringError.

    >>> split_f_string("a{b}")
    ['a', Field(expressions=('b',), is_plain=True)]
    """
    found: list[str | Field] = []
    at = 0
    while at < len(content):
        if literal := _LITERAL.match(content, at):
            found.append(literal[0].replace("{{", "{").replace("}}", "}"))
            at = literal.end()
        elif content[at] == "{":
            each, at = _field(content, at + 1)
            found.append(each)
        else:
            raise NoFStringError
    return found


def _field(content: str, at: int, depth: int = 0) -> tuple[Field, int]:
    """The field whose brace opened before `at`, and where it ends."""
    end = _expression_end(content, at)
    expressions = [content[at:end]]
    if not expressions[0].strip() or "\\" in expressions[0] or depth > 1:
        raise NoFStringError
    is_plain = True
    if content.startswith("=", end):  # of `{name=}`, which shows the name too
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
    """Where the expression that starts at `at` ends: before a `}`, `!`, `:` or `=` outside of brackets and strings."""
    closing: list[str] = []
    while at < len(content):
        char = content[at]
        if found := _UNSPECIAL.match(content, at) or _STRING.match(content, at):
            at = found.end()
            continue
        if char in _CLOSING:
            closing.append(_CLOSING[char])
        elif closing and char == closing[-1]:
            closing.pop()
        elif not closing and char in "}!:=":
            return at
        elif char not in "!:=":
            break  # a quote without its other one, a bracket that closes nothing, a backslash or a comment
        at += 1
    raise NoFStringError
