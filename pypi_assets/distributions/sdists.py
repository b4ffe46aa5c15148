"""What an sdist says: metadata and requirements, from the first of its files that tells them without being run.

Which modules it would install is told in sdist_modules.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from pypi_assets.distributions.extracts import Extract, printable
from pypi_assets.distributions.metadata import (
    CoreMetadata,
    conditional,
    decode_text,
    parse_entry_points,
    parse_metadata,
    parse_requires_txt,
    parse_top_level,
    unique,
)
from pypi_assets.distributions.models import DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.records import build_record
from pypi_assets.distributions.sdist_modules import SourceTree, find_sdist_modules

_AT_TOP = frozenset({"PKG-INFO", "pyproject.toml", "setup.cfg"})
_IN_EGG_INFO = frozenset({"PKG-INFO", "requires.txt", "top_level.txt", "entry_points.txt"})
MAX_EGG_INFO_DEPTH = 4
"""Folders above and with the .egg-info: `demo-1.0/src/demo.egg-info` is 3. Deeper ones are test data."""


def is_wanted(name: str) -> bool:
    """Whether an sdist's record may need the content of this member; the top folder is not known yet."""
    *folders, filename = name.split("/")
    if len(folders) <= 1 and filename in _AT_TOP:
        return True
    return 0 < len(folders) <= MAX_EGG_INFO_DEPTH and folders[-1].endswith(".egg-info") and filename in _IN_EGG_INFO


def sdist_record(parts: FilenameParts, project: str | None, extract: Extract) -> DistributionRecord:
    """The record of an sdist; `notes` name the rules by which its requirements and modules are known."""
    notes: list[str] = []
    tree, files = _below_top(parts, extract, notes)
    pyproject = _read_pyproject(files, notes)
    egg_info = _choose_egg_info(parts, project, tree, files, notes)
    metadata = _read_metadata(files, egg_info, pyproject, extract, notes)

    facts = _Facts(files, metadata, pyproject, egg_info)
    requires_dist = _read_requirements(facts, notes)

    top_level = parse_top_level(files.get(f"{egg_info}/top_level.txt", b"")) if egg_info is not None else ()
    source_tree = SourceTree(
        members=tree,
        project=metadata.name or parts.project or project,
        declared=metadata.import_names or top_level,
        declared_by="Import-Name" if metadata.import_names else "top_level.txt",
        egg_info=egg_info,
        pyproject=pyproject,
        setup_cfg=decode_text(files.get("setup.cfg", b""), "setup.cfg")[0],
    )
    modules, module_notes = find_sdist_modules(source_tree)
    return build_record(
        parts,
        project,
        extract,
        metadata,
        requires_dist=requires_dist,
        provides_extra=unique((*metadata.provides_extra, *_extras(facts))),
        entry_points=_entry_points(facts),
        modules=modules,
        declared=(*top_level, *metadata.import_names),
        notes=(*notes, *module_notes),
    )


def _below_top(parts: FilenameParts, extract: Extract, notes: list[str]) -> tuple[list[str], dict[str, bytes]]:
    """Members and files relative to the sdist's one top folder, or to the root where there is none."""
    tops = unique(name.partition("/")[0] for name in extract.members if "/" in name)
    if "PKG-INFO" in extract.files or not tops:
        return extract.members, extract.files
    described = [top for top in tops if f"{top}/PKG-INFO" in extract.files]
    stem = f"{parts.project}-{parts.version}"
    top = next((top for top in described or tops if top == stem), (described or list(tops))[0])
    if len(tops) > 1 and not described and top != stem and _AT_TOP & set(extract.files):
        return extract.members, extract.files
    prefix = f"{top}/"
    members = [name.removeprefix(prefix) for name in extract.members if name.startswith(prefix)]
    if len(members) < len(extract.members):
        notes.append(f"{len(extract.members) - len(members)} files outside of {printable(prefix)} are ignored")
    files = {name.removeprefix(prefix): content for name, content in extract.files.items() if name.startswith(prefix)}
    return members, files


def _read_pyproject(files: Mapping[str, bytes], notes: list[str]) -> dict[str, Any]:
    if "pyproject.toml" not in files:
        return {}
    text, decode_notes = decode_text(files["pyproject.toml"], "pyproject.toml")
    notes += decode_notes
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:  # ValueError: an impossible date
        notes.append(f"pyproject.toml is broken: {printable(str(error))}")
        return {}


def _choose_egg_info(
    parts: FilenameParts, project: str | None, members: list[str], files: Mapping[str, bytes], notes: list[str]
) -> str | None:
    """The folder of the .egg-info that is this sdist's own: the shallowest of its name, or the only one."""
    folders = unique(
        name.rpartition("/")[0] for name in (*files, *members) if name.rpartition("/")[0].endswith(".egg-info")
    )
    shallow = sorted((name for name in folders if name.count("/") < MAX_EGG_INFO_DEPTH - 1), key=lambda f: f.count("/"))
    names = {canonicalize_name(name) for name in (parts.project, project) if name}
    for folder in shallow:
        if canonicalize_name(folder.rpartition("/")[2].removesuffix(".egg-info").partition("-")[0]) in names:
            return folder
    if len(shallow) == 1:
        return shallow[0]
    if shallow:
        notes.append(f"{len(shallow)} .egg-info folders, none of them named like the project: all are ignored")
    return None


