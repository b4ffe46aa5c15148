"""What was chosen as a tree: each project is opened once, where it first stands."""

from collections.abc import Iterator
from typing import NamedTuple

from pypi_assets.resolve.universal import JoinedRelease, JoinedResolution


class Node(NamedTuple):
    """A line of the tree: a release at a depth, the requirements that lead to it there, and `above` where what it
    requires stands at an earlier line.
    """

    depth: int
    release: JoinedRelease
    requirement: str
    is_above: bool

    @property
    def name(self) -> str:
        """The release with its extras, and with its marker where it is not for all environments."""
        extras = f"[{','.join(self.release.extras)}]" if self.release.extras else ""
        marker = f" ; {self.release.marker}" if self.release.marker else ""
        return f"{self.release.project}{extras} {self.release.version}{marker}"

    @property
    def note(self) -> str:
        """What people should know about the line."""
        notes = {
            "see above": self.is_above,
            "yanked": self.release.is_yanked,
            "unknown requirements": self.release.is_unknown and not self.is_above,
        }
        return ", ".join(note for note, holds in notes.items() if holds)


def tree_nodes(answer: JoinedResolution) -> Iterator[Node]:
    """The lines of the tree, from top to bottom. A circle ends where it comes back to a release."""
    by_name: dict[str, list[JoinedRelease]] = {}
    for release in answer.releases:
        by_name.setdefault(release.normalized, []).append(release)
    of_release = {(release.normalized, release.version): release for release in answer.releases}
    waiting = [(0, release, "") for name in reversed(answer.roots) for release in reversed(by_name.get(name, []))]
    opened: set[int] = set()
    while waiting:
        depth, release, parent = waiting.pop()
        texts = dict.fromkeys(text for name, text in release.required_by if name == parent)
        is_above = id(release) in opened and bool(release.requires)
        yield Node(depth, release, " and ".join(texts), is_above)
        if id(release) not in opened:
            opened.add(id(release))
            waiting += [(depth + 1, of_release[one], release.normalized) for one in reversed(release.requires)]
