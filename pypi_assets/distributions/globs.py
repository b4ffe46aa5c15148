"""Matches names against shell patterns as `fnmatch` does: `*`, `?`, `[set]` and `[!set]`.

Its translation into a regular expression changed between versions of Python; this one stays.
"""

import re
from functools import lru_cache

_SET = re.compile(r"\[(!?+)(\]?+[^\]]*+)\]")


def matches_glob(name: str, pattern: str) -> bool:
    """Whether all of `name` matches `pattern`; case counts, and `*` stands for slashes too.

    >>> matches_glob("demo.tests", "*.test[a-z]")
    True
    """
    return _compiled(pattern).fullmatch(name) is not None


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Each star but the last takes what is shortest, once and for all, so that no name takes long."""
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
        elif char == "[" and at <= last_end and (found := _SET.match(pattern, at - 1)):
            pieces.append(_set(found[2], negated=bool(found[1])))
            at = found.end()
        else:
            pieces.append(re.escape(char))
    if not starts:
        return re.compile("".join(pieces), re.DOTALL)
    between = ["".join(pieces[start:end]) for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    middle = "".join(f"(?>.*?{each})" for each in between[:-1])
    return re.compile(f"{''.join(pieces[: starts[0]])}{middle}.*{between[-1]}", re.DOTALL)


def _set(members: str, *, negated: bool) -> str:
    """The class of a regular expression for what is in brackets. A range that ends before it starts is empty."""
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