def _read_metadata(
    files: Mapping[str, bytes],
    egg_info: str | None,
    pyproject: Mapping[str, Any],
    extract: Extract,
    notes: list[str],
) -> CoreMetadata:
    """PKG-INFO at the top, else the .egg-info's, else what pyproject.toml says statically."""
    for name in ("PKG-INFO", f"{egg_info}/PKG-INFO"):
        if name in files:
            metadata = parse_metadata(files[name], name)
            if not metadata.is_empty:
                if name != "PKG-INFO":
                    notes.append(f"metadata by: {printable(name)}")
                return metadata
            extract.fail(ErrorKind.BAD_METADATA, f"{printable(name)} has neither Metadata-Version nor Name nor Version")
    project = _table(pyproject, "project")
    if isinstance(project.get("name"), str):
        notes.append("metadata by: pyproject.toml")
        return CoreMetadata(
            name=printable(project["name"]),
            version=_text(project.get("version")),
            summary=_text(project.get("description")),
            requires_python=_text(project.get("requires-python")),
        )
    extract.fail(ErrorKind.NO_METADATA, "neither PKG-INFO nor a pyproject.toml with a project name")
    return CoreMetadata()


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the requirement rules look at."""

    files: Mapping[str, bytes]
    metadata: CoreMetadata
    pyproject: Mapping[str, Any]
    egg_info: str | None

    @property
    def project(self) -> Mapping[str, Any]:
        return _table(self.pyproject, "project")


def _read_requirements(facts: _Facts, notes: list[str]) -> tuple[str, ...] | None:
    for name, rule in _REQUIREMENT_RULES:
        if (requires_dist := rule(facts)) is not None:
            notes.append(f"requirements by: {name}")
            return requires_dist
    notes.append("requirements: unknown")
    return None


def _static_pkg_info(facts: _Facts) -> tuple[str, ...] | None:
    """PEP 643: since metadata 2.2, what is not named as dynamic is the same in every wheel of this sdist."""
    version = (facts.metadata.metadata_version or "").split(".")
    if not all(part.isdecimal() and len(part) < 10 for part in version) or [int(part) for part in version] < [2, 2]:
        return None
    return None if "requires-dist" in facts.metadata.dynamic else unique(facts.metadata.requires_dist)


def _pkg_info(facts: _Facts) -> tuple[str, ...] | None:
    return unique(facts.metadata.requires_dist) or None


def _pyproject(facts: _Facts) -> tuple[str, ...] | None:
    """PEP 621: `dependencies` and `optional-dependencies` of [project], unless either is dynamic."""
    dynamic = facts.project.get("dynamic")
    dynamic_fields = dynamic if isinstance(dynamic, list) else []
    if "name" not in facts.project or {"dependencies", "optional-dependencies"} & set(map(str, dynamic_fields)):
        return None
    requirements = _texts(facts.project.get("dependencies"))
    for extra, listed in _table(facts.project, "optional-dependencies").items():
        requirements += [conditional(requirement, extra=printable(extra)) for requirement in _texts(listed)]
    return unique(requirements)


def _requires_txt(facts: _Facts) -> tuple[str, ...] | None:
    content = facts.files.get(f"{facts.egg_info}/requires.txt")
    return None if content is None else unique(parse_requires_txt(content)[0])


def _egg_info_without_requires(facts: _Facts) -> tuple[str, ...] | None:
    """setuptools removes requires.txt where nothing is required."""
    return () if f"{facts.egg_info}/PKG-INFO" in facts.files else None


_REQUIREMENT_RULES: tuple[tuple[str, Callable[[_Facts], tuple[str, ...] | None]], ...] = (
    ("static PKG-INFO", _static_pkg_info),
    ("PKG-INFO", _pkg_info),
    ("pyproject.toml", _pyproject),
    ("requires.txt", _requires_txt),
    (".egg-info without requires.txt", _egg_info_without_requires),
)


def _extras(facts: _Facts) -> tuple[str, ...]:
    listed = tuple(printable(extra) for extra in _table(facts.project, "optional-dependencies"))
    return listed + parse_requires_txt(facts.files.get(f"{facts.egg_info}/requires.txt", b""))[1]


def _entry_points(facts: _Facts) -> dict[str, dict[str, str]]:
    """entry_points.txt of the .egg-info, else [project] scripts, gui-scripts and entry-points."""
    if (content := facts.files.get(f"{facts.egg_info}/entry_points.txt")) is not None:
        return parse_entry_points(content)
    groups = {
        "console_scripts": _table(facts.project, "scripts"),
        "gui_scripts": _table(facts.project, "gui-scripts"),
        **{
            group: _table(_table(facts.project, "entry-points"), group)
            for group in _table(facts.project, "entry-points")
        },
    }
    return {
        printable(group): {
            printable(name): printable(value) for name, value in entries.items() if isinstance(value, str)
        }
        for group, entries in groups.items()
        if entries
    }


def _table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None


def _texts(values: object) -> list[str]:
    return [" ".join(value.split()) for value in values if isinstance(value, str)] if isinstance(values, list) else []
