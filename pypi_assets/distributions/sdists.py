"""Make the record of an sdist from its files. None of them is run.

Each kind of fact has its own module: sdist_metadata, sdist_entry_points, sdist_requirements and sdist_modules.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pypi_assets.characters import normalized_name, printable
from pypi_assets.distributions.backends.manifest_in import condense_sources
from pypi_assets.distributions.build_scripts import is_build_script, named_scripts
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.metadata import decode_text, parse_metadata, unique
from pypi_assets.distributions.pyproject import parse_toml
from pypi_assets.distributions.record import AMBIGUOUS, DistributionRecord, FilenameParts
from pypi_assets.distributions.record_building import build_record
from pypi_assets.distributions.sdist_entry_points import find_entry_points
from pypi_assets.distributions.sdist_metadata import read_metadata, with_built_python
from pypi_assets.distributions.sdist_modules import (
    SdistModules,
    backend_note,
    find_sdist_modules,
    hook_note,
    plugin_note,
)
from pypi_assets.distributions.sdist_requirements import find_requirements
from pypi_assets.distributions.served_metadata import SERVED_METADATA, resolved_sdist
from pypi_assets.distributions.setup_script import SetupArguments, keep_arguments, kept_arguments, read_setup_script
from pypi_assets.distributions.source_tree import SourceTree

_AT_TOP_TEXT = (
    "PKG-INFO pyproject.toml setup.cfg setup.py requirements.txt flit.ini hatch.toml .gitignore .hgignore MANIFEST.in"
    " CMakeLists.txt meson.options meson_options.txt"
)
_AT_TOP = frozenset(_AT_TOP_TEXT.split())
_OF_HATCHLING = frozenset({"hatch.toml", ".gitignore", ".hgignore"})
_PROJECT_FILES = ("setup.py", "pyproject.toml")
"""Files that make a folder a project for pip."""
_IN_FOLDERS = {"meson.build": 6, "Cargo.toml": 3, "CMakeLists.txt": 4, "setup.py": 6}
"""Build files that may lie in folders, and their greatest depth including the top folder."""
_VENDORED = ("/subprojects/", "/vendored-meson/", "/vendor/", "/test cases/")
_NO_PART = re.compile(
    r"/(?:extern|external|third[_-]?party|3rd[_-]?party|deps|docs?|tests?|examples?|benchmarks?)/",
    re.IGNORECASE | re.ASCII,
)
"""Folders whose CMakeLists.txt or setup.py builds no module of the project."""
_WITH_PARTS = frozenset({"CMakeLists.txt", "setup.py"})
_IN_EGG_INFO = frozenset({"PKG-INFO", "SOURCES.txt", "requires.txt", "top_level.txt", "entry_points.txt"})
_READ_NAMES = _AT_TOP | _IN_FOLDERS.keys() | _IN_EGG_INFO
_pyproject_decoder = msgspec.json.Decoder(dict[str, Any])
MAX_EGG_INFO_DEPTH = 4
"""The maximum depth of the .egg-info. `demo-1.0/src/demo.egg-info` has depth 3. Deeper ones are test data."""


def is_wanted(name: str) -> bool:
    """Check whether the record of an sdist may need the content of this member. The top folder is not known yet."""
    if name[name.rfind("/") + 1 :] not in _READ_NAMES:  # true for nearly all members
        return is_build_script(name)
    *folders, filename = name.split("/")
    if len(folders) <= 1 and filename in _AT_TOP:
        return True
    if filename in _IN_FOLDERS:
        is_part = filename not in _WITH_PARTS or not _NO_PART.search(name)
        return is_part and len(folders) <= _IN_FOLDERS[filename] and not any(folder in name for folder in _VENDORED)
    return 0 < len(folders) <= MAX_EGG_INFO_DEPTH and folders[-1].endswith(".egg-info") and filename in _IN_EGG_INFO


def wanted(names: Iterable[str]) -> list[str]:
    """Return the member names for which `is_wanted` is true."""
    return [name for name in names if is_wanted(name)]


def condense(extract: Extract) -> None:
    """Condense the files of an extract in place, so that records can be made from it quickly.

    pyproject.toml is stored as JSON. An invalid one is stored unchanged, but never with a brace at its start. The
    arguments of the only setup.py are stored, even those that no rule needs today, together with the files that it may
    use and that it names. Other kinds of distributions have no such files. Raise the errors of the parsers. The extract
    is valid even then.
    """
    for name, content in extract.files.items():
        if name.rpartition("/")[2] == "pyproject.toml":
            try:
                extract.files[name] = msgspec.json.encode(parse_toml(content.decode()))
            except (ValueError, OverflowError):  # OverflowError: a number that JSON lacks
                extract.files[name] = b"\n" + content if content.startswith(b"{") else content
    filenames = {name: name.rpartition("/")[2] for name in extract.files}
    if not any(b"hatch" in extract.files[name] for name, filename in filenames.items() if filename == "pyproject.toml"):
        for name in [name for name, filename in filenames.items() if filename in _OF_HATCHLING]:
            del extract.files[name]
    for name in [name for name, filename in filenames.items() if filename == "SOURCES.txt"]:
        extract.files[name] = condense_sources(name, extract.files[name], extract.members)
    scripts = [name for name in extract.files if name.rpartition("/")[2] == "setup.py" and name.count("/") <= 1]
    if not scripts:
        for name in list(filter(is_build_script, extract.files)):
            del extract.files[name]
    if len(scripts) == 1:
        named = _keep_named(scripts[0], extract.files)
        extract.setup_arguments = keep_arguments(extract.files[scripts[0]], named)


def _keep_named(script: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """Delete the files that the only setup.py could use but does not name, and return the named ones."""
    top = script.removesuffix("setup.py")
    candidates = _files_next_to(script, files)
    named = named_scripts(files[script], candidates)
    for path in candidates.keys() - named:
        del files[f"{top}{path}"]
    return {path: content for path, content in candidates.items() if path in named}


def _files_next_to(script: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that a setup.py may import or run, by path relative to its folder."""
    top = script.removesuffix("setup.py")
    return {
        name[len(top) :]: content
        for name, content in files.items()
        if name.startswith(top) and is_build_script(name if top else f"./{name}")
    }


