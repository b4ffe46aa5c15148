"""Describe, as notes, effects of an installed wheel that the modules of its record do not show.

These are code that Python runs at its start, further folders of modules, scripts, and modules for other platforms and
versions of Python. Trees that no file system can have are problems.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pypi_assets.characters import lower, printable
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MIB, LimitExceededError
from pypi_assets.distributions.members import Files, Folder, by_folder, paths_of
from pypi_assets.distributions.metadata import unique
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.record import AMBIGUOUS, START_UP_CODE, START_UP_ENDS
from pypi_assets.distributions.wheel_names import (
    RefusedNameError,
    destination,
    normal_parts,
    site_folder,
    start_up_calls,
    start_up_lines,
)

FURTHER_PATH = "further path:"
SCRIPTS = "installs scripts:"
"""The starts of notes on files that are run, or found by import, without being modules of the record."""

_SOME_SITE = re.compile(
    r"(?:(?:local/)?lib(?:32|64)?/(?:python|pypy)[0-9.]+t?(?:/(?:(?:site|dist)-packages|lib-dynload))?|lib/site-packages)(?:/(.*))?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
"""Folders for modules relative to the prefix of some Python. The `data` scheme is installed below that prefix."""
_WINDOWS_LIBRARIES = frozenset({"lib", "dlls"})
_USUAL_DATA = frozenset({"bin", "scripts", "include", "lib32", "lib64", "local", "share", "etc", "man", "doc"})
"""Folders of the `data` scheme that are not searched for modules, although the prefix is a search path on Windows."""
_DECIDING_FILE = re.compile(
    r"(?:(?:bin|scripts)/)?(?:pyvenv\.cfg|[^/]*\._pth)|(?:lib(?:64)?/)?python[0-9]+\.zip(?:/.*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
"""Files, relative to the prefix, that decide where a Python looks for modules, or are such a place."""
_IMPORTED_AT_START = ("sitecustomize", "usercustomize")
METADATA_ENDS = (".dist-info", ".egg-info")
"""The ends, in any case, of folders and files that importlib.metadata takes for a distribution with entry points."""
_SCRIPT_FOLDERS = frozenset({"bin", "Scripts"})
_WRITTEN_BY_PIP = "INSTALLER/REQUESTED/RECORD/direct_url.json/"
"""Files that pip writes into the `.dist-info` folder."""
_MAX_FOLDER_CHARS = 8 * MIB
"""A hundred times more than ordinary wheels have."""
_MAX_NOTED_CHARACTERS = 200
_LONG_TEXT = 10_000
"""If the names in a folder are longer than this in total, they are searched by a set."""


def installed_tree(members: Mapping[str, Folder]) -> Files:
    """Return the folders of a wheel that are installed into site-packages, by their path there."""
    return [
        (place, each)
        for folder, each in members.items()
        if (place := site_folder(folder) if ".d" in folder else folder) is not None
    ]


def tree_problems(members: Mapping[str, Folder], installed: Files) -> Iterator[str]:
    """Yield why pip cannot install a tree: paths in a scheme, such as site-packages, that are a file and a folder."""
    site = list(installed)
    headers: Files = []
    below_prefix: Files = []
    for folder, inside in [each for each in members.items() if ".d" in each[0]]:
        top, _, path = folder.partition("/")
        if top.endswith(".dist-info"):
            site.append((folder, inside if path else Folder(inside.sources, inside.others + _WRITTEN_BY_PIP)))
        elif top.endswith(".data"):
            scheme, _, path = path.partition("/")
            if scheme == "headers":
                headers.append((path, inside))
            elif scheme in {"scripts", "data"}:
                below_prefix.append((f"bin/{path}".rstrip("/") if scheme == "scripts" else path, inside))
                if scheme == "data" and (match := _SOME_SITE.fullmatch(path)):
                    site.append((match[1] or "", inside))
    yield from _conflicts(site)
    if headers or below_prefix:
        yield from _conflicts(headers)
        yield from _conflicts(below_prefix)


def _conflicts(tree: Files) -> Iterator[str]:
    """Yield the paths that are both a file and a folder of one tree."""
    if _is_plain(tree) or not _may_clash(tree):
        return
    folders: dict[str, list[Folder]] = {}
    for place, inside in tree:
        folders.setdefault(place, []).append(inside)
    names: dict[str, set[str]] = {}
    checked: set[str] = set()
    for place in folders:
        while place and place not in checked:
            checked.add(place)
            parent, _, last = place.rpartition("/")
            for inside in folders.get(parent, ()):
                if len(inside.others) > _LONG_TEXT or len(inside.sources) > _LONG_TEXT:
                    if parent not in names:
                        names[parent] = {name for each in folders[parent] for name in each.names}
                    if last in names[parent]:
                        yield f"{place} is a file and a folder"
                elif (f"{last}/" in inside.others or last.endswith(".py")) and last in inside:
                    yield f"{place} is a file and a folder"
            place = parent


def _is_plain(tree: Files) -> bool:
    """Check quickly, by each folder and its parent, that no file has the path of a folder. False means unknown."""
    folders = dict(tree)
    if len(folders) < len(tree) or ".py/" in "/".join((*folders, "")):
        return False
    for place in folders:
        parent, _, last = place.rpartition("/")
        above = folders.get(parent)
        if above is None:
            if parent:
                return False
        elif above.others and (len(above.others) > _LONG_TEXT or f"{last}/" in above.others) and place:
            return False
    return True


def _may_clash(tree: Files) -> bool:
    """Check whether a file has the path of a folder, or a folder is named like a `.py` file. Few trees have any.

    Raise LimitExceededError if the paths of folders without direct files are excessively long in total.
    """
    folders = {place for place, _ in tree}
    parents = above = {place.rpartition("/")[0] for place in folders}
    chars = 0
    while above := above - folders:
        chars += sum(map(len, above))
        if chars > _MAX_FOLDER_CHARS:
            raise LimitExceededError("the paths of folders are too long together")
        folders |= above
        above = {place.rpartition("/")[0] for place in above}
        parents |= above
    files = [
        f"{place}/{name}" if place else name
        for place, inside in tree
        if inside.others and place in parents
        for name in inside.other_names
    ]
    return not folders.isdisjoint(files) or ".py/" in "/".join((*folders, ""))


def tree_notes(extract: Extract, installed: Files, modules: Sequence[str]) -> Iterator[str]:
    """Yield notes on effects that the record's `modules`, which are sorted, do not show."""
    members = extract.members
    at_root = [inside.others for place, inside in installed if not place]
    if "-info" in lower("\n".join([*[place for place, _ in installed], *at_root])):
        yield from _distribution_notes(installed)
    for name in _IMPORTED_AT_START:
        at = bisect_left(modules, name)
        if modules[at : at + 1] == (name,):
            yield f"{START_UP_CODE} {name}"
    folders = "\n".join(members)
    others = "".join([inside.others for inside in members.values()])
    sources = "".join([inside.sources for inside in members.values()])
    if "\\" in folders or "\\" in others or "\\" in sources or ".pyw" in others:
        yield from _windows_notes(members, modules)
    if ".data/" in folders:
        yield from _data_notes(members)
    yield from _all_start_up_notes(extract, installed, modules)


