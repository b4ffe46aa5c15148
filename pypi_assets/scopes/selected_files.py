"""Which files of a project lead on to what they require, and at which serials.

By default these are the files of the newest stable release that are live and not yanked. Where no stable release has
such a file, the newest pre-release counts, and then what has no version by PEP 440.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from pypi_assets.scopes.ruleset import RequirementRules
from pypi_assets.scopes.spans import Spans, difference, intersection, union


@dataclass(frozen=True, slots=True)
class ScopeFile:
    """A file of a release, with the serials at which it is live, and those at which it is yanked."""

    version: str
    kind: str
    live: Spans
    yanked: Spans = ()


def selected_spans(files: Sequence[ScopeFile], rules: RequirementRules) -> list[Spans]:
    """For each file, the serials at which it is selected.

    The file of 1.0 is selected until that of 2.0 comes at serial 7, and 2.0rc1 never:

        files = [ScopeFile(v, "wheel", live) for v, live in [("1.0", ((3, OPEN_END),)), ("2.0", ((7, OPEN_END),)), ...]]
        selected_spans(files, RequirementRules())  # [((3, 7),), ((7, OPEN_END),), ()]
    """
    usable = [difference(file.live, file.yanked) if file.kind in rules.kinds else () for file in files]
    if rules.releases == "all":
        return usable
    releases: dict[tuple[int, Version | str], list[int]] = {}
    for number, file in enumerate(files):
        if usable[number]:
            releases.setdefault(_rank(file.version), []).append(number)
    selected: list[Spans] = [()] * len(files)
    taken: Spans = ()
    for rank in sorted(releases, reverse=True):
        numbers = releases[rank]
        visible = union(span for number in numbers for span in usable[number])
        free = difference(visible, taken)
        for number in numbers:
            selected[number] = intersection(usable[number], free)
        taken = union((*taken, *visible))
    return selected


def _rank(version: str) -> tuple[int, Version | str]:
    """Newer releases have greater ranks; equal versions in two spellings have one."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return 0, version
    return (1 if parsed.is_prerelease else 2), parsed