def sdist_record(parts: FilenameParts, project: str | None, extract: Extract) -> DistributionRecord:
    """Return the record of an sdist. `requires_by` and `modules_by` name the rules that found the values."""
    notes: list[str] = []
    members, top = _below_top(parts, extract, notes)
    files = {name[len(top) :]: content for name, content in extract.files.items() if name.startswith(top)}
    pyproject = _read_pyproject(files, notes)
    egg_info = _choose_egg_info(parts, project, members, top, files, notes)

    script = _SetupScript(files.get("setup.py"), _files_next_to("setup.py", files), extract.setup_arguments, notes)
    metadata = read_metadata(files, egg_info, pyproject, script.read, extract, notes)
    tree = SourceTree(
        members=members,
        top=top,
        files=files,
        project=metadata.name or parts.project or project,
        declared=metadata.declared_names,
        egg_info=egg_info,
        pyproject=pyproject,
        read_setup_script=script.read,
    )
    requirements = find_requirements(tree, metadata)
    entry_points, entry_points_note = find_entry_points(tree)
    metadata, python_note = with_built_python(tree, metadata)
    requires_dist, provides_extra, requires_by = (
        (requirements.requires_dist, requirements.extras, requirements.by)
        if requirements
        else (None, metadata.provides_extra, None)
    )
    resolved = resolved_sdist(parts, metadata, extract.served, requires_dist, provides_extra)
    if resolved.installed is not None:
        requires_dist, provides_extra = unique(resolved.metadata.requires_dist), resolved.metadata.provides_extra
        requires_by = SERVED_METADATA
    modules = find_sdist_modules(tree) if members else SdistModules()
    return build_record(
        parts,
        project,
        extract,
        metadata,
        requires_dist=requires_dist,
        requires_by=requires_by,
        provides_extra=provides_extra,
        entry_points=entry_points,
        modules=modules.names,
        modules_by=modules.by,
        modules_grade=modules.grade,
        stubs=modules.stubs,
        left_out=modules.left_out,
        declared=(*(tree.top_level or ()), *metadata.declared_names),
        notes=(
            *notes,
            *filter(None, [backend_note(tree), plugin_note(tree), requirements.note if requirements else None]),
            *filter(None, [entry_points_note, python_note, hook_note(tree)]),
            *modules.notes,
        ),
        resolved=resolved,
    )


@dataclass(slots=True)
class _SetupScript:
    """A setup.py, or None if there is none, the files that it may use, and its stored arguments as `kept`.

    It is read once, when a rule needs it.
    """

    source: bytes | None
    files: Mapping[str, bytes]
    kept: bytes
    notes: list[str]
    arguments: SetupArguments | None = None

    def read(self) -> SetupArguments | None:
        """Return its arguments, or None if there is no setup.py. A problem is added to the notes."""
        if self.arguments is None and self.source is not None:
            self.arguments = kept_arguments(self.kept) or read_setup_script(self.source, self.files)
            if self.arguments.problem:
                self.notes.append(self.arguments.problem)
        return self.arguments


