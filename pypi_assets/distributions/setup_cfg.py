"""Parse setup.cfg like configparser but much faster: sections, options, multi-line values and `%(option)s`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pypi_assets.characters import lowered
from pypi_assets.distributions.limits import LimitExceededError

MAX_INHERITED = 100_000
"""The maximum number of options that all sections together inherit from [DEFAULT]."""
MAX_INTERPOLATED_CHARACTERS = 1_000_000
"""The maximum total length of values used in other values. Values that repeat one another could grow without limit."""
MAX_INTERPOLATION_DEPTH = 10
_DEFAULT = "DEFAULT"
_REFERENCE = re.compile(r"%(?:%|\(([^)]{1,200}+)\)s)")


def parse_setup_cfg(text: str, *, names_as_written: bool = False) -> dict[str, dict[str, str]]:
    """Return values by section and option. The lines of a value are stripped.

    Option names are lower-case and written with `_`. With `names_as_written` they keep their spelling, as in
    setuptools, which matters for groups of entry points. Lines outside of sections are skipped, and the last of
    repeated options counts. All sections inherit the options of [DEFAULT]. A value with an invalid `%(option)s` stays
    as written. Raise LimitExceededError if interpolated values grow beyond the limit.
    """
    named = str.strip if names_as_written else _option_name
    sections: dict[str, dict[str, list[str]]] = {}
    options: dict[str, list[str]] | None = None
    value: list[str] | None = None
    indent = 0
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):  # other line ends count as blanks
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        margin = len(line) - len(line.lstrip())
        if value is not None and margin > indent:
            value.append(stripped)
        elif stripped[0] == "[" and stripped.rfind("]") > 1:  # `[]` is the name of an option
            options, value = sections.setdefault(stripped[1 : stripped.rindex("]")], {}), None
        elif options is not None:
            value, indent = _open_option(options, stripped, named), margin
    values = {
        name: {option: "\n".join(lines).strip() for option, lines in options.items()}
        for name, options in sections.items()
    }
    if defaults := values.pop(_DEFAULT, None):
        if len(defaults) * len(values) > MAX_INHERITED:
            raise LimitExceededError(f"[DEFAULT] gives the sections more than {MAX_INHERITED} options")
        values = {name: defaults | options for name, options in values.items()}
    return _interpolated(values, named) if "%" in text else values


class _InterpolationError(Exception):
    """configparser rejects the value."""


def _interpolated(sections: Mapping[str, Mapping[str, str]], named: Callable[[str], str]) -> dict[str, dict[str, str]]:
    interpolation = _Interpolation(named)
    interpolated: dict[str, dict[str, str]] = {}
    for name, options in sections.items():
        interpolated[name] = {}
        for option, value in options.items():
            try:
                interpolated[name][option] = interpolation.of(value, options)
            except _InterpolationError:
                interpolated[name][option] = value
    return interpolated


@dataclass(slots=True)
class _Interpolation:
    """Interpolates values like configparser.BasicInterpolation.

    `named` normalizes the name of an option. `room` is the number of characters that may still be used.
    """

    named: Callable[[str], str]
    room: int = MAX_INTERPOLATED_CHARACTERS

    def of(self, value: str, options: Mapping[str, str], depth: int = 1) -> str:
        if depth > 1:
            self.room -= 1 + len(value)
            if self.room < 0:
                raise LimitExceededError(f"values are made of more than {MAX_INTERPOLATED_CHARACTERS} characters")
        if "%" not in value:
            return value
        if depth > MAX_INTERPOLATION_DEPTH or "%" in _REFERENCE.sub("", value):
            raise _InterpolationError

        def referenced(found: re.Match[str]) -> str:
            if found[1] is None:
                return "%"
            if (other := options.get(self.named(found[1]))) is None:
                raise _InterpolationError
            return self.of(other, options, depth + 1)

        return _REFERENCE.sub(referenced, value)


def _open_option(options: dict[str, list[str]], line: str, named: Callable[[str], str]) -> list[str] | None:
    """Return the lines of the value that begins in `line`, or None if the line sets no option."""
    end = min((at for at in (line.find("="), line.find(":")) if at >= 0), default=-1)
    if end <= 0:
        return None
    value = options[named(line[:end])] = [line[end + 1 :].strip()]
    return value


def _option_name(written: str) -> str:
    return lowered(written.strip()).replace("-", "_")


def listed(value: str) -> list[str]:
    """Return a list in setup.cfg: one item a line, or separated by commas on one line."""
    parts = value.splitlines() if "\n" in value else value.split(",")
    return [part.strip() for part in parts if part.strip()]


def mapped(value: str) -> dict[str, str]:
    """Return the `key = value` items of a list in setup.cfg."""
    pairs = (item.partition("=") for item in listed(value))
    return {key.strip(): rest.strip() for key, equals, rest in pairs if equals}
