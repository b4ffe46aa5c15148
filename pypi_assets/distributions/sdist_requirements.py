"""Find the requirements of an sdist in the first of its files that has them as literals. No file is run.

The rules are in the order of their reliability. If a rule finds only a part of the requirements, it returns nothing,
and the next rule is tried. No rule guesses: requirements that no rule finds are unknown, which is not the same as none.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pypi_assets.characters import is_digits, lower
from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.backends.hatch_settings import depends_on_environment, resolve_fields, with_own_extras
from pypi_assets.distributions.metadata import (
    CoreMetadata,
    decode_text,
    normalized_extra,
    one_line,
    parse_requires_txt,
    requirements_of_extras,
    unique,
)
from pypi_assets.distributions.poetry_requirements import poetry_requirements
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.requirements import differ
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree

_COMMENT = re.compile(r"(?:^|\s)#.*")
"""A comment. setuptools removes it wherever it reads requirements."""
_OLD_POETRY = re.compile(r"(?:<=?1|<2(?:\.0)*\b(?!\.)|[=~]=1\.|===1\.|<2,|<2\.0\.0)")
_VARIABLE = re.compile(r"\$\{.")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Distinct PEP 508 requirements and extras, and the rule that found them.

    If there are no requirements, `is_given` is False if no file states this explicitly. Then a plug-in may add some.
    """

    requires_dist: tuple[str, ...]
    extras: tuple[str, ...]
    by: str
    is_given: bool = True
    note: str | None = None