def _distribution_notes(installed: Files) -> Iterator[str]:
    """Yield a note on further distributions that Python finds in site-packages, except those that pip rejects."""
    if tops := [top for top in _metadata_tops(installed) if not top.endswith(".dist-info")]:
        yield f"{AMBIGUOUS} metadata of further distributions are installed: {_listed(tops)}"


def _metadata_tops(tree: Iterable[tuple[str, Folder]]) -> tuple[str, ...]:
    """Return the names directly in site-packages that have metadata of a distribution."""
    tops = [top for place, inside in tree for top in ([place.partition("/")[0]] if place else inside.other_names)]
    return unique(top for top in tops if lower(top).endswith(METADATA_ENDS))


def _windows_notes(members: Mapping[str, Folder], modules: Iterable[str]) -> Iterator[str]:
    """Yield notes on Windows, where backslashes separate folders and `.pyw` files are modules."""
    backslashes = sum("\\" in f"{folder}{inside.sources}{inside.others}" for folder, inside in members.items())
    paths = []
    for path in paths_of(members.items()):
        try:
            there = destination(path.replace("\\", "/"))
        except RefusedNameError:
            continue
        paths.append(f"{there[:-1]}" if there.endswith(".pyw") else there)
    modules_there = find_modules(installed_tree(dict(by_folder(paths)))).names
    if further := sorted(set(modules_there) - set(modules)):
        yield f"{AMBIGUOUS} modules on Windows alone: {_listed(further)}"
    elif backslashes:
        yield f"{AMBIGUOUS} names in {backslashes} folders have a backslash, which parts folders on Windows alone"


