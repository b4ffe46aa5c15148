"""Make the record of a wheel from METADATA, entry points and modules, as pip sees them (PEP 427, PEP 491)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pypi_assets.characters import is_printable, normalized_name, printable
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.filenames import wheel_problems as filename_problems
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.metadata import (
    CoreMetadata,
    decode_text,
    one_line,
    parse_metadata,
    parse_requires_txt,
    parse_top_level,
    refused_requirements,
    unique,
)
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.record import AMBIGUOUS, START_UP_ENDS, DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.record_building import build_record
from pypi_assets.distributions.requirements import same_version
from pypi_assets.distributions.served_metadata import SERVED_METADATA, resolved_wheel
from pypi_assets.distributions.wheel_names import (
    RECORD,
    has_bom,
    is_utf8,
    metadata_problems,
    site_folder,
    wheel_problem,
)
from pypi_assets.distributions.wheel_tree import installed_tree, tree_notes, tree_problems

_BOM = b"\xef\xbb\xbf"
_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
_USUAL_REFERENCE = re.compile(
    r"\w+(?:\.\w+)*:\w+(?:\.\w+)*\s*(?:\[\s*[\w-]+(?:=\w+)?(?:,\s*\w+(?:=\w+)?)*\s*\])?", re.ASCII
)
_BLANK = re.compile(r"\s")
_MAX_REFERENCE = 4096
_MAX_NAME_BYTES = 255
"""The maximum length of a file's name on all usual file systems."""
_NAMED_BY_VERSION = frozenset({"pip", "easy_install"})
"""Scripts that pip installs under further names, such as `pip3.11`. An entry point `pip3` is replaced."""
_THEIR_PROJECTS = frozenset({"pip", "setuptools", "distribute"})
_SHOWN = 3


class InstalledEntryPoints(NamedTuple):
    """Object references by group and name, reasons why pip rejects the wheel, and other differences from `groups`."""

    groups: dict[str, dict[str, str]]
    problems: list[str]
    doubts: list[str]


def installed_entry_points(content: bytes, project: str | None = None) -> InstalledEntryPoints:
    """Return what pip makes of an entry_points.txt with this `content` in a wheel of `project`, a normalized name.

    A comment needs its own line, and a byte order mark is not a blank. Lines outside of groups are ignored. If two
    entry points have the same name, the last one counts.
    """
    if not content:
        return InstalledEntryPoints({}, [], [])
    text = decode_text(content.removeprefix(_BOM), "")[0]
    if content.startswith(_BOM):
        text = f"\ufeff{text}"
    groups: dict[str, dict[str, str]] = {}
    problems = [] if is_utf8(content) else ["entry_points.txt is not UTF-8"]
    if b"\0" in content:
        problems.append("entry_points.txt has NUL bytes")
    repeated: list[str] = []
    replaced: list[str] = []
    empty = 0
    group = None
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
            continue
        if group is None:
            continue
        name, equals, reference = (part.strip() for part in line.partition("="))
        if not equals:
            problems.append("entry_points.txt has a line without =")
        elif not name or not reference:
            empty += 1
        else:
            key = group if is_printable(group) else one_line(group)
            shown, target = one_line(name), one_line(reference)
            if (key, shown, target) != (group, name, reference):
                replaced.append(shown)
            names = groups.setdefault(key, {})
            if names.get(shown, target) != target:
                repeated.append(shown)
            names[shown] = target
    doubts = []
    if repeated:
        doubts.append(f"{len(repeated)} entry points are there twice, the last one counts: {repeated[0]}")
    if replaced:
        doubts.append(f"characters or blanks in {len(replaced)} entry points are replaced: {replaced[0]}")
    if empty:
        doubts.append(f"{empty} entry points without a name or a reference are left out")
    return InstalledEntryPoints(
        groups, [*problems, *_script_problems(groups)], [*doubts, *_script_doubts(groups, project)]
    )


