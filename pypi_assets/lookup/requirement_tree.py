"""The requirements of a version, and their requirements in turn, as a tree: a view for people, not a resolution.

For each requirement it takes the newest version that satisfies this one requirement. A resolver would consider all
requirements together and an environment; here markers are not evaluated.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.installability import installable_or_all
from pypi_assets.distributions.requirement_names import CONDITIONS, parse_requirement
from pypi_assets.version_order import canonical_version, newest_version

if TYPE_CHECKING:
    from pypi_assets.lookup.answers import Answer, Stream
    from pypi_assets.lookup.depgraph_reader import Distribution

MOST_OPENED = 60
"""The number of projects in the tree whose requirements are shown. Each costs one or two reads."""
MOST_NODES = 500
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([^'\"]*)['\"]|['\"]([^'\"]*)['\"]\s*==\s*extra\b", re.ASCII)
State = Literal["open", "above", "extra", "unknown", "none fits", "not read", "cut", "unreadable"]


class Required(TypedDict):
    """One requirement as written, with the version that was chosen for it.

    `project` is the normalized name and `version` the chosen version; None if there is none. `condition` is `always`,
    `marker` or `extra`. `state` says whether `requires` is filled, and if not, why:

    - `open`: `requires` has the requirements of the version, possibly none
    - `above`: the project is opened elsewhere in the tree, nearer to the root
    - `extra`: it is required only with an extra
    - `unknown`: the project has no live files
    - `none fits`: no version of the project satisfies the requirement
    - `not read`: the requirements of the version could not be read
    - `cut`: the tree is too large and ends here
    - `unreadable`: the text is not a valid requirement
    """

    requirement: str
    project: str | None
    condition: str
    version: str | None
    state: State
    requires: list["Required"]


class Tree(TypedDict):
    """The root and its requirements. `is_cut` is true if the tree is too large to be shown completely."""

    project: str
    version: str
    state: State
    is_cut: bool
    requires: list[Required]


class RequirementSource(Protocol):
    """A source of projects and their requirements, such as a snapshot. Projects are normalized names."""

    def versions(self, project: str, /) -> Sequence[tuple[str, bool]]:
        """Return (version, whether it is yanked) for each version of a project."""

    def distributions(self, project: str, version: str | None, /) -> "Answer[Distribution] | Stream[Distribution]":
        """Return the distributions of a version."""


def requirement_tree(releases: RequirementSource, project: str, version: str, most_opened: int = MOST_OPENED) -> Tree:
    """Return the requirements of a version as a tree. It grows breadth-first, so cut branches are far from the root.

    >>> requirement_tree(snapshot, "demo", "2.1")["requires"][0]["version"]
    '6.0'
    """
    return _Growing(releases, most_opened).grow(canonicalize_name(project), version)


class _Growing:
    """A tree under construction. Each project is opened once, as near to the root as possible."""

    def __init__(self, releases: RequirementSource, most_opened: int) -> None:
        self._releases, self._left = releases, most_opened
        self._nodes = 0
        self._opened: set[str] = set()
        self._waiting: deque[tuple[Required, str, frozenset[str]]] = deque()

    def grow(self, project: str, version: str) -> Tree:
        self._opened.add(project)
        texts = _joined(self._releases.distributions(project, version).results)
        tree = Tree(project=project, version=version, state="open", is_cut=False, requires=[])
        if texts is None:
            tree["state"] = "not read"
            return tree
        tree["requires"] = self._children(texts, None)
        while self._waiting:
            self._open(*self._waiting.popleft())
        tree["is_cut"] = self._left < 0 or self._nodes >= MOST_NODES
        return tree

    def _children(self, texts: Iterable[str], extras: frozenset[str] | None) -> list[Required]:
        """Return the requirements of a version that apply with these extras. For None, the root, return all of them."""
        found = []
        for text in sorted(dict.fromkeys(texts), key=_rank):
            parsed = parse_requirement(text)
            condition = CONDITIONS[parsed[1]] if parsed else "always"
            if condition == "extra" and extras is not None and not (_extras_in(text) & extras):
                continue
            if self._nodes >= MOST_NODES:
                break
            self._nodes += 1
            requirement = _parsed(text) if parsed else None
            state: State = "unreadable" if requirement is None else "cut"
            if requirement is not None and condition == "extra" and extras is None:
                state = "extra"
            node = Required(
                requirement=text,
                project=parsed[0] if parsed else None,
                condition=condition,
                version=None,
                state=state,
                requires=[],
            )
            found.append(node)
            if parsed and requirement and state == "cut":
                self._waiting.append((node, parsed[0], frozenset(map(canonicalize_name, requirement.extras))))
        return found

    def _open(self, node: Required, project: str, extras: frozenset[str]) -> None:
        if project in self._opened:
            node["state"] = "above"
            return
        self._left -= 1
        if self._left < 0:
            return
        known = self._releases.versions(project)
        node["version"] = _chosen(known, node["requirement"])
        if node["version"] is None:
            node["state"] = "none fits" if known else "unknown"
            return
        self._opened.add(project)
        texts = _joined(self._releases.distributions(project, node["version"]).results)
        node["state"] = "not read" if texts is None else "open"
        node["requires"] = self._children(texts or (), extras)


def _chosen(known: Sequence[tuple[str, bool]], text: str) -> str | None:
    """Return the newest version that satisfies the requirement, or None."""
    requirement = _parsed(text)
    if requirement is None:
        return None
    fitting = [one for one in known if not requirement.specifier or _fits(requirement, one[0])]
    unyanked = {canonical_version(version) for version, is_yanked in fitting if not is_yanked}
    yanked = [version for version, _ in fitting if canonical_version(version) not in unyanked]
    return newest_version([version for version, _ in fitting], yanked) if fitting else None


def _fits(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(version, prereleases=True)
    except ValueError:  # not a PEP 440 version
        return False


def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except (InvalidRequirement, ValueError, RecursionError):  # ValueError: a number with thousands of digits
        return None


def _rank(text: str) -> tuple[int, str]:
    parsed = parse_requirement(text)
    return (parsed[1], parsed[0]) if parsed else (len(CONDITIONS), text)


def _extras_in(text: str) -> set[str]:
    return {canonicalize_name(one or other) for one, other in _EXTRA.findall(text)}


def _joined(files: Iterable[Mapping[str, Any]]) -> list[str] | None:
    """Return the requirements of all files of a version, or None if no file's requirements could be read."""
    counted = installable_or_all(list(files), itemgetter("refusals"))
    known = [file["requires_dist"] for file in counted if file["requires_dist"] is not None]
    return list(dict.fromkeys(text for one in known for text in one)) if known else None
