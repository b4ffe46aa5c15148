"""Work out in memory the tree of files that pip makes of an archive's members. Nothing is written.

The rules follow pip's `unpack_file` on Linux. A tar passes through tarfile's data filter (PEP 706), whose versions
differ and which Python before 3.11.4 lacks. If versions differ or pip rejects a member, the tree gets a doubt.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from pypi_assets.distributions.limits import MIB, LimitExceededError
from pypi_assets.distributions.record import AMBIGUOUS

MAX_HOPS = 40
"""The maximum number of links that Linux follows in one path."""
MAX_LINKED_CHARACTERS = 2 * MIB
"""The maximum total length of the paths of files that exist a second time because of links."""
MAX_STEPS = 3_000_000
"""The maximum total number of parts in the names of all members."""
MAX_FOLDERS = 100_000
"""Each folder takes 400 bytes of memory. Ordinary sdists have some thousands."""
MAX_COMPONENT_BYTES = 255
MAX_PATH_BYTES = 3900
"""Linux allows 4,096, and the folder that pip unpacks into needs some of them."""
MAX_DEPTH = 400
"""Python creates nested folders by a recursive function."""

LEAVES = "member names that lead out of the archive are ignored: pip refuses it"
_LINKED_OUT = "links that lead out of the archive are ignored: pip refuses it"
_NO_TARGET = "hard links that lead to no file of the archive are ignored: pip refuses it, or ignores them"
_WITHOUT_TOP = "hard links lead to no earlier member by its whole name: Python before 3.11.4 ignores them"
_SPECIAL = "members that are devices, or of no known kind, are ignored: pip refuses it"
_BLOCKED = "members that lie where there is a folder, or below a file, are ignored: pip refuses it"
_OVER_FOLDER = "folders have the name of a file: newer versions of Python refuse it"
_BACKWARDS = "times a member name goes back by .. from a folder that is not there: some versions of Python refuse it"
_ABSOLUTE = "member names are absolute: pip unpacks them as relative ones, or refuses it"
_TRAILING = "member names of files end in a slash: pip makes files of them, or refuses it"
_BACKSLASH = "member names have backslashes, which separate folders on Windows alone"
_THROUGH = "times a member lies behind a symbolic link, which versions of Python treat differently"
_TO_FOLDER = "symbolic links lead to folders: it depends on a build whether it follows them"
_NOWHERE = "symbolic links that lead nowhere are ignored: some versions of Python refuse it"
_IN_CIRCLES = "symbolic links to folders that they lie in are ignored: some versions of Python refuse it"
_BY_DOTS = "symbolic links lead elsewhere where Python takes .. and slashes out of their targets: versions differ"
_RELINKED = "links have the name of another member, or lead to a link: versions of Python differ"
_CHANGED = "times a file is written that has two names by a hard link: versions of Python differ"
_TOO_LONG = "member names are too long or too deep for Linux and Python: pip refuses it"
_NUL = "member names have a NUL: pip refuses it"


class MemberKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    SYMBOLIC_LINK = "symbolic link"
    HARD_LINK = "hard link"
    SPECIAL = "special"


class Member(NamedTuple):
    """A member as its archive names it.

    `place` is the place of its content, as the reader of the archive counts places, and `target` is the target of a
    link.
    """

    name: str
    kind: MemberKind
    place: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class UnpackedTree:
    """The unpacked files.

    `top` is the leading folder that pip removes, or None. `files` has the place of each file's content by path, with
    `top` in front if that is a usual name. `repeated` counts members that another member replaced.
    """

    top: str | None
    files: Mapping[str, int]
    repeated: int

    @property
    def usual_top(self) -> str | None:
        """`top` if the paths in `files` begin with it, or None."""
        return self.top if self.top is not None and _is_usual(self.top) else None


class Doubts:
    """Counts, by reason, the members that may be unpacked differently or not at all."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Count a member. `reason` completes a sentence that begins with a number."""
        self._counts[reason] += 1

    @property
    def notes(self) -> list[str]:
        return [f"{AMBIGUOUS} {count} {reason}" for reason, count in self._counts.items()]


def split_leading_folder(name: str) -> tuple[str, str]:
    """Split `name` after its first part as pip does: at a slash, or at a backslash that comes before any slash."""
    name = name.lstrip("/").lstrip("\\")
    slash, backslash = name.find("/"), name.find("\\")
    at = slash if slash >= 0 and (backslash < 0 or slash < backslash) else backslash
    return (name, "") if at < 0 else (name[:at], name[at + 1 :])


