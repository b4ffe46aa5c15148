"""Caches for functions of texts from others, limited in characters: results for long texts are not cached."""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

_LONGEST = 300
"""The most characters of all arguments that are cached. Real requirements, versions and names have fewer."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def cached_if_short(maxsize: int, longest: int = _LONGEST) -> Callable[[_Function], _Function]:
    """Return a decorator like `lru_cache`, for arguments of at most `longest` characters in total.

    Such a cache has keys of at most `maxsize * longest` characters, whatever texts requests contain. Arguments that are
    not texts, or tuples of texts, count as one character.

    >>> @cached_if_short(1_024)
    ... def normalized(name: str) -> str: ...
    """

    def decorate(function: _Function) -> _Function:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(*arguments: Hashable, **named: Hashable) -> Any:
            if len(arguments) == 1 and not named and type(arguments[0]) is str:  # mostly, so this is fast
                return (cached if len(arguments[0]) <= longest else function)(arguments[0])
            is_short = sum(map(_characters, (*arguments, *named.values()))) <= longest
            return (cached if is_short else function)(*arguments, **named)

        call.cache_info, call.cache_clear = cached.cache_info, cached.cache_clear  # type: ignore[attr-defined]
        return cast("_Function", call)

    return decorate


def _characters(argument: object) -> int:
    if isinstance(argument, str | bytes):
        return len(argument)
    return sum(map(_characters, argument)) + len(argument) if isinstance(argument, tuple) else 1
