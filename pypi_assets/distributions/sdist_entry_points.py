"""Find the entry points that a build of an sdist would declare, without building it.

If no file determines them, they are unknown, which is not the same as having no entry points.
"""

from collections.abc import Mapping
from typing import Any

from pypi_assets.characters import printable
from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.metadata import decode_text, parse_entry_points
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree

Groups = dict[str, dict[str, str]]
_DYNAMIC = frozenset({"scripts", "gui-scripts", "entry-points"})
_PLUGINS = frozenset({"pbr", "d2to1", "configuration"})
"""Arguments of setup() with which tools other than setuptools may add entry points."""


_NOTE = f"{AMBIGUOUS} its .egg-info has other entry points than the files that pip builds it from"


def find_entry_points(tree: SourceTree) -> tuple[Groups | None, str | None]:
    """Return object references by group and name, or None if only a build shows them, and a note or None.

    They come from entry_points.txt of the .egg-info, or else from the files that declare them. If the two differ, the
    declaring files count, since pip builds from them, and the note says so.

    Declaring files are [project] with the additions in Poetry's own tables, flit's tables, setup.cfg and setup.py. The
    files of setuptools count in addition to [project] if that leaves some entry points dynamic (PEP 621). An .egg-info
    without entry_points.txt means that there are none.
    """
    content = tree.files.get(f"{tree.egg_info}/entry_points.txt")
    declared, are_all = _of_pyproject(tree)
    built: Groups | None = declared
    if not are_all:
        others = _of_setuptools(tree)
        built = None if others is None else others | declared
    if content is None and f"{tree.egg_info}/PKG-INFO" not in tree.files:
        return built, None
    stated = declared if content is None else parse_entry_points(content)
    has_others = not {"poetry", "flit"}.isdisjoint(tree.table("tool"))  # setuptools does not read these tables
    if built is None or (has_others and tree.is_built_by_setuptools) or _comparable(stated) == _comparable(built):
        return stated, None
    return built, _NOTE


def _comparable(groups: Groups) -> Groups:
    """Return `groups` without empty groups and without blanks in references."""
    return {
        group: {name: "".join(reference.split()) for name, reference in entries.items()}
        for group, entries in groups.items()
        if entries
    }


def _of_pyproject(tree: SourceTree) -> tuple[Groups, bool]:
    """Return the entry points in the tables of pyproject.toml, and whether they are complete.

    They are complete if such a table has entry points, or if a table describes a project without any.
    """
    project, poetry, flit = tree.table("project"), tree.table("tool", "poetry"), tree.table("tool", "flit")
    groups: Groups = {}
    if poetry:
        groups = _groups(_of_poetry(poetry))
    elif flit and not project:
        groups = _groups(_of_tables(flit, "entrypoints"))
    if project:
        groups |= _groups(_of_tables(project, "entry-points"))
    if _DYNAMIC & set(strings(project.get("dynamic"))):
        return groups, bool(poetry) and tree.is_built_by(backend_names.POETRY)
    if groups or "name" in project:
        return groups, True
    described = "name" in poetry or ("metadata" in flit and not _has_flit_file(tree, table(flit, "metadata")))
    return groups, described and not tree.is_built_by(backend_names.SETUPTOOLS)


def _has_flit_file(tree: SourceTree, metadata: Mapping[str, object]) -> bool:
    """Check whether flit reads the entry points from a file. Such a file is not supported."""
    at_top = tree.members.get(tree.top[:-1], Folder())
    return "entry-points-file" in metadata or "entry_points.txt" in at_top


def _of_tables(settings: Mapping[str, Any], others: str) -> dict[str, dict[str, object]]:
    """Return the groups of `scripts`, of `gui-scripts` and of the tables in `others`."""
    return {
        "console_scripts": {**table(settings, "scripts")},
        "gui_scripts": {**table(settings, "gui-scripts")},
        **{group: {**table(settings, others, group)} for group in table(settings, others)},
    }


def _of_poetry(poetry: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Return Poetry's scripts and plugins. A script can be a table, but one of type `file` is not an entry point."""
    groups = {group: {**table(poetry, "plugins", group)} for group in table(poetry, "plugins")}
    scripts: dict[str, object] = {}
    for name, script in table(poetry, "scripts").items():
        if not isinstance(script, dict):
            scripts[name] = script
        elif script.get("type", "console") == "console":
            reference = script.get("reference") or script.get("callable")
            extras = ", ".join(strings(script.get("extras")))
            scripts[name] = f"{reference} [{extras}]" if extras and isinstance(reference, str) else reference
    groups["console_scripts"] = scripts | groups.get("console_scripts", {})
    return groups


def _of_setuptools(tree: SourceTree) -> Groups | None:
    """Return the entry points of setup.cfg, or else the literal ones of setup.py. Without both, use flit.ini."""
    if "flit.ini" in tree.files and not {"setup.cfg", "setup.py"} & tree.files.keys():
        sections = _as_written(tree, "flit.ini")
        groups = _groups({"console_scripts": {**sections.get("scripts", {})}})
        return groups if groups or not _has_flit_file(tree, sections.get("metadata", {})) else None
    if "entry-points" in tree.table("tool", "setuptools", "dynamic"):  # they are in a file
        return None
    has_options = b"[options.entry_points]" in tree.files.get("setup.cfg", b"")
    options = _as_written(tree, "setup.cfg").get("options.entry_points", {}) if has_options else {}
    return _of_sections(options) or _of_setup_script(tree)


def _of_setup_script(tree: SourceTree) -> Groups | None:
    """Return the literal entry points of setup.py, or None if they are unknown.

    There are none if the script was understood up to a call of setup() that does not pass any, and if no other file
    that setuptools reads has any.
    """
    script = _setup_arguments(tree)
    if script.changes_metadata:
        return None
    if isinstance(script.entry_points, str):
        return parse_entry_points(script.entry_points.encode("utf-8", "replace"))
    if script.entry_points is not None:
        return _of_sections({group: "\n".join(lines) for group, lines in script.entry_points.items()})
    is_passed = "entry_points" in script.given or script.given & _PLUGINS
    is_in_file = "entry_points" in tree.setup_cfg.get("options", {})
    return {} if tree.is_built_by_setuptools and script.is_complete and not is_passed and not is_in_file else None


def _setup_arguments(tree: SourceTree) -> SetupArguments:
    """Return the arguments of setup() in setup.py. Without setup.py they are complete if setuptools has other files."""
    if "setup.py" in tree.files:
        return tree.read_setup_script() or SetupArguments()
    has_options = any(section.startswith("options") for section in tree.setup_cfg)
    return SetupArguments(is_complete=bool(has_options or tree.table("project") or tree.backend))


def _as_written(tree: SourceTree, name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the sections of a file like setup.cfg. Names of groups and scripts keep their case and dashes."""
    return parse_setup_cfg(decode_text(tree.files[name], name)[0], names_as_written=True)


def _of_sections(sections: Mapping[str, str]) -> Groups:
    text = "".join(f"[{group}]\n{lines}\n" for group, lines in sections.items())
    return parse_entry_points(text.encode("utf-8", "replace"))


def _groups(tables: Mapping[str, Mapping[str, object]]) -> Groups:
    """Return `tables` without values that are not strings, and without groups that are then empty."""
    groups = {}
    for group, entries in tables.items():
        kept = {printable(name): printable(text) for name, text in entries.items() if isinstance(text, str)}
        if kept:
            groups[printable(group)] = kept
    return groups