def _script_problems(groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for group in _SCRIPT_GROUPS:
        for name, reference in groups.get(group, {}).items():
            if ":" not in reference.partition("[")[0]:
                yield f"the script {name} has no function"
            if "/" in name or "\\" in name or name in {".", ".."}:
                yield f"the script {name} leads out of its folder, where old versions write it"
            if len(name) * 4 > _MAX_NAME_BYTES and len(name.encode()) > _MAX_NAME_BYTES:
                yield f"the name of the script {printable(name, 40)} is too long for usual file systems"


def _script_doubts(groups: Mapping[str, Mapping[str, str]], project: str | None) -> Iterator[str]:
    scripts = [each for group in _SCRIPT_GROUPS for each in groups.get(group, {}).items()]
    odd = [name for name, reference in scripts if not _is_usual(name, reference)]
    if odd:
        shown = printable(", ".join(odd[:_SHOWN]), 150)
        yield f"pip refuses {len(odd)} scripts, or makes others of their lines: {shown}"
    versioned = _NAMED_BY_VERSION.intersection(groups.get("console_scripts", ()))
    if versioned and project not in _THEIR_PROJECTS:
        yield f"pip installs the script {min(versioned)} under names with a version too, and in their place"


def _is_usual(name: str, reference: str) -> bool:
    """Check whether pip makes a script with this name for this reference."""
    return (
        not name.startswith("[")
        and not _BLANK.search(name)
        and len(reference) <= _MAX_REFERENCE
        and _USUAL_REFERENCE.fullmatch(reference) is not None
    )


MAX_START_UP_FILES = 40
"""The maximum number of `.pth` and `.start` files that are checked. Each may lie elsewhere. A note names others."""
_KEPT = tuple(
    f".dist-info/{name}" for name in ("METADATA", "WHEEL", "entry_points.txt", "top_level.txt", "requires.txt")
)
_READ = (*_KEPT, RECORD)
_EMPTY = Folder()


def wanted(names: Iterable[str]) -> list[str]:
    """Return the names of members whose content a wheel's record needs."""
    # faster than checking how each one ends
    likely = [name for name in names if ".dist-info/" in name or ".pth" in name or ".start" in name]
    start_up = [name for name in likely if name.endswith(START_UP_ENDS) and site_folder(name.rpartition("/")[0]) == ""]
    return [name for name in likely if name.endswith(_READ) and name.count("/") == 1] + start_up[:MAX_START_UP_FILES]


def wheel_record(parts: FilenameParts, project: str | None, extract: Extract) -> DistributionRecord:
    """Return the record of a wheel. The content of the archive is authoritative."""
    notes: list[str] = []
    files = extract.files
    dist_info = _choose_dist_info(parts, extract, notes)
    content = files.get(f"{dist_info}/METADATA")
    metadata = CoreMetadata() if content is None else parse_metadata(content, "METADATA")
    if content is not None and metadata.is_empty:
        extract.fail(ErrorKind.BAD_METADATA, "METADATA has neither Metadata-Version nor Name nor Version")
    elif content is not None and has_bom(content):
        extract.fail(ErrorKind.BAD_METADATA, "METADATA begins with a byte order mark: pip finds no Name in it")
    elif content is None and dist_info is not None:
        extract.fail(ErrorKind.NO_METADATA, f"no {printable(dist_info)}/METADATA")
    own = None if metadata.name is None else normalized_name(metadata.name)
    entry_points, problems, doubts = installed_entry_points(files.get(f"{dist_info}/entry_points.txt", b""), own)
    notes += [f"{AMBIGUOUS} {doubt}" for doubt in doubts]
    resolved = resolved_wheel(parts, metadata, extract.served)
    if resolved.installed is None:
        requires_txt = files.get(f"{dist_info}/requires.txt")
        requires_dist, provides_extra, requires_by = _requirements(metadata, requires_txt, notes)
    else:
        requires_dist, provides_extra = unique(resolved.metadata.requires_dist), resolved.metadata.provides_extra
        requires_by = SERVED_METADATA
    installed = installed_tree(extract.members)
    modules = find_modules(installed)
    problems += [*filename_problems(parts.filename), *tree_problems(extract.members, installed)]
    if dist_info is not None and "direct_url.json" in extract.members.get(dist_info, _EMPTY):
        notes.append(f"{AMBIGUOUS} pip shows it as installed from the URL in its own direct_url.json")
    if dist_info is not None and content is not None:
        problems += [*metadata_problems(content), *_dist_info_problems(parts, extract, dist_info, metadata)]
    if refused := refused_requirements(requires_dist):
        problems.append(f"of a requirement: {printable(refused[0], 100)}")
    if problems:
        notes.append(f"{AMBIGUOUS} pip refuses it: {'; '.join(unique(problems)[:3])}")
    return build_record(
        parts,
        project,
        extract,
        metadata,
        requires_dist=None if metadata.is_empty else requires_dist,
        provides_extra=provides_extra,
        entry_points=entry_points,
        modules=modules.names if extract.members else None,
        modules_by="archive",
        stubs=modules.stubs,
        left_out=modules.unnameable,
        requires_by=requires_by,
        declared=(*parse_top_level(files.get(f"{dist_info}/top_level.txt", b"")), *metadata.declared_names),
        at_root=[each for place, each in installed if not place],
        notes=(*notes, *modules.notes, *tree_notes(extract, installed, modules.names)),
        resolved=resolved,
    )


def _requirements(
    metadata: CoreMetadata, requires_txt: bytes | None, notes: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the requirements, the extras and their source. pip takes what METADATA lacks from a requires.txt."""
    requires_dist, extras = unique(metadata.requires_dist), metadata.provides_extra
    if requires_txt is None or (requires_dist and extras):
        return requires_dist, extras, "METADATA"
    requires, further = parse_requires_txt(requires_txt)
    if (requires_dist or not requires) and (extras or not further):
        return requires_dist, extras, "METADATA"
    notes.append(f"{AMBIGUOUS} pip takes requirements from requires.txt, which METADATA does not have")
    return requires_dist or unique(requires), extras or unique(further), "requires.txt"


def _dist_info_problems(
    parts: FilenameParts, extract: Extract, dist_info: str, metadata: CoreMetadata
) -> Iterator[str]:
    """Yield files that pip misses in the `.dist-info` folder, and values that belong to another project or version."""
    inside = f"/{extract.members.get(dist_info, _EMPTY).others}"
    yield from [f"no {name} in {dist_info}" for name in ("WHEEL", "RECORD") if f"/{name}/" not in inside]
    wheel = extract.files.get(f"{dist_info}/WHEEL")
    if wheel is not None and (problem := wheel_problem(wheel)):
        yield problem
    if parts.project is None or parts.version is None:
        return
    if not dist_info.startswith(f"{parts.project}-"):
        project = normalized_name(parts.project)
        if not normalized_name(dist_info).startswith(project):
            yield f"{dist_info} is of another project than the file"
        elif normalized_name(dist_info.removesuffix(".dist-info").partition("-")[0]) != project:
            yield f"older versions take {dist_info} for another project, and newer ones once it is installed"
    if metadata.name is None or not (
        metadata.name == parts.project or normalized_name(metadata.name) == normalized_name(parts.project)
    ):
        yield "METADATA is of another project than the file"
    elif metadata.version is None or not same_version(metadata.version, parts.version):
        yield "METADATA is of another version than the file"


def _choose_dist_info(parts: FilenameParts, extract: Extract, notes: list[str]) -> str | None:
    """Return the `.dist-info` folder at the root that fits the filename, or the only one. Other cases are an error."""
    tops = [folder.partition("/")[0] for folder in extract.members if ".dist-info" in folder]
    folders = unique(top for top in tops if top.endswith(".dist-info"))
    fitting = [folder for folder in folders if _fits(folder, parts)]
    if len(fitting) == 1:
        if others := [folder for folder in folders if folder not in fitting]:
            text = f"further .dist-info folders, with which pip refuses it: {printable(', '.join(others))}"
            extract.fail(ErrorKind.BAD_METADATA, text)
            notes.append(text)
        return fitting[0]
    if len(folders) == 1:
        notes.append(f"the .dist-info folder does not fit the filename: {printable(folders[0])}")
        return folders[0]
    if folders:
        extract.fail(
            ErrorKind.BAD_METADATA,
            f"{len(folders)} .dist-info folders, of which {len(fitting)} fit the filename: "
            + printable(", ".join(folders)),
        )
    else:
        extract.fail(ErrorKind.NO_METADATA, "no .dist-info folder at the root")
    return None


def _fits(folder: str, parts: FilenameParts) -> bool:
    name, _, version = folder.removesuffix(".dist-info").rpartition("-")
    return (
        parts.project is not None
        and parts.version is not None
        and (name == parts.project or normalized_name(name) == normalized_name(parts.project))
        and same_version(version, parts.version)
    )
