"""Find the files that MANIFEST.in and SOURCES.txt of an .egg-info name. setuptools treats them as package data."""

from collections.abc import Iterable

from pypi_assets.distributions.members import Folder, paths_of
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Effort, Patterns, matching_paths
from pypi_assets.distributions.source_tree import SourceTree, clean_path, joined

_ABSENT = b"\0not named "
"""The first bytes of a condensed SOURCES.txt.

The top folder follows, and then each module that the file does not name, one per line.
"""
_ABSENT_SOURCES = b"\0absent "
"""The first bytes of the format of earlier versions, which has no information about `.pyc` files."""
MODULE_SUFFIXES = (".py", ".so", ".pyd")
_CONDENSED_SUFFIXES = (*MODULE_SUFFIXES, ".pyc")


def condense_sources(name: str, content: bytes, members: dict[str, Folder]) -> bytes:
    """Return SOURCES.txt as a list of the sdist's modules that it does not name, if this list is shorter.

    `name` is the path of the file in the archive. A correct SOURCES.txt names nearly all files, and the extract already
    has their names.
    """
    top = f"{name.partition('/')[0]}/" if name.count("/") > 1 else ""
    named = set(_lines(content, name))
    absent = [
        path
        for folder, inside in members.items()
        if f"{folder}/".startswith(top)
        for path in paths_of([(folder[len(top) :], inside)])
        if path.endswith(_CONDENSED_SUFFIXES) and path not in named
    ]
    condensed = b"\n".join(
        [_ABSENT + top.encode(errors="replace"), *(each.encode(errors="replace") for each in absent)]
    )
    return condensed if len(condensed) < len(content) else content


def manifest_files(tree: SourceTree, paths: list[str]) -> tuple[set[str], bool]:
    """Return the `paths` that SOURCES.txt names or MANIFEST.in includes, and whether both files were read.

    If SOURCES.txt exists but was not read, all paths count.
    """
    named = _named_by_sources(tree, paths)
    are_read = named is not None and not tree.has_unread("MANIFEST.in")
    included = {*paths} if named is None else named
    for line in _template_lines(tree.files.get("MANIFEST.in", b"")):
        included = apply_line(included, paths, line.split(), tree.effort)
    return included, are_read


def apply_line(found: set[str], paths: list[str], words: list[str], effort: Effort) -> set[str]:
    """Return `found` after one line of a MANIFEST.in, which adds some of `paths` or removes some of `found`."""
    command, *patterns = words or [""]
    action = command.removeprefix("recursive-").removeprefix("global-")
    if command.startswith("recursive-"):
        folder = clean_path(patterns[0]) if patterns else ""
        if command == "recursive-include" and not folder:  # setuptools names such files with ./ and finds no package
            return found
        patterns = [joined(folder, f"**/{pattern}") for pattern in patterns[1:]]
    elif command.startswith("global-"):
        patterns = [f"**/{pattern}" for pattern in patterns]
    elif command == "include":
        patterns = list(map(_in_one_folder, patterns))
    elif command == "graft":
        patterns = [joined(_in_one_folder(clean_path(pattern)), "**") for pattern in patterns]
        action = "include"
    elif command == "prune":
        patterns = [joined(clean_path(pattern), "**") for pattern in patterns]
        action = "exclude"
    if action == "include":
        return found | {*matching_paths(paths, patterns, Patterns.FILE_GLOB, effort)}
    if action == "exclude":
        return found - {*matching_paths(sorted(found), patterns, Patterns.FILE_GLOB, effort)}
    return found


def _in_one_folder(pattern: str) -> str:
    """Return `pattern` as setuptools globs it for includes: `**` matches exactly one folder, like `*`."""
    return "/".join("*" if part == "**" else part for part in pattern.split("/"))


def _named_by_sources(tree: SourceTree, paths: list[str]) -> set[str] | None:
    """Return the `paths` that SOURCES.txt names, if there is such a file, or None if its content was not stored."""
    name = f"{tree.egg_info}/SOURCES.txt"
    if tree.egg_info is None or not tree.has_member(name):
        return set()
    content = tree.files.get(name)
    if content is None:
        return None
    if content.startswith(_ABSENT_SOURCES):
        paths = [path for path in paths if not path.endswith(".pyc")]
    elif not content.startswith(_ABSENT):
        return {*paths} & {*_lines(content, name)}
    condensed = content.removeprefix(_ABSENT).removeprefix(_ABSENT_SOURCES)
    top, *absent = condensed.decode(errors="replace").split("\n")
    return {*paths} - {*absent} if top == tree.top else None


def _lines(content: bytes, name: str) -> list[str]:
    text = decode_text(content, name, keep_mark=True)[0]
    return [clean_path(line) for line in text.splitlines()]


def _template_lines(content: bytes) -> Iterable[str]:
    """Yield the lines of a MANIFEST.in without comments. A backslash at the end joins a line to the next."""
    text = decode_text(content, "MANIFEST.in", keep_mark=True)[0].replace("\r\n", "\n").replace("\\\n", " ")
    for line in text.split("\n"):
        stripped = line.partition("#")[0].strip()
        if stripped:
            yield stripped
