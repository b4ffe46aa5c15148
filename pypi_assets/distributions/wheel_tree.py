"""What a wheel's files do once they are installed, though no module of the record shows it, as notes.

Code that Python runs when it starts, further folders of modules, scripts, modules of other platforms and versions of
Python; and trees that no file system can have.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.members import Files, Folder, by_folder, paths_of
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.wheel_files import start_up_lines
from pypi_assets.distributions.wheel_names import RefusedNameError, destination, normal_parts, site_folder

START_UP_CODE = "start-up code:"
FURTHER_PATH = "further path:"
SCRIPTS = "installs scripts:"
"""How notes begin that name what is run, or found by import, without being a module of the record."""

_SOME_SITE = re.compile(
    r"(?:(?:local/)?lib(?:32|64)?/(?:python|pypy)[0-9.]+t?(?:/(?:site|dist)-packages)?|lib/site-packages)(?:/(.*))?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
"""Where modules are, from the prefix of some Python: the `data` scheme is installed below that prefix."""
_SCRIPT_FOLDERS = frozenset({"bin", "Scripts"})
_MAX_NOTED_CHARACTERS = 200
_LONG_TEXT = 10_000
"""A folder with names of more characters is searched by a set of them."""


def installed_tree(members: Mapping[str, Folder]) -> Files:
    """The folders of a wheel that come into site-packages, by their places there."""
    return [(place, each) for folder, each in members.items() if (place := site_folder(folder)) is not None]


def tree_problems(installed: Files) -> Iterator[str]:
    """Why pip cannot install a tree: what is a file and a folder."""
    folders: dict[str, list[Folder]] = {}
    for place, inside in installed:
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


def tree_notes(extract: Extract, installed: Files, modules: Iterable[str]) -> Iterator[str]:
    """Notes on what the record's `modules` do not show."""
    members = extract.members
    is_odd = has_data = False
    for folder, inside in members.items():
        others = inside.others
        is_odd = is_odd or "\\" in inside.sources or "\\" in others or ".pyw/" in others or "\\" in folder
        has_data = has_data or ".data/" in folder
    if is_odd:
        yield from _windows_notes(members, modules)
    if has_data:
        yield from _data_notes(members)
    for name, content in extract.files.items():
        if name.endswith(".pth"):
            yield from _start_up_notes(name, content, installed, modules)


def _windows_notes(members: Mapping[str, Folder], modules: Iterable[str]) -> Iterator[str]:
    """Backslashes part folders on Windows, and `.pyw` files are modules there."""
    backslashes = sum("\\" in f"{folder}{inside.sources}{inside.others}" for folder, inside in members.items())
    paths = []
    for path in paths_of(members.items()):
        try:
            there = destination(path.replace("\\", "/"))
        except RefusedNameError:
            continue
        paths.append(f"{there[:-1]}" if there.endswith(".pyw") else there)
    found = find_modules(installed_tree(dict(by_folder(paths)))).names
    if further := sorted(set(found) - set(modules)):
        yield f"{AMBIGUOUS} modules on Windows alone: {_listed(further)}"
    elif backslashes:
        yield f"{AMBIGUOUS} names in {backslashes} folders have a backslash, which parts folders on Windows alone"


def _data_notes(members: Mapping[str, Folder]) -> Iterator[str]:
    scripts: list[str] = []
    sites: Files = []
    metadata: list[str] = []
    for folder, inside in members.items():
        top, _, path = folder.partition("/")
        scheme, _, path = path.partition("/")
        if not top.endswith(".data"):
            continue
        if scheme == "scripts" or (scheme == "data" and path in _SCRIPT_FOLDERS):
            scripts += inside.names
        if scheme == "data" and (found := _SOME_SITE.fullmatch(path)):
            sites.append((found[1] or "", inside))
        if (place := site_folder(folder)) and place.partition("/")[0].endswith(".dist-info"):
            metadata.append(folder)
    if metadata:
        yield f"{AMBIGUOUS} metadata are installed that pip does not resolve from: {_listed(metadata)}"
    if sites and (modules := find_modules(sites).names):
        yield f"{AMBIGUOUS} modules with some Pythons alone, by the data scheme: {_listed(modules)}"
    if paths := [name for place, inside in sites if not place for name in inside.names if name.endswith(".pth")]:
        yield f"{AMBIGUOUS} .pth files with some Pythons alone, by the data scheme: {_listed(paths)}"
    if scripts:
        yield f"{SCRIPTS} {_listed(sorted(scripts))}"


def _start_up_notes(name: str, content: bytes, installed: Files, modules: Iterable[str]) -> Iterator[str]:
    has_code, paths = start_up_lines(content)
    filename = name.rpartition("/")[2]
    if has_code:
        yield f"{START_UP_CODE} {filename}"
    for path in paths[:20]:
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
        found = f", with the modules {_listed(further)}" if further else ""
        yield f"{FURTHER_PATH} {filename}: {printable(path, 100)}{found}"


def _listed(names: Iterable[str]) -> str:
    """The names in one line up to the room of a note, and how many more there are."""
    listed = list(names)
    shown: list[str] = []
    length = 0
    for name in listed:
        length += len(name) + 2
        if shown and length > _MAX_NOTED_CHARACTERS:
            return f"{', '.join(shown)} and {len(listed) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)
