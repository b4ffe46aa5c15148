"""Conditions in meson.build files, as far as the project's options and literals decide them.

Options have the values that pyproject.toml gives for the build, else their defaults in meson.options.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Token = tuple[str, str]
Truth = bool | None
"""None where it is not known."""
_OPTION = re.compile(r"\boption\s*+\(\s*+'([\w.-]{1,200}+)'([^)]{0,2000}+)", re.ASCII)
_TYPE = re.compile(r"\btype\s*+:\s*+'(\w++)'", re.ASCII)
_VALUE = re.compile(r"\bvalue\s*+:\s*+(?:'([^'\n]*+)'|(true|false))", re.ASCII)
_SETTING = re.compile(r"-D([\w.-]{1,200}+)=(.*+)", re.ASCII | re.DOTALL)
MAX_CONDITION = 200
"""Tokens of a condition; a longer one is not evaluated."""
MAX_OPTIONS_CHARACTERS = 200_000


def read_options(text: str, arguments: list[str]) -> dict[str, str]:
    """The values of the options that `text`, of meson.options, declares, where `arguments` are those of the set-up.
    Boolean ones are `true` or `false`."""
    options = {}
    for name, rest in _OPTION.findall(text[:MAX_OPTIONS_CHARACTERS]):
        kind, value = _TYPE.search(rest), _VALUE.search(rest)
        if value:
            options[name] = value[1] if value[1] is not None else value[2]
        elif kind and kind[1] == "boolean":
            options[name] = "true"
    options |= {found[1]: found[2] for argument in arguments if (found := _SETTING.fullmatch(argument))}
    return options


def truth(tokens: list[Token], options: Mapping[str, str], truths: Mapping[str, Truth]) -> Truth:
    """Whether the condition of `tokens` holds, where `truths` are the variables that are known to be so."""
    if len(tokens) > MAX_CONDITION:
        return None
    condition = _Condition([token for token in tokens if token[0] != "line"], options, truths)
    value = condition.disjunction()
    return value if condition.at == len(condition.tokens) else None


@dataclass(slots=True)
class _Condition:
    """A condition that is read from `at` on. Each rule of its grammar is a method."""

    tokens: list[Token]
    options: Mapping[str, str]
    truths: Mapping[str, Truth]
    at: int = 0

    def disjunction(self) -> Truth:
        return self._joined("or", self._conjunction, decides=True)

    def _conjunction(self) -> Truth:
        return self._joined("and", self._negation, decides=False)

    def _joined(self, word: str, operand: Callable[[], Truth], *, decides: bool) -> Truth:
        values = [operand()]
        while self._takes(("word", word)):
            values.append(operand())
        return decides if decides in values else None if None in values else not decides

    def _negation(self) -> Truth:
        if self._takes(("word", "not")):
            value = self._negation()
            return None if value is None else not value
        if self._takes(("mark", "(")):
            value = self.disjunction()
            return value if self._takes(("mark", ")")) else None
        return self._comparison()

    def _comparison(self) -> Truth:
        text = self._operand()
        for mark in ("==", "!="):
            if self._takes(("mark", mark)):
                other = self._operand()
                return None if text is None or other is None else (text == other) is (mark == "==")
        return None if text not in {"true", "false"} else text == "true"

    def _operand(self) -> str | None:
        """The text of an operand, `true` or `false` where it is one of these; None where it is not known."""
        if self.at >= len(self.tokens):
            return None
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind in {"text", "long"}:
            value: str | None = text
        elif (kind, text) == ("word", "get_option") and [each[0] for each in self.tokens[self.at : self.at + 3]] == [
            "mark",
            "text",
            "mark",
        ]:
            value = self.options.get(self.tokens[self.at + 1][1])
            self.at += 3
        elif kind == "word" and text in {"true", "false"}:
            value = text
        else:
            known = self.truths.get(text) if kind == "word" else None
            value = None if known is None else "true" if known else "false"
        return None if self._skip_rest_of_operand() else value

    def _skip_rest_of_operand(self) -> bool:
        """Skips calls, methods and indices that follow; returns whether there are any."""
        start, depth = self.at, 0
        while self.at < len(self.tokens):
            kind, text = self.tokens[self.at]
            is_end = (kind == "word" and text in {"and", "or"}) or (kind == "mark" and text in {"==", "!=", ")"})
            if depth <= 0 and is_end:
                break
            if kind == "mark" and len(text) == 1:
                depth += (text in "([{") - (text in ")]}")
            self.at += 1
        return self.at > start

    def _takes(self, token: Token) -> bool:
        """Whether `token` is next, which is then taken."""
        found = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += found
        return found
