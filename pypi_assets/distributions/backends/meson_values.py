"""Evaluate the expressions and conditions of meson.build files, if literals and variables determine them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pypi_assets.characters import is_digits

Token = tuple[str, str]
Truth = bool | None
"""None means unknown."""
_OPTION = re.compile(r"\boption\s*+\(\s*+'([\w.-]{1,200}+)'([^)]{0,2000}+)", re.ASCII)
_TYPE = re.compile(r"\btype\s*+:\s*+'(\w++)'", re.ASCII)
_VALUE = re.compile(r"\bvalue\s*+:\s*+(?:'([^'\n]*+)'|(true|false))", re.ASCII)
_SETTING = re.compile(r"-D([\w.-]{1,200}+)=(.*+)", re.ASCII | re.DOTALL)
MAX_CONDITION = 200
"""The maximum number of tokens in a condition. Longer conditions are unknown."""
MAX_OPTIONS_CHARACTERS = 200_000


def read_options(text: str, arguments: list[str]) -> dict[str, str]:
    """Return the values of the options that `text`, the content of meson.options, declares.

    `arguments` are the arguments of `meson setup`, such as `-Dname=value`. Boolean values are `true` or `false`.
    """
    options = {}
    for name, rest in _OPTION.findall(text[:MAX_OPTIONS_CHARACTERS]):
        kind, value = _TYPE.search(rest), _VALUE.search(rest)
        if value:
            options[name] = value[1] if value[1] is not None else value[2]
        elif kind and kind[1] == "boolean":
            options[name] = "true"
    options |= {match[1]: match[2] for argument in arguments if (match := _SETTING.fullmatch(argument))}
    return options


def truth(tokens: list[Token], options: Mapping[str, str], truths: Mapping[str, Truth]) -> Truth:
    """Return whether a condition holds, or None if that is unknown. `truths` are variables with a known truth value."""
    if len(tokens) > MAX_CONDITION:
        return None
    condition = _MesonCondition([token for token in tokens if token[0] != "line"], options, truths)
    value = condition.disjunction()
    return value if condition.at == len(condition.tokens) else None


@dataclass(slots=True)
class _MesonCondition:
    """A parser of a condition that continues at `at`. Each rule of the grammar is a method."""

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
        """Return the text of an operand, `true` or `false` for a boolean, or None if it is unknown."""
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
        """Skip calls, methods and indices that follow. Return whether there were any."""
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
        """Check whether `token` is next, and consume it if so."""
        is_next = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += is_next
        return is_next


MAX_NAMES = 20_000
MAX_TEXT = 1000
MAX_NESTING = 6
"""The maximum depth to which nested lists are read. A deeper list becomes one flat list."""
_PLACE = re.compile(r"@(\w{1,100})@", re.ASCII)
_CLOSING = {"[": "]", "{": "}", "(": ")"}


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an expression.

    `texts` are all texts in it. `items` are the items of a list or dictionary with their keys, which are empty for a
    list. `is_scalar` marks a single text. `is_site` is True if the value is a folder for Python modules or a path below
    it. `is_false` marks the word `false`.
    """

    texts: tuple[str, ...] = ()
    items: tuple[tuple[str, "Value"], ...] = ()
    is_scalar: bool = False
    is_site: bool = False
    is_false: bool = False

    def item(self, key: str) -> "Value | None":
        """Return the item at `key` of a dictionary, or at an index of a list."""
        if is_digits(key) and len(key) < 5:
            return self.items[int(key)][1] if int(key) < len(self.items) else None
        return next((value for each, value in self.items if each == key), None)


def joined_values(one: Value, other: Value) -> Value:
    """Return `one + other`, which joins texts, lists or dictionaries."""
    if one.is_scalar and other.is_scalar:
        return Value((f"{one.texts[0]}{other.texts[0]}"[:MAX_TEXT],), is_scalar=True)
    items = tuple(item for value in (one, other) for item in value.items or as_items(value))
    return Value((*one.texts, *other.texts)[:MAX_NAMES], items[:MAX_NAMES], is_site=one.is_site or other.is_site)


def as_items(value: Value) -> tuple[tuple[str, Value], ...]:
    """Return the texts of a value that is not a list as list items."""
    return tuple(("", Value((text,), is_scalar=True)) for text in value.texts)