def find_requirements(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """Return the requirements by the first rule that finds them, or None if they are unknown.

    pip builds an sdist, so the files that the build backend reads decide. If the metadata in the sdist state other
    requirements, the backend's files count, and a note says so.
    """
    if _are_computed(tree):
        return None
    found = next((found for rule in _RULES if (found := rule(tree, metadata)) is not None), None)
    built = None if found is None else _as_built(tree)
    if found is None or built is None or built.by == found.by:
        return found
    if not differ(found.requires_dist, built.requires_dist, with_markers="(" not in built.by):
        return replace(found, note=built.note)
    as_written = _declared(tree, with_extras=False) if tree.is_built_by(backend_names.HATCHLING) else None
    if as_written and not differ(found.requires_dist, as_written.requires_dist):
        return replace(found, note=built.note)
    text = f"{found.by} has other requirements than the files that pip builds it from"
    return replace(built, note=f"{AMBIGUOUS} {text}")


def _as_built(tree: SourceTree) -> Requirements | None:
    """Return the requirements that the build backend takes from its own files, or None if they are unknown."""
    if tree.is_built_by(backend_names.POETRY):
        return _poetry_with_project(tree)
    if (declared := _pyproject(tree, CoreMetadata())) is not None:
        return declared
    if tree.is_built_by(backend_names.FLIT):
        return _flit(tree, CoreMetadata())
    if tree.is_built_by_setuptools and {"setup.py", "setup.cfg", "pyproject.toml"} & tree.files.keys():
        requirements = _setuptools(tree, CoreMetadata())
        return (
            requirements if requirements is not None and requirements.is_given else None
        )  # otherwise a plug-in may add them
    return None


def _poetry_with_project(tree: SourceTree) -> Requirements | None:
    """Return the requirements that poetry-core makes of [project] and [tool.poetry].

    Before version 2, poetry-core reads only its own table. Since then, its table counts if [project] has no
    requirements. If [project] leaves some of them dynamic, both may count.
    """
    project, own = tree.table("project"), _poetry(tree, CoreMetadata())
    required = strings(tree.table("build-system").get("requires"))
    if not project or (own and required and all(_OLD_POETRY.search(each.replace(" ", "")) for each in required)):
        return own
    listed, optional = _texts(project.get("dependencies")), table(project, "optional-dependencies")
    if not listed and not any(map(_texts, optional.values())):
        has_own = any(lower(name) != "python" for name in tree.table("tool", "poetry", "dependencies"))
        return own if has_own else _declared(tree)
    return _declared(tree)


def _static_pkg_info(_: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """Return the requirements of static metadata.

    Since metadata 2.2 (PEP 643), fields that are not listed as dynamic are the same in every wheel of the sdist.
    """
    version = (metadata.metadata_version or "").split(".")
    if not all(is_digits(part) and len(part) < 10 for part in version) or [int(part) for part in version] < [2, 2]:
        return None
    if "requires-dist" in metadata.dynamic:
        return None
    return Requirements(unique(metadata.requires_dist), metadata.provides_extra, "static PKG-INFO")


def _pyproject(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """Return the requirements of [project]. poetry-core reads its own table in addition."""
    if tree.is_built_by(backend_names.POETRY):
        return _poetry_with_project(tree) if tree.table("project") else None
    return _declared(tree)


def _declared(tree: SourceTree, *, with_extras: bool = True) -> Requirements | None:
    """Return `dependencies` and `optional-dependencies` of [project] (PEP 621), or None if either is dynamic.

    A field that is missing and not dynamic means no requirements. With `with_extras`, requirements on the project's own
    extras are replaced by their contents, as current hatchling writes them.
    """
    project = tree.table("project")
    if "name" not in project or {"dependencies", "optional-dependencies"} & set(strings(project.get("dynamic"))):
        return None
    optional = table(project, "optional-dependencies")
    requirements = _of_extras(project.get("dependencies"), optional, "pyproject.toml")
    if not tree.is_built_by(backend_names.HATCHLING):
        return requirements
    if with_extras and optional:
        texts = {normalized_extra(extra): _texts(each) for extra, each in optional.items()}
        optional = with_own_extras(str(project["name"]), texts)
        requirements = _of_extras(project.get("dependencies"), optional, "pyproject.toml")
    resolved = [resolve_fields(requirement) or requirement for requirement in requirements.requires_dist]
    is_certain = not any(map(depends_on_environment, requirements.requires_dist))
    text = f"{AMBIGUOUS} variables of the environment decide about requirements, and none is taken to be set"
    return Requirements(unique(resolved), requirements.extras, requirements.by, note=None if is_certain else text)


def _are_computed(tree: SourceTree) -> bool:
    """Check whether the backend fills in a part of a requirement that depends on the machine.

    Examples are `{root:uri}` for hatchling, and `${PROJECT_ROOT}` and environment variables for PDM.
    """
    project = tree.table("project")
    listed = [project.get("dependencies"), *table(project, "optional-dependencies").values()]
    if tree.is_built_by(backend_names.HATCHLING):
        return any(resolve_fields(each) is None for texts in listed for each in _texts(texts))
    if tree.is_built_by(backend_names.PDM):
        return any(_VARIABLE.search(each) for texts in listed for each in _texts(texts))
    return False


def _poetry_alone(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """Return the requirements of [tool.poetry] unless [project] has a part of them."""
    project = tree.table("project")
    has_part = _texts(project.get("dependencies")) or table(project, "optional-dependencies")
    return None if has_part and tree.is_built_by(backend_names.POETRY) else _poetry(tree, metadata)


def _poetry(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """Return the converted [tool.poetry.dependencies] if [project] does not state them or leaves them to Poetry."""
    poetry = tree.table("tool", "poetry")
    if "name" not in poetry and "dependencies" not in poetry:
        return None
    if (converted := poetry_requirements(poetry)) is None:
        return None
    requirements, extras = converted
    return Requirements(unique(map(one_line, requirements)), unique(extras), "pyproject.toml (poetry)")


def _flit(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """Return the requirements of [tool.flit.metadata], flit's table before [project]. `dev-requires` is an extra."""
    metadata = tree.table("tool", "flit", "metadata")
    if not metadata:
        return None
    optional = {**table(metadata, "requires-extra")}
    if "dev-requires" in metadata:
        optional["dev"] = metadata["dev-requires"]
    return _of_extras(metadata.get("requires"), optional, "pyproject.toml (flit)")


def _requires_txt(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """Return the requirements in requires.txt of the .egg-info, from which setuptools itself makes METADATA."""
    content = tree.files.get(f"{tree.egg_info}/requires.txt")
    return None if content is None else Requirements(*parse_requires_txt(content), "requires.txt")


def _egg_info_without_requires(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """Return no requirements if an .egg-info lacks requires.txt, which setuptools removes if nothing is required."""
    if f"{tree.egg_info}/PKG-INFO" not in tree.files or metadata.requires_dist:
        return None
    return Requirements((), metadata.provides_extra, ".egg-info without requires.txt")


def _pbr(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """Return the requirements of pbr, which come from requirements.txt. Extras in setup.cfg make them unknown."""
    if not uses_pbr(tree) or "extras" in tree.setup_cfg:
        return None
    lines = _requirements_files(tree, ["requirements.txt"])
    return None if lines is None else Requirements(unique(map(one_line, lines)), (), "requirements.txt (pbr)")


def uses_pbr(tree: SourceTree) -> bool:
    """Check whether pbr makes the metadata from its own files."""
    return "files" in tree.setup_cfg or b"pbr" in tree.files.get("setup.py", b"")


def _setuptools(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """Return what setuptools takes from [tool.setuptools.dynamic], or else from setup.py, or else from setup.cfg.

    setup.cfg also counts if setup.py gives an empty list. An argument that is missing in a call of setup() means no
    requirements. It is unknown instead if the call has `**unknown`, if pbr or another build backend may give it, or if
    PKG-INFO has requirements.
    """
    project = tree.table("project")
    if uses_pbr(tree) or not tree.is_built_by_setuptools or (project and "name" not in project):
        return None
    options = tree.setup_cfg.get("options", {})
    extras_options = tree.setup_cfg.get("options.extras_require", {})
    if "setup.py" in tree.files:
        script = tree.read_setup_script() or SetupArguments()
    else:
        script = SetupArguments(is_complete=bool(options or extras_options or project))
    if script.changes_metadata:
        return None
    install_requires, by = _install_requires(tree, script, options)
    extras_require, extras_by = _extras_require(tree, script, extras_options)
    if install_requires is None or extras_require is None or None in extras_require.values():
        return None
    if not by and not extras_by and metadata.requires_dist:
        return None
    sections = [("", install_requires), *extras_require.items()]
    cleaned = ((section, [one_line(_COMMENT.sub("", line)) for line in lines or ()]) for section, lines in sections)
    requirements = Requirements(*requirements_of_extras(cleaned), by or extras_by or "setup.py")
    given = {"dependencies": by, "optional-dependencies": extras_by}
    are_given = all(given.get(name, "given") for name in strings(project.get("dynamic")))
    return requirements if (by or extras_by) and are_given else replace(requirements, is_given=False)


Lines = Sequence[str] | None


def _install_requires(tree: SourceTree, script: SetupArguments, options: Mapping[str, str]) -> tuple[Lines, str]:
    """Return the requirements without extras, or None if they are unknown, and the file that they come from."""
    project = tree.table("project")
    dynamic = tree.table("tool", "setuptools", "dynamic")
    if project and "dependencies" not in strings(project.get("dynamic")):
        return _texts(project.get("dependencies")), "pyproject.toml"
    if "dependencies" in dynamic:
        return _requirements_files(tree, strings(table(dynamic, "dependencies").get("file"))), "pyproject.toml"
    if "install_requires" in script.given:
        if script.install_requires != () or "install_requires" not in options:
            return script.install_requires, "setup.py"
    elif not script.is_complete:
        return None, ""
    if "install_requires" in options:
        return _setup_cfg_lines(tree, options["install_requires"]), "setup.cfg"
    return (), ""


def _extras_require(
    tree: SourceTree, script: SetupArguments, options: Mapping[str, str]
) -> tuple[Mapping[str, Lines] | None, str]:
    """Return the requirements of each extra, as far as they are known, and the file that they come from."""
    project = tree.table("project")
    dynamic = table(tree.table("tool", "setuptools", "dynamic"), "optional-dependencies")
    if project and "optional-dependencies" not in strings(project.get("dynamic")):
        optional = table(project, "optional-dependencies")
        return {extra: _texts(listed) for extra, listed in optional.items()}, "pyproject.toml"
    if dynamic:
        files = {extra: strings(table(dynamic, extra).get("file")) for extra in dynamic}
        return {extra: _requirements_files(tree, names) for extra, names in files.items()}, "pyproject.toml"
    if "extras_require" in script.given:
        if script.extras_require != {} or not options:
            return script.extras_require, "setup.py"
    elif not script.is_complete:
        return None, ""
    if options:
        return {extra: _setup_cfg_lines(tree, value) for extra, value in options.items()}, "setup.cfg"
    return {}, ""


def _setup_cfg_lines(tree: SourceTree, value: str) -> Lines:
    """Return the items of a list in setup.cfg: one requirement a line, or separated by `;`, or the name of a file.

    Markers have quotes, so a line with quotes is one requirement. Return None if the list uses interpolation.
    """
    if "%(" in value:
        return None
    if value.startswith("file:"):
        return _requirements_files(tree, [name.strip() for name in value.removeprefix("file:").split(",")])
    is_one_line = "\n" not in value and "'" not in value and '"' not in value
    lines = value.split(";") if is_one_line else value.splitlines()
    return [line.strip() for line in lines if line.strip()]


def _requirements_files(tree: SourceTree, names: Sequence[str]) -> Lines:
    """Return the lines of requirements files, or None if a file was not stored, or has options or continued lines."""
    requirements = []
    for name in names:
        if name not in tree.files:
            return None
        for line in decode_text(tree.files[name], name)[0].splitlines():
            requirement = _COMMENT.sub("", line).strip()
            if requirement.startswith("-") or requirement.endswith("\\"):
                return None
            requirements.append(requirement)
    return [each for each in requirements if each] if names else None


def _pkg_info(_: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """Return the requirements of PKG-INFO before metadata 2.2.

    They are not guaranteed, but they were true on the machine that made the sdist.
    """
    if not metadata.requires_dist:
        return None
    return Requirements(unique(metadata.requires_dist), metadata.provides_extra, "PKG-INFO")


_RULES: tuple[Callable[[SourceTree, CoreMetadata], Requirements | None], ...] = (
    _static_pkg_info,
    _pyproject,
    _poetry_alone,
    _flit,
    _requires_txt,
    _egg_info_without_requires,
    _pbr,
    _setuptools,
    _pkg_info,
)


def _of_extras(listed: object, optional: Mapping[str, Any], by: str) -> Requirements:
    sections = [("", _texts(listed)), *((normalized_extra(extra), _texts(each)) for extra, each in optional.items())]
    return Requirements(*requirements_of_extras(sections), by)


def _texts(values: object) -> list[str]:
    return [one_line(value) for value in values if isinstance(value, str)] if isinstance(values, list) else []