def leading_folder(names: Iterable[str]) -> str | None:
    """Return the first part that all `names` share, or None if they differ."""
    top = None
    for name in names:
        first, _ = split_leading_folder(name)
        if not first or (top is not None and first != top):
            return None
        top = first
    return top


def unpacked_tar(members: Sequence[Member], doubts: Doubts) -> UnpackedTree:
    """Return the files that pip makes of a tar's `members`. Raise LimitExceededError."""
    top = leading_folder(member.name for member in members)
    builder = _Builder(doubts, is_tar=True)
    targets = _Targets(members)
    for member in members:
        name, target = member.name, member.target
        is_odd = not targets.has(member)
        if top is not None:
            _, name = split_leading_folder(name)
            if member.kind is MemberKind.HARD_LINK:
                first, rest = split_leading_folder(target)
                target = rest if first == top else target
        if is_odd and member.kind is MemberKind.HARD_LINK:
            doubts.add(_WITHOUT_TOP)
        if name.startswith("/"):
            doubts.add(_ABSOLUTE)
        builder.add(Member(name.lstrip("/"), member.kind, member.place, target), has_odd_target=is_odd)
    return UnpackedTree(top, _below(top, builder.files()), builder.repeated)


def unpacked_zip(members: Sequence[Member], doubts: Doubts) -> UnpackedTree:
    """Return the files that pip makes of a zip's `members`. Links count as files. Raise LimitExceededError."""
    top = leading_folder(member.name for member in members)
    builder = _Builder(doubts, is_tar=False)
    for member in members:
        name = member.name if top is None else split_leading_folder(member.name)[1]
        if name.startswith("/"):
            doubts.add(LEAVES)
            continue
        is_folder = not name or name.endswith(("/", "\\"))
        builder.add(Member(name, MemberKind.FOLDER if is_folder else MemberKind.FILE, member.place))
    return UnpackedTree(top, _below(top, builder.files()), builder.repeated)


def _below(top: str | None, files: dict[str, int]) -> dict[str, int]:
    """Return `files`, which were unpacked without `top`, below `top` again if that can be the name of a folder."""
    return {f"{top}/{path}": place for path, place in files.items()} if top is not None and _is_usual(top) else files


def _is_usual(top: str) -> bool:
    return top not in {".", ".."} and "\0" not in top


def _is_too_long(name: str) -> bool:
    if len(name) <= MAX_COMPONENT_BYTES // 4:
        return False
    encoded = name.encode(errors="surrogateescape")
    if len(encoded) > MAX_PATH_BYTES or name.count("/") > MAX_DEPTH:
        return True
    return max(map(len, encoded.split(b"/"))) > MAX_COMPONENT_BYTES


def _normal(path: str) -> str:
    """Return `path` without `.`, without doubled slashes, and with each `..` resolved."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts)


class _Targets:
    """Finds the targets of links by the names in the archive only, as Python before 3.11.4 does."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._has_hard_links = any(member.kind is MemberKind.HARD_LINK for member in members)
        self._names = {member.name for member in members}
        self._earlier: set[str] = set()

    def has(self, member: Member) -> bool:
        """Check whether `member`, the next one, is not a link or refers to a member by its name.

        The target of a hard link has to be an earlier member.
        """
        if self._has_hard_links:
            if member.kind is MemberKind.HARD_LINK and _normal(member.target) not in self._earlier:
                return False
            self._earlier.add(_normal(member.name))
        if member.kind is not MemberKind.SYMBOLIC_LINK:
            return True
        folder, slash, _ = member.name.rpartition("/")
        return _normal(f"{folder}{slash}{member.target}").replace("\\", "/") in self._names


@dataclass(slots=True, eq=False)
class _FileContent:
    """Content with one name, or with several names by hard links."""

    place: int
    names: int = 1


@dataclass(slots=True, eq=False)
class _TreeLink:
    """A symbolic link. `is_odd` is True if some versions of Python do not find its target."""

    target: str
    is_odd: bool


@dataclass(slots=True, eq=False)
class _Folder:
    inside: "dict[str, _Folder | _FileContent | _TreeLink]" = field(default_factory=dict)


_Node = _Folder | _FileContent | _TreeLink


class _TreePlace(NamedTuple):
    """The end of a path: its folder, its last part and the node there. A path that ends with `..` has no last part."""

    parent: _Folder
    name: str | None
    node: _Node | None


