"""What formats of an answer have in common: the text, and remarks about what it lacks."""

from collections.abc import Iterator
from typing import NamedTuple

from pypi_assets.resolve.universal import JoinedResolution


class Rendered(NamedTuple):
    """A lock as a text, and what people should know about it."""

    text: str
    remarks: tuple[str, ...] = ()


def remarks_on(answer: JoinedResolution) -> Iterator[str]:
    """What people should know about what was chosen, whatever the format: yanked versions, and unknown requirements."""
    unknown = [f"{one.normalized} {one.version}" for one in answer.releases if one.is_unknown]
    if unknown:
        yield f"it is not known what these require, and assumed that it is nothing: {', '.join(unknown)}"
    for one in answer.releases:
        if one.is_yanked:
            yield f"{one.normalized} {one.version} is yanked"


def described(answer: JoinedResolution) -> str:
    """As of when an answer is, and for which environments."""
    return f"as of serial {answer.serial}, for {for_targets(answer)}"


def for_targets(answer: JoinedResolution) -> str:
    """The environments of an answer.

    >>> for_targets(answer)
    'CPython 3.12 and 3.13 on linux-x86_64 and macos-arm64'
    """
    pythons = dict.fromkeys(target.python for target in answer.targets)
    platforms = dict.fromkeys(target.platform for target in answer.targets)
    return f"CPython {_listed(list(pythons))} on {_listed(list(platforms))}"


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
