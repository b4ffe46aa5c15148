"""Takes out of a tar what records are made of: the names of its files and its small metadata files, in one pass.

What pip unpacks counts. Only where that depends on links, or on names that are no usual paths, the start of the tar is
read once more, from memory.
"""

from collections.abc import Callable

from pypi_assets.distributions.archives import trimmed
from pypi_assets.distributions.build_scripts import is_build_script
from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.inflating import BrokenDataError, inflated
from pypi_assets.distributions.limits import Budget, LimitExceededError
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.sdist_names import are_usual, common_top, note_top, note_tree, put_names, readable
from pypi_assets.distributions.sources import SequentialSource
from pypi_assets.distributions.tar_headers import TarMember, content_of, read_members, skip_content
from pypi_assets.distributions.tar_stream import MAX_KEPT_BYTES, BadTarError, TarStream
from pypi_assets.distributions.unpacked_tree import Doubts, Member, MemberKind, unpacked_tar

_CORE_METADATA = ("/PKG-INFO", "/METADATA")
"""How the names of those end of which the headers alone are kept."""


def extract_tar(source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The paths of all files that pip makes of the tar, and the content of the `wanted` ones; of core metadata only the
    headers.

    Reads what POSIX (ustar, pax), GNU (long names, sparse files) and Unix 7 write. Raises SourceError.
    """
    extract = Extract()
    files = _Files(TarStream(inflated(source, budget, extract.notes), MAX_KEPT_BYTES), wanted, budget)
    try:
        files.read()
    except BrokenDataError as error:
        extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(str(error)))
    except (BadTarError, LimitExceededError) as error:
        extract.fail_with(error)
    try:
        files.put_into(extract)
    except (BadTarError, LimitExceededError) as error:
        extract.fail_with(error)
    return extract


class _Files:
    """The members of a tar, and by their numbers what is kept of their content."""

    def __init__(self, tar: TarStream, wanted: Callable[[str], bool], budget: Budget) -> None:
        self._tar = tar
        self._wanted = wanted
        self._budget = budget
        self._doubts = Doubts()
        self._members: list[TarMember] = []
        self._kept: dict[int, bytes] = {}

    def read(self) -> None:
        """Reads all members, and the content of those that are wanted by their names."""
        tar, wanted, members = self._tar, self._wanted, self._members
        for member in read_members(tar, self._doubts):
            self._budget.count_member(member.name)
            members.append(member)
            if member.kind is MemberKind.FILE and wanted(_usual(member.name)):
                if (content := self._content(tar, member.name, member)) is None:
                    skip_content(tar, member)
                else:
                    self._kept[len(members) - 1] = content
            else:
                skip_content(tar, member)
        tar.skip_rest()

    def _content(self, tar: TarStream, name: str, member: TarMember) -> bytes | None:
        """What is kept of a member that is wanted as `name`; None for a script for which there is no room."""
        size = max(member.size, member.real_size)
        if is_build_script(name) and not self._budget.has_room_for_script(size):
            return None
        self._budget.count_wanted(name, size)
        content = trimmed(name, content_of(tar, member))
        self._budget.count_kept(len(content))
        return content

    def put_into(self, extract: Extract) -> None:
        """Puts the names and contents into `extract`. Raises BadTarError and LimitExceededError."""
        files, folders = {}, []
        others = 0
        for number, member in enumerate(self._members):
            if member.kind is MemberKind.FILE:
                files[member.name] = number
            elif member.kind is MemberKind.FOLDER:
                folders.append(member.name)
            else:
                others += 1
        if not others and len(files) + len(folders) == len(self._members) and are_usual(files, folders):
            put_names(extract, {readable(name): number for name, number in files.items()})
            extract.notes += self._doubts.notes
            note_top(extract, common_top(files, folders))
            extract.files = {readable(self._members[number].name): content for number, content in self._kept.items()}
        else:
            self._put_tree_into(extract)

    def _put_tree_into(self, extract: Extract) -> None:
        members = [Member(each.name, each.kind, at, each.target) for at, each in enumerate(self._members)]
        tree = unpacked_tar(members, self._doubts)
        files = {readable(path): number for path, number in tree.files.items()}
        put_names(extract, files)
        note_tree(extract, tree, self._doubts)
        note_top(extract, tree.usual_top)
        for path, number in files.items():
            if self._wanted(path) and (content := self._linked_content(path, number)) is not None:
                extract.files[path] = content

    def _linked_content(self, path: str, number: int) -> bytes | None:
        """What is kept as `path` of the member of this number, which may have another name."""
        member = self._members[number]
        if number in self._kept and _is_core(path) == _is_core(member.name):
            return self._kept[number]
        if is_build_script(path) and is_build_script(member.name):
            return None
        if (tar := self._tar.again(member.start)) is None:
            raise LimitExceededError(f"{path!a:.200} has its content too far behind the start of the tar")
        try:
            return self._content(tar, path, member)
        except BadTarError:
            raise LimitExceededError(f"{path!a:.200} has its content too far behind the start of the tar") from None


def _is_core(name: str) -> bool:
    return f"/{name}".endswith(_CORE_METADATA)


def _usual(name: str) -> str:
    """`name` without `.` and empty parts, where it begins with one."""
    if name < "0" and name[:2] in {"./", "//"}:
        return "/".join([part for part in name.split("/") if part not in {"", "."}])
    return name