def _data_notes(members: Mapping[str, Folder]) -> Iterator[str]:
    scripts: list[str] = []
    sites: Files = []
    on_windows: Files = []
    deciding: list[str] = []
    start_up: list[str] = []
    metadata: list[str] = []
    for folder, inside in members.items():
        top, _, path = folder.partition("/")
        scheme, _, path = path.partition("/")
        if not top.endswith(".data"):
            continue
        if scheme == "scripts" or (scheme == "data" and path in _SCRIPT_FOLDERS):
            scripts += inside.names
        place = site_folder(folder)
        if scheme == "data":
            if match := _SOME_SITE.fullmatch(path):
                place = match[1] or ""
                sites.append((place, inside))
                start_up += [name for name in inside.other_names if not place and name.endswith(START_UP_ENDS)]
            elif (place := _windows_place(path)) is not None:
                on_windows.append((place, _windows_modules(inside)))
                start_up += [name for name in inside.other_names if not path and name.endswith(START_UP_ENDS)]
            written = (f"{path}/{name}".lstrip("/") for name in inside.names)
            deciding += [each for each in written if _DECIDING_FILE.fullmatch(each)]
        tops = () if place is None else _metadata_tops([(place, inside)])
        if any(scheme == "data" or top.endswith(".dist-info") for top in tops):
            metadata.append(folder)
    if metadata:
        yield f"{AMBIGUOUS} metadata are installed that pip does not resolve from: {_listed(metadata)}"
    if sites and (modules := find_modules(sites).names):
        yield f"{AMBIGUOUS} modules with some Pythons alone, by the data scheme: {_listed(modules)}"
    if modules := find_modules(on_windows).names:
        yield f"{AMBIGUOUS} modules on Windows alone, by the data scheme: {_listed(modules)}"
    if deciding:
        yield f"{AMBIGUOUS} files that decide where some Pythons look for modules: {_listed(deciding)}"
    if start_up:
        yield f"{AMBIGUOUS} .pth files with some Pythons alone, by the data scheme: {_listed(start_up)}"
    if scripts:
        yield f"{SCRIPTS} {_listed(sorted(scripts))}"


def _windows_place(path: str) -> str | None:
    """Return the path of a `data` scheme folder relative to a module folder of Python on Windows, or None."""
    first, _, rest = path.partition("/")
    if lower(first) in _WINDOWS_LIBRARIES:
        return rest
    return None if lower(first) in _USUAL_DATA else path


def _windows_modules(inside: Folder) -> Folder:
    """Return the files of a folder that are modules on Windows."""
    others = [name for name in inside.other_names if name.endswith((".pyc", ".pyd"))]
    return Folder(inside.sources, "".join(f"{name}/" for name in others))


def _all_start_up_notes(extract: Extract, installed: Files, modules: Iterable[str]) -> Iterator[str]:
    """Yield notes on start-up code first, including files that were not checked, and then on further paths."""
    checked = {name: content for name, content in extract.files.items() if name.endswith(START_UP_ENDS)}
    for name, content in checked.items():
        filename = name.rpartition("/")[2]
        if name.endswith(".start"):
            if calls := start_up_calls(content):
                yield f"{START_UP_CODE} {filename}: {_listed(printable(call, 100) for call in calls)}"
        elif start_up_lines(content)[0]:
            yield f"{START_UP_CODE} {filename}"
    unread = [
        name
        for folder, inside in extract.members.items()
        if (".pth/" in inside.others or ".start/" in inside.others) and site_folder(folder) == ""
        for name in inside.other_names
        if name.endswith(START_UP_ENDS) and (f"{folder}/{name}" if folder else name) not in checked
    ]
    if unread:
        yield f"{START_UP_CODE} perhaps, in files that were not looked into: {_listed(sorted(unread))}"
    for name, content in checked.items():
        if name.endswith(".pth"):
            yield from _path_notes(name, content, installed, modules)


def _path_notes(name: str, content: bytes, installed: Files, modules: Iterable[str]) -> Iterator[str]:
    filename = name.rpartition("/")[2]
    for path in start_up_lines(content)[1][:20]:
        parts = normal_parts(path.replace("\\", "/"))
        if path.startswith(("/", "\\")) or ":" in path or parts[:1] == [".."]:
            yield f"{FURTHER_PATH} {filename}: {printable(path, 100)}, outside of site-packages"
            continue
        place = "/".join(parts)
        below = [
            (folder[len(place) :].removeprefix("/"), inside)
            for folder, inside in installed
            if f"{folder}/".startswith(f"{place}/")
        ]
        further = sorted(set(find_modules(below).names) - set(modules))
        suffix = f", with the modules {_listed(further)}" if further else ""
        yield f"{FURTHER_PATH} {filename}: {printable(path, 100)}{suffix}"


def _listed(names: Iterable[str]) -> str:
    """Return the names in one line as far as a note has room, and the number of further ones."""
    listed = list(names)
    shown: list[str] = []
    length = 0
    for name in listed:
        length += len(name) + 2
        if shown and length > _MAX_NOTED_CHARACTERS:
            return f"{', '.join(shown)} and {len(listed) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)
