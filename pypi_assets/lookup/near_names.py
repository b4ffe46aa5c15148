"""Find names similar to a misspelled one in any sorted set of names, by seeking in it.

A name is similar if few edits lead to it: one character added, removed or replaced, or two neighbours swapped. Upper
and lower case count as equal, and so do `-`, `_` and `.`. If no name is similar, names that begin with the given text
are returned.

The search skips all names whose beginning rules them out, so it needs a few hundred seeks in a set of any size, and
never more than `_MOST_SEEKS`.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

Seek = Callable[[str], str | None]
"""Returns the least name that is not less than a text, in code point order. None: there is none."""

MOST_NAMES = 3
_MOST_SEEKS = 1_000
_LONGEST = 100
_SEPARATORS = "-._"
_ANY_OTHER = ""
_LEAST, _GREATEST = "\x01", "\U0010ffff"  # no name contains a zero character
_LENGTH_FOR_ONE_EDIT, _LENGTH_FOR_TWO_EDITS = 3, 5


class _State(NamedTuple):
    """One row of the table of edit distances.

    `row` has the distance of each beginning of the wanted name from the text read so far. `before` is the row of the
    text without its last character, and `last` is this character.
    """

    row: list[int]
    before: list[int]
    last: str


def near_names(seek: Seek, wanted: str, most: int = MOST_NAMES) -> tuple[str, ...]:
    """Return at most `most` names that are similar to `wanted` and differ from it, the nearest first.

    >>> names = ["toml", "yaml", "yarl"]
    >>> near_names(lambda least: next((name for name in names if name >= least), None), "yamll")
    ('yaml',)
    """
    wanted = wanted.encode(errors="replace").decode()  # a terminal can send invalid text
    if not wanted or len(wanted) > _LONGEST:
        return ()
    found: set[str] = set()
    for distance in range(_most_edits(wanted) + 1):
        found.update(_within(seek, wanted, distance, same_beginning=distance > 1))
        found.discard(wanted)
        if found:
            break
    if not found:
        found.update(_longer(seek, wanted, most))
    return tuple(sorted(found, key=lambda name: _rank(name, wanted))[:most])


def first_names(seek: Seek, beginning: str, most: int, separator: str | None = None) -> list[str]:
    """Return the first `most` names that begin with `beginning`, in order.

    With `separator`, names are cut at the first separator after the beginning, and each cut name is returned once.

    >>> names = ["yaml", "yaml.nodes", "yaml.reader", "yarl"]
    >>> first_names(lambda least: next((name for name in names if name >= least), None), "ya", 5, ".")
    ['yaml', 'yarl']
    """
    found: list[str] = []
    name = seek(beginning)
    while name is not None and name.startswith(beginning) and len(found) < most:
        end = -1 if separator is None else name.find(separator, len(beginning))
        cut = name if end < 0 else name[:end]
        if not found or found[-1] != cut:
            found.append(cut)
        name = seek(f"{cut}{_LEAST}" if end < 0 else f"{cut}{chr(ord(name[end]) + 1)}")
    return found


def _most_edits(wanted: str) -> int:
    """Return how many edits a name may need. Names of two characters allow none: they are all near to each other."""
    return (len(wanted) >= _LENGTH_FOR_ONE_EDIT) + (len(wanted) >= _LENGTH_FOR_TWO_EDITS)


def _rank(name: str, wanted: str) -> tuple[bool, int, str]:
    """Return a sort key: names with the same first character come first, because few people mistype it."""
    return _fold(name[:1]) != _fold(wanted[:1]), abs(len(name) - len(wanted)), name


def _longer(seek: Seek, wanted: str, most: int) -> Iterator[str]:
    """Yield the first names that begin with `wanted` and are longer."""
    name: str | None = wanted
    for _ in range(most if len(wanted) >= _LENGTH_FOR_ONE_EDIT else 0):
        name = seek(f"{name}{_LEAST}")
        if name is None or not name.startswith(wanted):
            return
        yield name


def _within(seek: Seek, wanted: str, distance: int, *, same_beginning: bool) -> Iterator[str]:
    """Yield the names within that edit distance, in order, until `_MOST_SEEKS` seeks are used up.

    With `same_beginning`, only names with the same first character are found. Nearly all names further away share it.
    """
    folded = [_fold(char) for char in wanted]
    states = [_State(list(range(len(folded) + 1)), [], _ANY_OTHER)]
    read = ""  # the name that `states` describe, as far as they go
    least: str | None = _next_name(read, 0, _LEAST, states, folded, distance, same_beginning)
    for _ in range(_MOST_SEEKS):
        name = None if least is None else seek(least)
        if name is None:
            return
        known = 0
        while known < min(len(states) - 1, len(name)) and name[known] == read[known]:
            known += 1
        del states[known + 1 :]
        read = name
        for char in name[known:]:
            if not _can_follow(char, states, folded, distance, same_beginning):
                break
            states.append(_step(states[-1], _fold(char), folded))
        at = len(states) - 1
        if at < len(name):
            least = _next_name(name, at, _after(name[at]), states, folded, distance, same_beginning)
            continue
        if states[-1].row[-1] <= distance:
            yield name
        least = _next_name(name, at, _LEAST, states, folded, distance, same_beginning)


def _next_name(
    name: str,
    at: int,
    least: str | None,
    states: list[_State],
    folded: list[str],
    distance: int,
    same_beginning: bool,
) -> str | None:
    """Return the least text with which a similar name can begin, or None.

    The text begins with `name[:at]`, followed by a character that is at least `least`. If there is no such text,
    shorter beginnings of `name` are tried.
    """
    while True:
        of_beginning = states[: at + 1]
        following = None if least is None else _least_following(least, of_beginning, folded, distance, same_beginning)
        if following is not None:
            return name[:at] + following
        if not at:
            return None
        at -= 1
        least = _after(name[at])


def _least_following(
    least: str, states: list[_State], folded: list[str], distance: int, same_beginning: bool
) -> str | None:
    """Return the least possible next character that is at least `least`."""
    if not (same_beginning and len(states) == 1) and _leads_on(states[-1], _ANY_OTHER, folded, distance):
        return least
    spellings = (spelling for char in set(folded) for spelling in _spellings(char))
    can_follow = (
        char for char in spellings if char >= least and _can_follow(char, states, folded, distance, same_beginning)
    )
    return min(can_follow, default=None)


def _can_follow(char: str, states: list[_State], folded: list[str], distance: int, same_beginning: bool) -> bool:
    if same_beginning and len(states) == 1:
        return _fold(char) == folded[0]
    return _leads_on(states[-1], _fold(char), folded, distance)


def _leads_on(state: _State, char: str, folded: list[str], distance: int) -> bool:
    return min(_step(state, char, folded).row) <= distance


def _step(state: _State, char: str, folded: list[str]) -> _State:
    """Return the state after one more character: the next row of the table of edit distances."""
    row, before, last = state
    following = [row[0] + 1]
    for place, wanted in enumerate(folded, 1):
        cost = min(following[-1] + 1, row[place] + 1, row[place - 1] + (char != wanted))
        if place > 1 and before and char == folded[place - 2] and last == wanted:
            cost = min(cost, before[place - 2] + 1)
        following.append(cost)
    return _State(following, row, char)


def _fold(char: str) -> str:
    """Return the character that represents all characters that count as equal to `char`."""
    if char and char in _SEPARATORS:
        return _SEPARATORS[0]
    lower = char.lower()
    return lower if len(lower) == 1 else char


def _spellings(folded: str) -> set[str]:
    """Return the characters that `_fold` maps to `folded`, as far as they occur in names."""
    return set(_SEPARATORS) if folded == _SEPARATORS[0] else {folded, folded.upper()[:1]}


def _after(char: str) -> str | None:
    """Return the next code point. Surrogates are skipped, because UTF-8 keys cannot contain them."""
    if char == _GREATEST:
        return None
    following = chr(ord(char) + 1)
    return "\ue000" if "\ud800" <= following <= "\udfff" else following
