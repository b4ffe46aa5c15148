"""The requirements.txt format and the tree of a resolution, and the remarks of all formats."""

from collections.abc import Iterator
from typing import NamedTuple

from pypi_assets.resolve.questions import ResolveError
from pypi_assets.resolve.universal import JoinedRelease, JoinedResolution


class Rendered(NamedTuple):
    """The text of a lock, with remarks for people."""

    text: str
    remarks: tuple[str, ...] = ()


def remarks_on(answer: JoinedResolution) -> Iterator[str]:
    """Yield remarks that matter in all formats: yanked versions, and unknown requirements."""
    unknown = [f"{one.normalized} {one.version}" for one in answer.releases if one.is_unknown]
    if unknown:
        yield f"the requirements of these are unknown, and assumed to be none: {', '.join(unknown)}"
    for one in answer.releases:
        if one.is_yanked:
            yield f"{one.normalized} {one.version} is yanked"


def described(answer: JoinedResolution) -> str:
    """Return the serial and the environments of an answer as text."""
    return f"as of serial {answer.serial}, for {for_targets(answer)}"


def for_targets(answer: JoinedResolution) -> str:
    """Return the environments of an answer as text.

    >>> for_targets(answer)
    'CPython 3.12 and 3.13 on linux-x86_64 and macos-arm64'
    """
    pythons = dict.fromkeys(target.python for target in answer.targets)
    platforms = dict.fromkeys(target.platform for target in answer.targets)
    return f"CPython {_listed(list(pythons))} on {_listed(list(platforms))}"


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def as_requirements(answer: JoinedResolution) -> Rendered:
    """Render each release with the hashes of all files that the question allows.

    Raises ResolveError if a release has no known hash.
    """
    remarks: list[str] = []
    lines = [f"# Made by `pypi-assets resolve --format requirements`, {described(answer)}."]
    for release in answer.releases:
        lines += _lines(answer, release, remarks)
    return Rendered("\n".join(lines) + "\n", tuple(remarks))


def _lines(answer: JoinedResolution, release: JoinedRelease, remarks: list[str]) -> Iterator[str]:
    marker = f" ; {release.marker}" if release.marker else ""
    files = answer.allowed_files(release)
    hashes = sorted({file["sha256"] for file in files if file["sha256"]})
    without = sorted(file["filename"] for file in files if not file["sha256"])
    if not hashes:
        raise ResolveError(f"no file of {release.normalized} {release.version} has a known hash for a lock")
    if without:
        remarks.append(f"omitted, because the hash is unknown: {', '.join(without)}")
    parts = [f"{release.project}=={release.version}{marker}", *(f"    --hash=sha256:{one}" for one in hashes)]
    yield from (f"{part} \\" for part in parts[:-1])
    yield parts[-1]
    via = sorted({name for name, _ in release.required_by})
    yield f"    # via {', '.join(name or 'the requirements' for name in via)}"


class Node(NamedTuple):
    """One line of the tree: a release at a depth, with the requirements that lead to it there.

    `is_above` means that its own requirements are shown at an earlier line.
    """

    depth: int
    release: JoinedRelease
    requirement: str
    is_above: bool

    @property
    def name(self) -> str:
        """Return the release with its extras, and with its marker if it is not for all environments."""
        extras = f"[{','.join(self.release.extras)}]" if self.release.extras else ""
        marker = f" ; {self.release.marker}" if self.release.marker else ""
        return f"{self.release.project}{extras} {self.release.version}{marker}"

    @property
    def note(self) -> str:
        """Return remarks about the line."""
        notes = {
            "see above": self.is_above,
            "yanked": self.release.is_yanked,
            "unknown requirements": self.release.is_unknown and not self.is_above,
        }
        return ", ".join(note for note, holds in notes.items() if holds)


def tree_nodes(answer: JoinedResolution) -> Iterator[Node]:
    """Yield the lines of the tree from top to bottom. A cycle ends where it returns to a release."""
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
