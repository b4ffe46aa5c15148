"""Convert the requirements in Poetry's own table [tool.poetry.dependencies] to PEP 508.

PEP 508 cannot express a path on the packager's disk or alternative version ranges. If one requirement needs that, none
is converted, since a partial list would be wrong.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pypi_assets.characters import is_digits, lower, normalized_name
from pypi_assets.distributions.metadata import conditional, normalized_extra
from pypi_assets.distributions.pyproject import strings, table

_SPECIFIER = re.compile(r"(\^|~=|~|===|==|!=|<=|>=|<|>|=|)\s*+v?(\*(?:\.\*)*+|[0-9][A-Za-z0-9_.*+!-]*+)[\s,]*+")
_WILDCARDS = re.compile(r"(?<!\.\*)(?:\.\*)++\Z")
_OR = re.compile(r"\|\|?")
_RELEASE = re.compile(r"[0-9]++(?:\.[0-9]++)*+")
_SCP_URL = re.compile(r"(?P<user>[\w.-]++@)(?P<host>[\w.-]++):(?P<path>[^/].*+)", re.ASCII)
_PLATFORM = re.compile(r"(!=|==?=?|)\s*+([A-Za-z0-9_]++)")
_QUOTED = re.compile(r"'[^']*+'|\"[^\"]*+\"")
_EXTRA = re.compile(r"\bextra\b", re.ASCII)
_SELECTED_EXTRA = re.compile(r"\bextra\s*+==|==\s*+extra\b", re.ASCII)
_COMPOUND = re.compile(r"\b(?:and|or)\b", re.ASCII)
Bounds = list[tuple[str, str]]
"""Pairs of (operator, version) that must all hold."""


class _InexpressibleError(ValueError):
    """PEP 508 cannot express the requirement."""


def poetry_requirements(poetry: Mapping[str, Any]) -> tuple[list[str], list[str]] | None:
    """Return (PEP 508 requirements, extras) of the table [tool.poetry], or None if one of them cannot be converted."""
    extras_of: dict[str, list[str]] = {}
    extras = table(poetry, "extras")
    for extra, members in extras.items():
        for member in strings(members):
            extras_of.setdefault(normalized_name(member), []).append(normalized_extra(extra))
    requirements = []
    try:
        for name, constraint in table(poetry, "dependencies").items():
            if lower(name) == "python":
                continue
            in_extras = extras_of.get(normalized_name(name), [])
            for each in constraint if isinstance(constraint, list) else [constraint]:
                details = {"version": each} if isinstance(each, str) else each
                if not isinstance(details, dict):
                    return None
                if in_extras or not details.get("optional") or _SELECTED_EXTRA.search(_unquoted(_own_markers(details))):
                    requirements.append(_requirement(name, details, in_extras))
    except _InexpressibleError:
        return None
    return requirements, [normalized_extra(extra) for extra in extras]


def _requirement(name: str, details: Mapping[str, Any], in_extras: Iterable[str]) -> str:
    extras = ",".join(sorted({normalized_extra(extra) for extra in strings(details.get("extras"))}))
    requirement = f"{name}[{extras}]" if extras else name
    if "git" in details or "url" in details:
        requirement += f" @ {_git_url(details) if 'git' in details else _text(details, 'url')}"
    elif "version" in details:
        requirement += _specifiers(_text(details, "version"))
    else:  # a path, or no version at all
        raise _InexpressibleError
    markers = [python_marker(_text(details, "python"))] if "python" in details else []
    if "platform" in details:
        markers.append(_platform_marker(_text(details, "platform")))
    own = _own_markers(details)
    markers.append(own)
    if not _EXTRA.search(_unquoted(own)):  # poetry-core adds no extras to a marker that has some
        markers.append(" or ".join(f'extra == "{extra}"' for extra in in_extras))
    conditions = [marker for marker in markers if marker]
    if len(conditions) > 1:
        conditions = [f"({marker})" if _COMPOUND.search(marker) else marker for marker in conditions]
    return conditional(requirement, " and ".join(conditions))


def _text(details: Mapping[str, Any], key: str) -> str:
    if not isinstance(value := details[key], str):
        raise _InexpressibleError
    return value


def _own_markers(details: Mapping[str, Any]) -> str:
    return _text(details, "markers") if "markers" in details else ""


def _unquoted(marker: str) -> str:
    """Return `marker` with empty texts, so that only its variables and operators are left."""
    return _QUOTED.sub("''", marker)


def _platform_marker(constraint: str) -> str:
    """Return the marker for a Poetry constraint on the platform, or "" if any platform fits.

    >>> _platform_marker("linux || darwin")
    'sys_platform == "linux" or sys_platform == "darwin"'
    """
    if constraint == "*":
        return ""
    choices = []
    for choice in _OR.split(constraint):
        matches = [_PLATFORM.fullmatch(each.strip()) for each in choice.split(",")]
        conditions = [f'sys_platform {"!=" if match[1] == "!=" else "=="} "{match[2]}"' for match in matches if match]
        if len(conditions) < len(matches):
            raise _InexpressibleError
        choices.append(" and ".join(conditions))
    return " or ".join(choices)


def _git_url(details: Mapping[str, Any]) -> str:
    url = _text(details, "git")
    if scp := _SCP_URL.fullmatch(url):
        url = f"ssh://{scp['user']}{scp['host']}/{scp['path']}"
    revision = next((_text(details, key) for key in ("rev", "tag", "branch") if key in details), "")
    folder = _text(details, "subdirectory") if "subdirectory" in details else ""
    return f"git+{url}{revision and '@'}{revision}{folder and '#subdirectory='}{folder}"


def required_python(constraint: str) -> str | None:
    """Return Requires-Python for a Poetry constraint on Python, or None if any version fits.

    Raise ValueError if it cannot be expressed.

    >>> required_python("^3.9")
    '>=3.9,<4.0'
    """
    return _specifiers(constraint) or None


def _specifiers(constraint: str) -> str:
    return ",".join(operator + version for operator, version in _joined(_alternatives(constraint)))


def _alternatives(constraint: str) -> list[Bounds]:
    """Return the version ranges separated by `||`. One of them has to hold."""
    ranges = []
    for choice in map(str.strip, _OR.split(constraint)):
        bounds: Bounds = []
        at = 0
        while at < len(choice):
            if not (match := _SPECIFIER.match(choice, at)):
                raise _InexpressibleError
            bounds += _bounds(match[1], match[2])
            at = match.end()
        ranges.append(bounds)
    return ranges


def _bounds(operator: str, version: str) -> Bounds:
    if version.startswith("*"):
        return []
    operator = "==" if operator in {"", "="} else operator
    fixed = _WILDCARDS.sub("", version)
    if "*" in fixed or (fixed != version and operator in {"^", "~", "~=", "==="}):
        raise _InexpressibleError
    if operator not in {"^", "~"}:
        return [(operator, f"{fixed}.*" if fixed != version and operator in {"==", "!="} else fixed)]
    release_match = _RELEASE.match(version)
    if release_match is None or "!" in version:
        raise _InexpressibleError
    release = release_match[0].split(".")
    if operator == "~":
        raised = min(1, len(release) - 1)
    else:
        raised = next((index for index, part in enumerate(release) if part.strip("0")), len(release) - 1)
    if len(release[raised]) > 9:
        raise _InexpressibleError
    upper = [*release[:raised], str(int(release[raised]) + 1), *("0" for _ in release[raised + 1 :])]
    return [(">=", version), ("<", ".".join(upper[: max(3, raised + 1)]))]


def _joined(alternatives: list[Bounds]) -> Bounds:
    """Return one range for alternatives that follow each other without a gap, such as `^1.0 || ^2.0`."""
    joined = alternatives[0]
    for bounds in alternatives[1:]:
        if not ([each[0] for each in (*joined, *bounds)] == [">=", "<"] * 2 and joined[1][1] == bounds[0][1]):
            raise _InexpressibleError
        joined = [joined[0], bounds[1]]
    return joined


def python_marker(constraint: str) -> str:
    """Return the marker for a Poetry constraint on Python, or "" if any version fits.

    Raise ValueError if it cannot be expressed.

    >>> python_marker("^3.9")
    'python_version >= "3.9" and python_version < "4.0"'
    """
    choices = [" and ".join(_python_condition(*each) for each in bounds) for bounds in _alternatives(constraint)]
    if "" in choices:
        return ""
    return choices[0] if len(choices) == 1 else " or ".join(f"({choice})" for choice in choices)


def _python_condition(operator: str, version: str) -> str:
    """Return the marker of one comparison.

    python_version has only two parts, so `>`, `<=` and `!=` need python_full_version.
    """
    stem = version.removesuffix(".*")
    if stem != version and is_digits(stem):
        if len(stem) > 9:
            raise _InexpressibleError
        following = int(stem) + 1
        if operator == "==":
            return f'python_version >= "{stem}" and python_version < "{following}"'
        return f'(python_version < "{stem}" or python_version >= "{following}")'
    parts = stem.count(".") + 1
    if parts < 3 and operator not in {">", "<="} and (operator, version) != ("!=", stem):
        return f'python_version {operator} "{stem}"'
    zeros = ".0" * (3 - parts) if _RELEASE.fullmatch(stem) else ""
    return f'python_full_version {operator} "{stem}{zeros}"'
