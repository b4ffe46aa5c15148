"""Split a CMakeLists.txt into commands with arguments, and evaluate conditions.

The meaning of commands does not belong here. Invalid text leads to fewer commands, not to an error.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pypi_assets.characters import lower
from pypi_assets.distributions.source_tree import clean_path

_TOKEN = re.compile(
    r"\#?+\[(?P<level>={0,9}+)\["
    r"|(?P<comment>\#[^\n]*+)"
    r"|\"(?P<quoted>(?:[^\"\\]++|\\.)*+)(?:\"|\\?\Z)"
    r"|(?P<mark>[()])"
    r"|(?P<word>(?:[^\s()#\"\\]++|\\.)++)",
    re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{([\w.+/-]++)\}", re.ASCII)
_ENDS = {"endif": "if", "endforeach": "foreach", "endfunction": "function", "endmacro": "macro", "endwhile": "while"}
_OPENERS = frozenset(_ENDS.values())
MAX_CONDITION = 100
"""The maximum number of words in a condition. Longer conditions are unknown."""
_TRUE = frozenset({"1", "on", "yes", "true", "y"})
_FALSE = frozenset({"0", "off", "no", "false", "n", "ignore", "notfound", ""})


class Argument(NamedTuple):
    """One argument of a command.

    Variables in a `raw` argument are not replaced. An argument that is not `quoted` is split at semicolons.
    """

    text: str
    quoted: bool = False
    raw: bool = False


@dataclass(slots=True)
class Command:
    """A command with its name in lower case.

    `end` is the index of the command that ends its block. `branches` are the indices where the branches of an `if`
    begin.
    """

    name: str
    arguments: list[Argument]
    end: int = 0
    branches: list[int] = field(default_factory=list)


def read_commands(text: str) -> list[Command]:
    """Return the commands of `text`, including those inside of blocks."""
    commands: list[Command] = []
    word, depth = "", 0
    arguments: list[Argument] = []
    for argument, is_mark in _tokens(text):
        if is_mark and argument.text == "(":
            depth += 1
            if depth > 1:
                arguments.append(argument)
        elif is_mark:
            depth = max(depth - 1, 0)
            if depth:
                arguments.append(argument)
            elif word:
                commands.append(Command(lower(word), arguments))
                word, arguments = "", []
        elif depth:
            arguments.append(argument)
        else:
            word = argument.text
    _join_blocks(commands)
    return commands


def _tokens(text: str) -> Iterator[tuple[Argument, bool]]:
    """Yield each argument or bracket outside of comments, and whether it is a bracket of a command."""
    at = 0
    unclosed: set[str] = set()
    while match := _TOKEN.search(text, at):
        at = match.end()
        kind = match.lastgroup
        if kind == "word":
            yield Argument(match["word"]), False
        elif kind == "mark":
            yield Argument(match["mark"]), True
        elif kind == "quoted":
            yield Argument(match["quoted"], quoted=True), False
        elif kind == "level" and (level := match["level"]) not in unclosed:
            end = text.find(f"]{level}]", at)
            if end < 0:
                unclosed.add(level)
                continue
            if text[match.start()] != "#":
                yield Argument(text[at:end], quoted=True, raw=True), False
            at = end + len(level) + 2


def _join_blocks(commands: list[Command]) -> None:
    """Set the `end` of each command that opens a block. An unclosed block ends with the text."""
    open_at: list[int] = []
    for index, command in enumerate(commands):
        if command.name in _OPENERS:
            command.end = len(commands)
            open_at.append(index)
        elif command.name in {"elseif", "else"} and open_at and commands[open_at[-1]].name == "if":
            commands[open_at[-1]].branches.append(index)
        elif command.name in _ENDS and open_at and commands[open_at[-1]].name == _ENDS[command.name]:
            commands[open_at.pop()].end = index


def expanded(text: str, variables: Mapping[str, str], most: int) -> str:
    """Return `text` with its variables replaced, cut to `most` characters. An unknown variable becomes `$<NAME>`."""
    for _ in range(3):  # names of variables may contain variables: ${${NAME}_DIR}
        if "${" not in text:
            break
        pieces, length, at = [], 0, 0
        for name in _VARIABLE.finditer(text):
            pieces += [text[at : name.start()], variables.get(name[1], f"$<{name[1]}>")]
            length += len(pieces[-2]) + len(pieces[-1])
            at = name.end()
            if length > most:
                break
        if not pieces:
            break
        text = "".join([*pieces, text[at:]])[:most]
    return text.replace("\\", "") if "\\" in text else text


def source_path(folder: str, path: str) -> str | None:
    """Return the path in the sdist that `path` refers to from `folder`, or None if it lies outside."""
    if path.startswith("<source>"):
        path = path.removeprefix("<source>")
    elif path[:1] in {"<", "/", "$"}:
        return None
    else:
        path = f"{folder}/{path}"
    parts: list[str] = []
    for part in clean_path(path).split("/"):
        if part != "..":
            parts.append(part)
        elif not parts:
            return None
        else:
            parts.pop()
    return "/".join(parts)


def truth(
    arguments: list[Argument],
    variables: Mapping[str, str],
    doubtful: Container[str],
    exists: Callable[[str, str], bool | None],
) -> bool | None:
    """Return whether a condition holds, or None if that is unknown.

    It is unknown, for example, if it uses one of the `doubtful` variables. `exists` is called with EXISTS or TARGET and
    the name to test.
    """
    if len(arguments) > MAX_CONDITION:
        return None
    return _CMakeCondition(arguments, variables, doubtful, exists).disjunction()


@dataclass(slots=True)
class _CMakeCondition:
    """A parser of a condition that continues at `at`. Each rule of the grammar is a method."""

    arguments: list[Argument]
    variables: Mapping[str, str]
    doubtful: Container[str]
    exists: Callable[[str, str], bool | None]
    at: int = 0

    def disjunction(self) -> bool | None:
        value = self._conjunction()
        while self._takes("OR"):
            other = self._conjunction()
            value = True if value or other else None if None in (value, other) else False
        return value

    def _conjunction(self) -> bool | None:
        value = self._negation()
        while self._takes("AND"):
            other = self._negation()
            value = False if False in (value, other) else None if None in (value, other) else True
        return value

    def _negation(self) -> bool | None:
        if self._takes("NOT"):
            value = self._negation()
            return None if value is None else not value
        if self._takes("("):
            value = self.disjunction()
            self._takes(")")
            return value
        return self._test()

    def _test(self) -> bool | None:
        if self.at >= len(self.arguments):
            return None
        first = self._next()
        if not first.quoted and first.text == "DEFINED" and self.at < len(self.arguments):
            name = self._next().text
            return True if name in self.variables else False if name.startswith("ENV{") else None
        if not first.quoted and first.text in {"EXISTS", "TARGET"} and self.at < len(self.arguments):
            return self.exists(first.text, expanded(self._next().text, self.variables, 1000))
        if not first.quoted and first.text in {"COMMAND", "POLICY", "TEST", "IS_DIRECTORY", "IS_ABSOLUTE"}:
            self.at += 1
            return None
        if self.at < len(self.arguments) and (name := self._next_word()) in {"STREQUAL", "EQUAL"}:
            self.at += 1
            left, right = self._value(first), self._value(self._next() if self.at < len(self.arguments) else first)
            return None if left is None or right is None else left == right
        if self.at < len(self.arguments) and name not in {"AND", "OR", ")"}:
            self.at += 2
            return None
        return self._constant(first)

    def _constant(self, argument: Argument) -> bool | None:
        text = expanded(argument.text, self.variables, 1000)
        if "$" in text or "<" in text:
            return None
        if lower(text) in _TRUE:
            return True
        if lower(text) in _FALSE or text.endswith("-NOTFOUND"):
            return False
        if argument.quoted:
            return False
        if text in self.doubtful:
            return None
        value = self.variables.get(text)
        return None if value is None or "$" in value else lower(value) not in _FALSE

    def _value(self, argument: Argument) -> str | None:
        """Return the text to compare. An unquoted argument may be the name of a variable."""
        text = expanded(argument.text, self.variables, 1000)
        if not argument.quoted:
            text = "$" if text in self.doubtful else self.variables.get(text, text)
        return None if "$" in text or text.startswith(("CMAKE_", "MSVC")) else text

    def _next(self) -> Argument:
        self.at += 1
        return self.arguments[self.at - 1]

    def _next_word(self) -> str:
        argument = self.arguments[self.at]
        return "" if argument.quoted else argument.text

    def _takes(self, word: str) -> bool:
        """Check whether `word` is next, and consume it if so."""
        is_next = self.at < len(self.arguments) and self._next_word() == word
        self.at += is_next
        return is_next
