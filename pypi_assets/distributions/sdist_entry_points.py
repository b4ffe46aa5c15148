"""Finds the entry points that a build of an sdist would declare, without building it."""

from collections.abc import Mapping
from typing import Any

from pypi_assets.distributions.extract import printable
from pypi_assets.distributions.metadata import decode_text, parse_entry_points
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.source_tree import SourceTree

Groups = dict[str, dict[str, str]]
_DYNAMIC = frozenset({"scripts", "gui-scripts", "entry-points"})


def find_entry_points(tree: SourceTree) -> Groups:
    """Object references by group and name, from entry_points.txt of the .egg-info, else from what declares them.

    That is [project], with what Poetry's own tables add to it; flit's tables; setup.cfg; setup.py. setuptools' files
    count next to [project] where that leaves some of them dynamic (PEP 621). An .egg-info without entry_points.txt was
    written where there are none.
    """
    if (content := tree.files.get(f"{tree.egg_info}/entry_points.txt")) is not None:
        return parse_entry_points(content)
    project, poetry, flit = tree.table("project"), tree.table("tool", "poetry"), tree.table("tool", "flit")
    found: Groups = {}
    if poetry:
        found = _groups(_of_poetry(poetry))
    elif flit and not project:
        found = _groups(_of_tables(flit, "entrypoints"))
    if project:
        found |= _groups(_of_tables(project, "entry-points"))
    is_static = bool(project or poetry or flit) and not _DYNAMIC & set(strings(project.get("dynamic")))
    if is_static or f"{tree.egg_info}/PKG-INFO" in tree.files:
        return found
    return _of_setuptools(tree) | found


def _of_tables(settings: Mapping[str, Any], others: str) -> dict[str, dict[str, object]]:
    """The groups of `scripts`, of `gui-scripts` and of the tables in `others`."""
    return {
        "console_scripts": {**table(settings, "scripts")},
        "gui_scripts": {**table(settings, "gui-scripts")},
        **{group: {**table(settings, others, group)} for group in table(settings, others)},
    }


def _of_poetry(poetry: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Poetry's scripts and plugins. A script can be a table; of the type `file` it is no entry point."""
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


def _of_setuptools(tree: SourceTree) -> Groups:
    """Those of setup.cfg, else the literal ones of setup.py; of flit.ini where that is there instead."""
    if "flit.ini" in tree.files and not {"setup.cfg", "setup.py"} & tree.files.keys():
        sections = _as_written(tree, "flit.ini")
        return _groups({"console_scripts": {**sections.get("scripts", {})}})
    has_options = b"[options.entry_points]" in tree.files.get("setup.cfg", b"")
    if has_options and (options := _as_written(tree, "setup.cfg").get("options.entry_points")):
        return _of_sections(options)
    script = tree.read_setup_script() if b"entry_points" in tree.files.get("setup.py", b"") else None
    if script is None or script.entry_points is None:
        return {}
    if isinstance(script.entry_points, str):
        return parse_entry_points(script.entry_points.encode("utf-8", "replace"))
    return _of_sections({group: "\n".join(lines) for group, lines in script.entry_points.items()})


def _as_written(tree: SourceTree, name: str) -> Mapping[str, Mapping[str, str]]:
    """The sections of a file like setup.cfg; names of groups and scripts keep their case and their dashes."""
    return parse_setup_cfg(decode_text(tree.files[name], name)[0], names_as_written=True)


def _of_sections(sections: Mapping[str, str]) -> Groups:
    text = "".join(f"[{group}]\n{lines}\n" for group, lines in sections.items())
    return parse_entry_points(text.encode("utf-8", "replace"))


def _groups(tables: Mapping[str, Mapping[str, object]]) -> Groups:
    """`tables` without what is no text, and without groups that are empty then."""
    groups = {}
    for group, entries in tables.items():
        kept = {printable(name): printable(text) for name, text in entries.items() if isinstance(text, str)}
        if kept:
            groups[printable(group)] = kept
    return groups