@dataclass(slots=True)
class MesonReader:
    """Evaluates expressions. `names` are the variables so far, and `spend` counts the steps."""

    names: Mapping[str, Value]
    spend: Callable[[int], None]

    def value(self, tokens: list[Token], nesting: int = 0) -> Value:
        """Return the value of an expression."""
        self.spend(len(tokens))
        total: Value | None = None
        for term in split(tokens, "+"):
            value = self._term(term, nesting)
            if total is not None:
                self.spend(4 * (len(total.texts) + len(value.texts)))
            total = value if total is None else joined_values(total, value)
        return total or Value()

    def _term(self, tokens: list[Token], nesting: int) -> Value:
        if not tokens:
            return Value()
        kind, text = tokens[0]
        if len(tokens) == 1:
            if kind in {"text", "long"}:
                return Value((text[:MAX_TEXT],), is_scalar=True)
            return Value(is_false=True) if text == "false" else self._named(text)
        if nesting < MAX_NESTING and kind == "mark" and tokens[-1] == ("mark", _CLOSING.get(text, "")):
            return self._bracket(tokens, nesting)
        if (kind, text) == ("word", "files") and tokens[1] == ("mark", "(") and nesting < MAX_NESTING:
            return self._bracket([("mark", "["), *tokens[2:-1], ("mark", "]")], nesting)
        if (kind, text) == ("word", "f") and len(tokens) == 2 and tokens[1][0] == "text":
            return self._formatted(tokens[1][1], self.names)
        if (
            kind == "text"
            and tokens[1:4] == [("mark", "."), ("word", "format"), ("mark", "(")]
            and nesting < MAX_NESTING
        ):
            given = [self.value(each, nesting + 1) for each in split(tokens[4:-1], ",")]
            return self._formatted(text, {str(index): value for index, value in enumerate(given)})
        if kind == "word" and text in self.names and (item := self._looked_up(tokens)) is not None:
            return item
        return self._flat(tokens)

    def _bracket(self, tokens: list[Token], nesting: int) -> Value:
        """Return the value of a list, a dictionary, or an expression in brackets."""
        if tokens[0][1] == "(":
            return self.value(tokens[1:-1], nesting + 1)
        items: list[tuple[str, Value]] = []
        for entry in split(tokens[1:-1], ","):
            is_pair = tokens[0][1] == "{" and len(entry) > 1 and entry[1] == ("mark", ":")
            key = entry[0][1] if is_pair else ""
            value = self.value(entry[2:] if is_pair else entry, nesting + 1)
            if entry:
                items.append((key, value))
        keys = [key for key, _ in items if key and tokens[0][1] == "{"]
        texts = (*keys, *(text for _, value in items for text in value.texts))
        self.spend(len(texts))
        return Value(texts[:MAX_NAMES], tuple(items[:MAX_NAMES]), is_site=any(value.is_site for _, value in items))

    def _formatted(self, text: str, values: Mapping[str, Value]) -> Value:
        """Return a text with its known placeholders replaced. Unknown placeholders stay as they are."""

        def replaced(place: re.Match[str]) -> str:
            value = values.get(place[1])
            return value.texts[0] if value and value.is_scalar else place[0]

        return Value((_PLACE.sub(replaced, text[:MAX_TEXT])[:MAX_TEXT],), is_scalar=True)

    def _looked_up(self, tokens: list[Token]) -> Value | None:
        """Return an item of a variable, as in `name['key']`, `name[0]` or `name.get('key', ...)`, or None."""
        known = self.names[tokens[0][1]]
        rest = tokens[1:]
        if len(rest) == 3 and rest[0] == ("mark", "[") and rest[2] == ("mark", "]"):
            return known.item(rest[1][1])
        if rest[:3] == [("mark", "."), ("word", "get"), ("mark", "(")] and len(rest) > 4:
            arguments = list(split(rest[3:-1], ","))
            item = known.item(arguments[0][0][1]) if arguments[0] else None
            return item or (self.value(arguments[1], MAX_NESTING) if len(arguments) > 1 else None)
        return None

    def _flat(self, tokens: list[Token]) -> Value:
        """Return all texts in an expression, regardless of its operations."""
        texts: list[str] = []
        is_site = False
        for index, (kind, text) in enumerate(tokens):
            if kind in {"text", "long"}:
                texts.append(text[:MAX_TEXT])
            elif kind == "word":
                is_site |= text == "get_install_dir"
                near = [*tokens[max(index - 1, 0) : index], *tokens[index + 1 : index + 2]]
                if ("mark", ".") not in near:
                    known = self._named(text)
                    self.spend(len(known.texts))
                    texts += known.texts[: MAX_NAMES - len(texts)]
                    is_site |= known.is_site
        return Value(tuple(texts[:MAX_NAMES]), is_site=is_site)

    def _named(self, name: str) -> Value:
        return self.names.get(name, Value())


def split(tokens: list[Token], mark: str) -> Iterator[list[Token]]:
    """Yield the parts of `tokens` between each `mark` outside of brackets, without line ends."""
    depth = 0
    part: list[Token] = []
    for kind, text in tokens:
        if kind == "line":
            continue
        if kind == "mark" and len(text) == 1:
            if text == mark and depth == 0:
                yield part
                part = []
                continue
            depth += (text in "([{") - (text in ")]}")
        part.append((kind, text))
    if part:
        yield part