@dataclass(slots=True, eq=False)
class _Visit:
    """A folder whose files are listed. `is_linked` is True if a link led to it. `above` is the visit of its parent."""

    path: str
    folder: _Folder
    above: "_Visit | None"
    is_linked: bool

    def is_in(self, folder: _Folder) -> bool:
        visit: _Visit | None = self
        while visit is not None:
            if visit.folder is folder:
                return True
            visit = visit.above
        return False


class _RefusedError(Exception):
    """A member is not unpacked. The message is the doubt."""


class _LeavingError(_RefusedError):
    """A path leads out of the archive."""


class _Builder:
    """Adds members to a tree one after the other, as an extraction does."""

    def __init__(self, doubts: Doubts, *, is_tar: bool) -> None:
        self.repeated = 0
        self._doubts = doubts
        self._is_tar = is_tar
        self._root = _Folder()
        self._steps = 0
        self._folders = 0

    def add(self, member: Member, *, has_odd_target: bool = False) -> None:
        """Add one member, or a doubt if pip rejects it."""
        name = member.name
        for is_so, reason in (("\\" in name, _BACKSLASH), ("\0" in name, _NUL), (_is_too_long(name), _TOO_LONG)):
            if is_so:
                self._doubts.add(reason)
        try:
            match member.kind:
                case MemberKind.SPECIAL:
                    raise _RefusedError(_SPECIAL)
                case MemberKind.FOLDER:
                    self._add_folder(name)
                case MemberKind.FILE:
                    self._add_file(name, member.place)
                case MemberKind.SYMBOLIC_LINK:
                    self._add_symbolic_link(name, _TreeLink(member.target, has_odd_target))
                case MemberKind.HARD_LINK:
                    self._add_hard_link(name, member.target)
        except _RefusedError as refused:
            self._doubts.add(str(refused))

    def _add_folder(self, name: str) -> None:
        at = self._walk(name)
        if at.name is None:
            return
        if at.node is None:
            self._count_folder()
            at.parent.inside[at.name] = _Folder()
        elif isinstance(at.node, _FileContent):
            self._doubts.add(_OVER_FOLDER)

    def _add_file(self, name: str, place: int) -> None:
        at = self._walk(self._file_name(name))
        if at.name is None or isinstance(at.node, _Folder):
            raise _RefusedError(_BLOCKED)
        if isinstance(at.node, _FileContent):
            self.repeated += 1
            if at.node.names > 1:
                self._doubts.add(_CHANGED)
            at.node.place = place
        else:
            at.parent.inside[at.name] = _FileContent(place)

    def _file_name(self, name: str) -> str:
        """Return the path of a member that is not a folder. A slash at its end is ignored."""
        if name.endswith("/"):
            self._doubts.add(_TRAILING)
        name = name.rstrip("/")
        if name.rpartition("/")[2] in {"", ".", ".."}:
            raise _RefusedError(_BLOCKED)
        return name

    def _add_symbolic_link(self, name: str, link: _TreeLink) -> None:
        name = self._file_name(name)
        folder = name.rpartition("/")[0]
        self._check_target(f"{folder}/{link.target}", link.target)
        self._check_target(f"{folder}/{_normal(link.target)}", link.target)
        at = self._walk(name, follows_last=False)
        if at.name is None or isinstance(at.node, _Folder):
            raise _RefusedError(_RELINKED)
        self._forget(at.node)
        at.parent.inside[at.name] = link

    def _check_target(self, path: str, target: str) -> None:
        """Raise _RefusedError if a link leads out of the archive."""
        if target.startswith("/"):
            raise _RefusedError(_LINKED_OUT)
        try:
            self._walk(path, makes_folders=False)
        except _LeavingError:
            raise _RefusedError(_LINKED_OUT) from None
        except _RefusedError:
            return

    def _add_hard_link(self, name: str, target: str) -> None:
        name = self._file_name(name)
        self._check_target(target, target)
        shared = self._walk(target, makes_folders=False, follows_last=False).node
        if isinstance(shared, _TreeLink):
            self._doubts.add(_RELINKED)
            shared = self._walk(target, makes_folders=False).node
        if not isinstance(shared, _FileContent):
            raise _RefusedError(_NO_TARGET)
        at = self._walk(name, follows_last=False)
        if at.node is not None or at.name is None:
            self._doubts.add(_RELINKED)
        if at.name is not None and not isinstance(at.node, _Folder) and at.node is not shared:
            self._forget(at.node)
            shared.names += 1
            at.parent.inside[at.name] = shared

    def _forget(self, node: "_Node | None") -> None:
        """Count a file that another member replaces."""
        if isinstance(node, _FileContent):
            self.repeated += 1
            node.names -= 1

    def _walk(
        self, path: str, *, makes_folders: bool = True, needs_folders: bool = False, follows_last: bool = True
    ) -> _TreePlace:
        """Follow `path` from the top as the system does.

        With `makes_folders`, missing folders are created. With `needs_folders`, they are an error. Otherwise they are
        treated as if they existed.
        """
        pending = [part for part in reversed(path.split("/")) if part not in {"", "."}]
        folders = [self._root]
        made: list[_Folder] = []
        hops = 0
        self._spend(len(pending))
        while pending:
            part = pending.pop()
            if part == "..":
                if len(folders) == 1:
                    raise _LeavingError(LEAVES)
                if folders.pop() in made and self._is_tar:
                    self._doubts.add(_BACKWARDS)
                continue
            node = folders[-1].inside.get(part)
            if isinstance(node, _TreeLink) and (pending or follows_last):
                hops += 1
                if hops > MAX_HOPS:
                    raise _RefusedError(_NOWHERE)
                if makes_folders and not needs_folders:
                    self._doubts.add(_THROUGH)
                parts = [each for each in reversed(node.target.split("/")) if each not in {"", "."}]
                self._spend(len(parts))
                pending += parts
            elif not pending:
                return _TreePlace(folders[-1], part, node)
            elif isinstance(node, _FileContent):
                raise _RefusedError(_BLOCKED)
            else:
                if not isinstance(node, _Folder):
                    if needs_folders:
                        raise _RefusedError(_NOWHERE)
                    node = _Folder()
                    if makes_folders:
                        self._count_folder()
                        folders[-1].inside[part] = node
                        made.append(node)
                folders.append(node)
        return _TreePlace(folders[-1], None, folders[-1])

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise LimitExceededError(f"the members' names have more than {MAX_STEPS} parts")

    def _count_folder(self) -> None:
        self._folders += 1
        if self._folders > MAX_FOLDERS:
            raise LimitExceededError(f"the members lie in more than {MAX_FOLDERS} folders")

    def files(self) -> dict[str, int]:
        """Return the place of each file by path. Files behind links are listed again."""
        places: dict[str, int] = {}
        linked_chars = 0
        pending = [_Visit("", self._root, None, is_linked=False)]
        while pending:
            visit = pending.pop()
            below: list[_Visit] = []
            for name, each in visit.folder.inside.items():
                path = f"{visit.path}/{name}" if visit.path else name
                node = self._linked(visit, each) if isinstance(each, _TreeLink) else each
                is_linked = visit.is_linked or node is not each
                if isinstance(node, _Folder):
                    below.append(_Visit(path, node, visit, is_linked=is_linked))
                elif isinstance(node, _FileContent):
                    places[path] = node.place
                linked_chars += len(path) if is_linked else 0
                if linked_chars > MAX_LINKED_CHARACTERS:
                    raise LimitExceededError("links to folders repeat too many files")
            pending += reversed(below)
        return places

    def _linked(self, visit: "_Visit", link: _TreeLink) -> "_FileContent | _Folder | None":
        """Return the target of a symbolic link as newer versions of Python resolve it, even if older ones differ."""
        node = self._led_to(visit, _normal(link.target))
        if node is not self._led_to(visit, link.target):
            self._doubts.add(_BY_DOTS)
        if node is None:
            self._doubts.add(_NOWHERE)
        elif isinstance(node, _Folder):
            if visit.is_in(node):
                self._doubts.add(_IN_CIRCLES)
                return None
            self._doubts.add(_TO_FOLDER)
        elif link.is_odd:
            self._doubts.add(_THROUGH)
        return node

    def _led_to(self, visit: "_Visit", target: str) -> "_FileContent | _Folder | None":
        """Return the file or folder at `target` relative to the folder of `visit`, as the system resolves it."""
        try:
            node = self._walk(f"{visit.path}/{target}", needs_folders=True).node
        except _RefusedError:
            return None
        if isinstance(node, _TreeLink) or (isinstance(node, _FileContent) and target.endswith(("/", "/."))):
            return None
        return node
