"""Match paths against the patterns of build backends: lines of .gitignore files, and globs relative to a folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from itertools import takewhile

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, by_folder, paths_of

_SET = re.compile(r"\[(!?+)(\]?+[^\]]*+)\]")


def matches_glob(name: str, pattern: str) -> bool:
    """Check whether the whole `name` matches `pattern`. Matching is case-sensitive, and `*` matches slashes, too.

    >>> matches_glob("demo.tests", "*.test[a-z]")
    True
    """
    return _compiled_glob(pattern).fullmatch(name) is not None


@lru_cache(4096)
def _compiled_glob(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression.

    Each star but the last takes the shortest match without backtracking, so that no name takes long.
    """
    pieces: list[str] = []
    starts: list[int] = []
    at, last_end = 0, pattern.rfind("]")
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            if not starts or starts[-1] < len(pieces):
                starts.append(len(pieces))
        elif char == "?":
            pieces.append(".")
        elif char == "[" and at <= last_end and (brackets := _SET.match(pattern, at - 1)):
            pieces.append(_set(brackets[2], negated=bool(brackets[1])))
            at = brackets.end()
        else:
            pieces.append(re.escape(char))
    if not starts:
        return re.compile("".join(pieces), re.DOTALL)
    between = ["".join(pieces[start:end]) for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    middle = "".join(f"(?>.*?{each})" for each in between[:-1])
    return re.compile(f"{''.join(pieces[: starts[0]])}{middle}.*{between[-1]}", re.DOTALL)


def _set(members: str, *, negated: bool) -> str:
    """Return a regular expression class for the content of brackets. A range that ends before it starts is empty."""
    parts = []
    at = 0
    while at < len(members):
        first, dash, last = members[at], members[at + 1 : at + 2], members[at + 2 : at + 3]
        if dash == "-" and last:
            if first <= last:
                parts.append(f"{re.escape(first)}-{re.escape(last)}")
            at += 3
        else:
            parts.append(re.escape(first))
            at += 1
    if not parts:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


MAX_STEPS = 1_000_000
"""The effort for finding the modules of one sdist, a hundred times more than the largest real distributions need.

A step is a comparison of a path with a pattern, or a path that a setting names. A path that is named again counts
again.
"""
MAX_PATTERN_LENGTH = 2048
_STEPS_TO_COMPILE = 50
_CHARACTERS_IN_A_STEP = 2048
"""Searching this many characters for a fixed text costs one step."""
_START = re.compile(r"[^*?\[]+")
_END = re.compile(r"[^*?\[\]]+\Z")
_NEGATED_SET = re.compile(r"(?<!\\)\[\^")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Patterns(Enum):
    """The kinds of patterns.

    A line of a .gitignore (`!` negates, `#` begins a comment) and a GLOB match everything below a folder that they
    match. A FILE_GLOB matches only files.

    For the lines of a .gitignore, the last line that matches a file decides. If there is none, the last line that
    matches a folder above it decides. The library that build backends use has the same order.
    """

    GITIGNORE = auto()
    GLOB = auto()
    FILE_GLOB = auto()


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A compiled pattern.

    `segments` are its parts, and `start` is the common start of all paths that it matches. `plain` is the path if the
    pattern matches only one. `folders` and `files` say whether it may match a folder above a file, or the file itself.
    `regex` is an equivalent regular expression if the pattern is simple enough to match any path quickly. Each matching
    path contains all `needles` if it has a slash at both ends.
    """

    segments: tuple[str, ...]
    start: str
    plain: str | None
    negates: bool
    folders: bool
    files: bool
    needles: tuple[str, ...]
    regex: re.Pattern[str] | None = None


@lru_cache(1024)
def _compiled_pattern(pattern: str, kind: Patterns) -> _Pattern:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise LimitExceededError(f"a pattern for paths is longer than {MAX_PATTERN_LENGTH} characters")
    is_gitignore = kind is Patterns.GITIGNORE
    negates = is_gitignore and pattern.startswith("!")
    body = _unescaped(pattern[negates:]) if is_gitignore else pattern
    if is_gitignore:
        parts = body.removeprefix("/").removesuffix("/").split("/") if body.strip("/") else []
    else:
        parts = [part for part in body.split("/") if part not in {"", "."}]
    if is_gitignore and parts and "/" not in body.rstrip("/"):
        parts.insert(0, "**")
    collapsed = [part for part, before in zip(parts, ["", *parts], strict=False) if (part, before) != ("**", "**")]
    if is_gitignore and body.endswith("/**/") and len(collapsed) > 1:
        collapsed.pop()  # all files below, at any depth
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), collapsed[:-1]))
    compiled = _Pattern(
        tuple(collapsed),
        "".join(f"{part}/" for part in fixed),
        None if set(body) & set("*?[") or "**" in parts else "/".join(parts),
        negates,
        folders=kind is not Patterns.FILE_GLOB,
        files=not (is_gitignore and body.endswith("/")),
        needles=tuple([needle for part in collapsed if part != "**" for needle in _needles(part)]),
    )
    return replace(compiled, regex=_simple_regex(compiled))


def _needles(part: str) -> list[str]:
    """Return the fixed start and end of a pattern's part, with the slashes next to them."""
    start, end = _START.match(part), _END.search(part)
    if start and start.end() == len(part):
        return [f"/{part}/"]
    return [f"/{start[0]}" if start else "", f"{end[0]}/" if end else ""]


def _unescaped(pattern: str) -> str:
    r"""Return the pattern without backslashes and with `[!a]` for `[^a]`. `\*` becomes `[*]`, and `\#` becomes `#`."""
    pattern = _NEGATED_SET.sub("[!", pattern)
    return _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)


