"""Which files a MANIFEST.in and the SOURCES.txt of an .egg-info name: those that setuptools takes for package data."""

from collections.abc import Iterable

from pypi_assets.distributions.members import Folder, paths_of
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Effort, Patterns, matching_paths
from pypi_assets.distributions.source_tree import SourceTree, clean_path, joined

_ABSENT = b"\0not named "
"""How a condensed SOURCES.txt begins: the top folder follows, then the modules that it does not name, a line each."""
_ABSENT_SOURCES = b"\0absent "
"""How those of earlier versions begin, which say nothing about `.pyc` files."""
MODULE_SUFFIXES = (".py", ".so", ".pyd")
_CONDENSED_SUFFIXES = (*MODULE_SUFFIXES, ".pyc")


def condense_sources(name: str, content: bytes, members: dict[str, Folder]) -> bytes:
    """Return SOURCES.txt as the modules of the sdist that it does not name, if these are fewer bytes.

    `name` is its own path in the archive. An honest one names nearly all files, whose names are kept already.
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
    """Return those of `paths` that setuptools finds in SOURCES.txt or includes by MANIFEST.in, and whether both were
    read. If SOURCES.txt was not, all count."""
    named = _named_by_sources(tree, paths)
    are_read = named is not None and not tree.has_unread("MANIFEST.in")
    found = {*paths} if named is None else named
    for line in _template_lines(tree.files.get("MANIFEST.in", b"")):
        found = apply_line(found, paths, line.split(), tree.effort)
    return found, are_read


def apply_line(found: set[str], paths: list[str], words: list[str], effort: Effort) -> set[str]:
    """Return `found` after one line of a MANIFEST.in, which includes some of `paths` or excludes some of `found`."""
    command, *patterns = words or [""]
    action = command.removeprefix("recursive-").removeprefix("global-")
    if command.startswith("recursive-"):
        folder = clean_path(patterns[0]) if patterns else ""
        if command == "recursive-include" and not folder:  # setuptools names such files with ./, and finds no package
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
    """Return `pattern` as setuptools globs for what to include: `**` stands for one folder, as `*` does."""
    return "/".join("*" if part == "**" else part for part in pattern.split("/"))


def _named_by_sources(tree: SourceTree, paths: list[str]) -> set[str] | None:
    """Return those of `paths` that SOURCES.txt names, none without such a file; None if it was not kept."""
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
    """The lines of a MANIFEST.in, without comments; a backslash at its end joins a line to the next."""
    text = decode_text(content, "MANIFEST.in", keep_mark=True)[0].replace("\r\n", "\n").replace("\\\n", " ")
    for line in text.split("\n"):
        stripped = line.partition("#")[0].strip()
        if stripped:
            yield stripped