def _below_top(parts: FilenameParts, extract: Extract, notes: list[str]) -> tuple[dict[str, Folder], str]:
    """Return the members in the only top folder with its name and a slash, or all members and "" if there is none."""
    members = extract.members
    if _is_lone_file(members):
        notes.append(f"{AMBIGUOUS} its only file lies in no folder: pip refuses it")
    if "PKG-INFO" in extract.files or not members:
        return members, ""
    first = next(iter(members)).partition("/")[0]
    top = f"{first}/"
    if not first or _outside(members, top):
        if (chosen := _choose_top(parts, extract)) is None:
            return members, ""
        top = f"{chosen}/"
        if outside := _outside(members, top):
            ignored = sum(len(members[folder]) for folder in outside)
            notes.append(f"{ignored} files outside of {printable(top)} are ignored")
            notes.append(f"{AMBIGUOUS} pip looks for the project outside of {printable(top)}, and finds none")
            members = {folder: inside for folder, inside in members.items() if folder not in outside}
    return members, top


def _is_lone_file(members: Mapping[str, Folder]) -> bool:
    return list(members) == [""] and len(members[""]) == 1


def _outside(members: dict[str, Folder], top: str) -> set[str]:
    """Return the folders of `members` that are neither `top` itself nor below it."""
    return {folder for folder in members if not folder.startswith(top)} - {top[:-1]}


def _choose_top(parts: FilenameParts, extract: Extract) -> str | None:
    """Return the folder that is the sdist's own if there are other files at the root, or None for the root itself.

    If there is more than one folder, pip removes none and finds the project at the root or not at all.
    """
    if any(name in extract.members.get("", Folder()) for name in _PROJECT_FILES):
        return None
    tops = unique(folder.partition("/")[0] for folder in extract.members if folder)
    if not tops:
        return None
    described = [top for top in tops if f"{top}/PKG-INFO" in extract.files]
    stem = f"{parts.project}-{parts.version}"
    top = next((top for top in described or tops if top == stem), (described or list(tops))[0])
    if len(tops) > 1 and not described and top != stem and _AT_TOP & set(extract.files):
        return None
    return top


def _read_pyproject(files: Mapping[str, bytes], notes: list[str]) -> dict[str, Any]:
    """Return pyproject.toml in the form in which `condense` stores it."""
    content = files.get("pyproject.toml", b"{}")
    try:
        if content.startswith(b"{"):
            return _pyproject_decoder.decode(content)
        text, decode_notes = decode_text(content, "pyproject.toml")
        notes += decode_notes
        return parse_toml(text)
    except msgspec.DecodeError:
        notes.append("pyproject.toml is broken: what was kept of it is no JSON")
    except ValueError as error:
        notes.append(f"pyproject.toml is broken: {printable(str(error))}")
    return {}


def _name_in(files: Mapping[str, bytes], name: str) -> str | None:
    """Return the project name in core metadata."""
    return parse_metadata(files[name], name).name if name in files else None


def _choose_egg_info(
    parts: FilenameParts,
    project: str | None,
    members: Iterable[str],
    top: str,
    files: Mapping[str, bytes],
    notes: list[str],
) -> str | None:
    """Return the folder of the sdist's own .egg-info: the shallowest with its name, or the only one."""
    kept_in = [name.rpartition("/")[0] for name in files if ".egg-info/" in name]
    kept_in = kept_in or [folder[len(top) :] for folder in members if folder.endswith(".egg-info")]
    if not kept_in:
        return None
    folders = unique(folder for folder in kept_in if folder.endswith(".egg-info"))
    shallow = sorted((name for name in folders if name.count("/") < MAX_EGG_INFO_DEPTH - 1), key=lambda f: f.count("/"))
    names = {normalized_name(name) for name in (parts.project, project) if name}
    for folder in shallow:
        if normalized_name(folder.rpartition("/")[2].removesuffix(".egg-info").partition("-")[0]) in names:
            return folder
    if len(shallow) == 1:
        if (other := _name_in(files, f"{shallow[0]}/PKG-INFO")) is None or normalized_name(other) in names:
            return shallow[0]
        if other == _name_in(files, "PKG-INFO"):
            return shallow[0]
        notes.append(f"{AMBIGUOUS} the .egg-info is of another project, and is ignored: {printable(other)}")
        return None
    if shallow:
        notes.append(f"{len(shallow)} .egg-info folders, none of them named like the project: all are ignored")
    return None