def _simple_regex(pattern: _Pattern) -> re.Pattern[str] | None:
    """Return the pattern as a regular expression if it has at most one `**`, and at most one `*` in each other part."""
    if pattern.segments.count("**") > 1 or not all(part == "**" or _is_simple(part) for part in pattern.segments):
        return None
    *parents, last = pattern.segments or ("",)
    pieces = ["(?:.*/)?" if part == "**" else f"{_one_part(part)}/" for part in parents]
    pieces.append(".+" if last == "**" else _one_part(last))
    end = "(?:/|\\Z)" if pattern.files and pattern.folders else "/" if pattern.folders else "\\Z"
    return re.compile("".join(pieces) + end, re.DOTALL)


def _is_simple(part: str) -> bool:
    return part.count("*") <= 1 and not set(part) & set("?[")


def _one_part(part: str) -> str:
    return re.escape(part).replace(r"\*", "[^/]*")


class Effort:
    """Counts the steps for one record. `spend` raises LimitExceededError after MAX_STEPS."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise LimitExceededError(f"finding what is installed takes more than {MAX_STEPS} steps")


def _possible(patterns: list[_Pattern], text: str, effort: Effort) -> list[_Pattern]:
    """Return the patterns that may match a path in `text`, which has a slash at both ends of each folder and file."""
    effort.spend((4 + len(patterns)) * (1 + len(text) // _CHARACTERS_IN_A_STEP))
    return [pattern for pattern in patterns if all(needle in text for needle in pattern.needles)]


def _matched(pattern: _Pattern, paths: list[str], effort: Effort) -> set[str]:
    """Return the `paths` that `pattern` matches, directly or by a folder above."""
    if pattern.plain is not None:
        start = f"{pattern.plain}/"
        matched = {path for path in paths if path.startswith(start)} if pattern.folders else set()
        return matched | {pattern.plain} if pattern.files and pattern.plain in paths else matched
    near = [path for path in paths if path.startswith(pattern.start)] if pattern.start else paths
    if pattern.regex is None:
        return {path for path in near if _matches(pattern, path, effort)}
    effort.spend(len(near) + sum(map(len, near)) * len(pattern.segments) // 32)
    return set(filter(pattern.regex.match, near))


def _matches(pattern: _Pattern, path: str, effort: Effort) -> bool:
    """Check whether `pattern` matches `path` or a folder above. `path` begins with the pattern's start.

    All possible positions in the pattern are followed at once, so the time is bounded by the product of both lengths.
    """
    parts = path.split("/")
    segments = pattern.segments
    last = len(segments)
    positions = {0}
    for depth, part in enumerate(parts, 1):
        effort.spend(len(positions) * (1 + len(part) // 64))
        reached = set()
        is_file = depth == len(parts)
        for position in positions:
            if segments[position] == "**":
                reached.add(position)
                if position + 1 == last:
                    reached.add(last)
                    continue
                position += 1  # `**` may also match no folder
            if segments[position] == part or matches_glob(part, segments[position]):
                reached.add(position + 1)
        if last in reached and (pattern.files if is_file else pattern.folders):
            return True
        positions = reached - {last}
        if not positions:
            return False
    return False


def matching_paths(paths: list[str], patterns: Iterable[str], kind: Patterns, effort: Effort) -> list[str]:
    """Return the `paths` that the patterns match, in their order.

    Raise LimitExceededError if that takes more than the rest of `effort`, which belongs to one record.
    """
    return _named(paths, _all_compiled(patterns, kind, effort), effort) if paths else []


def matching(files: Files, patterns: Iterable[str], kind: Patterns, effort: Effort) -> Files:
    """Return the `files` that the patterns match. Raise the same errors as `matching_paths`."""
    return by_folder(_named_in(files, _all_compiled(patterns, kind, effort), effort)) if files else []


def without(files: Files, patterns: list[str], kind: Patterns, effort: Effort) -> Files:
    """Return the `files` that the patterns do not match. Raise the same errors as `matching_paths`."""
    if not files or not patterns:
        return files
    compiled = _all_compiled(patterns, kind, effort)
    if not any(pattern.negates for pattern in compiled):
        excluded = tuple([f"{pattern.plain}/" for pattern in compiled if pattern.plain is not None and pattern.folders])
        files = [each for each in files if not f"{each[0]}/".startswith(excluded)]
    named = set(_named_in(files, compiled, effort))
    changed = {path.rpartition("/")[0] for path in named}
    kept: Files = []
    for each in files:
        if each[0] in changed:
            kept += by_folder(path for path in paths_of([each]) if path not in named)
        else:
            kept.append(each)
    return kept


def _named_in(files: Files, patterns: list[_Pattern], effort: Effort) -> list[str]:
    """Return the paths of the `files` that the patterns match. Folders that no pattern can match are skipped early."""
    if not patterns:
        return []
    names = [f"{folder}/{inside.sources.replace('/', '.py/')}{inside.others}" for folder, inside in files]
    patterns = _possible(patterns, "/".join(("", *names)), effort)
    effort.spend(2 * len(patterns) * len(files))
    starts = tuple([pattern.start if pattern.plain is None else f"{pattern.plain}/" for pattern in patterns])
    parents = {pattern.plain.rpartition("/")[0] for pattern in patterns if pattern.plain is not None}
    near = [each for each in files if each[0] in parents or f"{each[0]}/".startswith(starts)]
    return _named(paths_of(near), patterns, effort)


def _all_compiled(patterns: Iterable[str], kind: Patterns, effort: Effort) -> list[_Pattern]:
    if kind is Patterns.GITIGNORE:
        stripped = [line for pattern in patterns if not (line := _line(pattern)).startswith("#")]
    else:
        stripped = [pattern.strip() for pattern in patterns]
    effort.spend(3 * sum(map(len, stripped)) + len(stripped) * _STEPS_TO_COMPILE)
    return [compiled for pattern in stripped if (compiled := _compiled_pattern(pattern, kind)).segments]


def _line(pattern: str) -> str:
    """Return a line of a .gitignore without trailing blanks. A backslash keeps one blank."""
    stripped = pattern.rstrip()
    return f"{stripped} " if stripped.endswith("\\") and pattern != stripped else stripped


def _of_files(pattern: _Pattern) -> _Pattern:
    """Return `pattern` limited to files themselves, without folders above them."""
    file_pattern = replace(pattern, folders=False)
    return replace(file_pattern, regex=_simple_regex(file_pattern))


def _named(paths: list[str], patterns: list[_Pattern], effort: Effort) -> list[str]:
    patterns = _possible(patterns, "/".join(("", *paths, "")), effort)
    effort.spend(len(patterns) * len(paths))
    named: set[str] = set()
    undecided = paths
    if any(pattern.negates for pattern in patterns):
        effort.spend(len(patterns) * (len(paths) + _STEPS_TO_COMPILE))
        patterns = [*patterns, *(_of_files(pattern) for pattern in patterns if pattern.files)]
    for pattern in reversed(patterns):
        if matched := _matched(pattern, undecided, effort):
            undecided = [path for path in undecided if path not in matched]
            named |= set() if pattern.negates else matched
    return [path for path in paths if path in named]
