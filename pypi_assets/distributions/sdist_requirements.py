"""Finds what an sdist requires, from the first of its files that has it literally. None of them is run.

The rules are in the order of their trust. A rule that knows only a part of the requirements knows none: then the next
one counts. No rule guesses. So what no rule finds is unknown, which differs from no requirement.
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
"""setuptools drops it wherever it reads requirements."""
_OLD_POETRY = re.compile(r"(?:<=?1|<2(?:\.0)*\b(?!\.)|[=~]=1\.|===1\.|<2,|<2\.0\.0)")
_VARIABLE = re.compile(r"\$\{.")


@dataclass(frozen=True, slots=True)
class Requirements:
    """PEP 508 requirements and the names of extras, each once, and the rule that found them. None are `is_given` where
    nothing states that there are none, so that a plug-in may add some."""

    requires_dist: tuple[str, ...]
    extras: tuple[str, ...]
    by: str
    is_given: bool = True
    note: str | None = None


def find_requirements(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """The requirements by the first rule that finds them; None where they are unknown.

    pip takes what the build backend makes of its own files, whatever the metadata in the sdist state. So that counts
    where the two differ, and a note describes it.
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
    """The requirements that the build backend takes from its own files; None where they are unknown."""
    if tree.is_built_by(backend_names.POETRY):
        return _poetry_with_project(tree)
    if (declared := _pyproject(tree, CoreMetadata())) is not None:
        return declared
    if tree.is_built_by(backend_names.FLIT):
        return _flit(tree, CoreMetadata())
    if tree.is_built_by_setuptools and {"setup.py", "setup.cfg", "pyproject.toml"} & tree.files.keys():
        found = _setuptools(tree, CoreMetadata())
        return found if found is not None and found.is_given else None  # else a plug-in may give them
    return None


def _poetry_with_project(tree: SourceTree) -> Requirements | None:
    """What poetry-core makes of [project] and [tool.poetry]: before version 2 it knows its own table alone. Since then
    that one counts where [project] has no requirements; where it leaves some of them dynamic, both may count."""
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
    """PEP 643: since metadata 2.2, what is not named as dynamic is the same in every wheel of this sdist."""
    version = (metadata.metadata_version or "").split(".")
    if not all(is_digits(part) and len(part) < 10 for part in version) or [int(part) for part in version] < [2, 2]:
        return None
    if "requires-dist" in metadata.dynamic:
        return None
    return Requirements(unique(metadata.requires_dist), metadata.provides_extra, "static PKG-INFO")


def _pyproject(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """[project], next to which poetry-core reads its own table."""
    if tree.is_built_by(backend_names.POETRY):
        return _poetry_with_project(tree) if tree.table("project") else None
    return _declared(tree)


def _declared(tree: SourceTree, *, with_extras: bool = True) -> Requirements | None:
    """PEP 621: `dependencies` and `optional-dependencies` of [project], unless either is dynamic. What is missing and
    not dynamic, is none. `with_extras`: what extras of the project's own stand for, as hatchling writes it today."""
    project = tree.table("project")
    if "name" not in project or {"dependencies", "optional-dependencies"} & set(strings(project.get("dynamic"))):
        return None
    optional = table(project, "optional-dependencies")
    found = _of_extras(project.get("dependencies"), optional, "pyproject.toml")
    if not tree.is_built_by(backend_names.HATCHLING):
        return found
    if with_extras and optional:
        texts = {normalized_extra(extra): _texts(each) for extra, each in optional.items()}
        optional = with_own_extras(str(project["name"]), texts)
        found = _of_extras(project.get("dependencies"), optional, "pyproject.toml")
    resolved = [resolve_fields(requirement) or requirement for requirement in found.requires_dist]
    is_certain = not any(map(depends_on_environment, found.requires_dist))
    text = f"{AMBIGUOUS} variables of the environment decide about requirements, and none is taken to be set"
    return Requirements(unique(resolved), found.extras, found.by, note=None if is_certain else text)


def _are_computed(tree: SourceTree) -> bool:
    """Whether the backend fills in a part of a requirement that depends on the machine: `{root:uri}` for hatchling,
    `${PROJECT_ROOT}` and variables of the environment for PDM's."""
    project = tree.table("project")
    listed = [project.get("dependencies"), *table(project, "optional-dependencies").values()]
    if tree.is_built_by(backend_names.HATCHLING):
        return any(resolve_fields(each) is None for texts in listed for each in _texts(texts))
    if tree.is_built_by(backend_names.PDM):
        return any(_VARIABLE.search(each) for texts in listed for each in _texts(texts))
    return False


def _poetry_alone(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """[tool.poetry], unless [project] has a part of the requirements."""
    project = tree.table("project")
    has_part = _texts(project.get("dependencies")) or table(project, "optional-dependencies")
    return None if has_part and tree.is_built_by(backend_names.POETRY) else _poetry(tree, metadata)


def _poetry(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """[tool.poetry.dependencies] converted, where [project] doesn't state them or leaves them to Poetry."""
    poetry = tree.table("tool", "poetry")
    if "name" not in poetry and "dependencies" not in poetry:
        return None
    if (converted := poetry_requirements(poetry)) is None:
        return None
    requirements, extras = converted
    return Requirements(unique(map(one_line, requirements)), unique(extras), "pyproject.toml (poetry)")


def _flit(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """[tool.flit.metadata], flit's table from before [project]: `dev-requires` is the extra dev."""
    metadata = tree.table("tool", "flit", "metadata")
    if not metadata:
        return None
    optional = {**table(metadata, "requires-extra")}
    if "dev-requires" in metadata:
        optional["dev"] = metadata["dev-requires"]
    return _of_extras(metadata.get("requires"), optional, "pyproject.toml (flit)")


def _requires_txt(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """The .egg-info's requires.txt, which setuptools itself makes METADATA of."""
    content = tree.files.get(f"{tree.egg_info}/requires.txt")
    return None if content is None else Requirements(*parse_requires_txt(content), "requires.txt")


def _egg_info_without_requires(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """setuptools removes requires.txt where nothing is required."""
    if f"{tree.egg_info}/PKG-INFO" not in tree.files or metadata.requires_dist:
        return None
    return Requirements((), metadata.provides_extra, ".egg-info without requires.txt")


def _pbr(tree: SourceTree, _: CoreMetadata) -> Requirements | None:
    """pbr takes the requirements from requirements.txt, and extras from [extras] of setup.cfg."""
    if not uses_pbr(tree) or "extras" in tree.setup_cfg:
        return None
    lines = _requirements_files(tree, ["requirements.txt"])
    return None if lines is None else Requirements(unique(map(one_line, lines)), (), "requirements.txt (pbr)")


def uses_pbr(tree: SourceTree) -> bool:
    """Whether pbr makes the metadata, of files of its own."""
    return "files" in tree.setup_cfg or b"pbr" in tree.files.get("setup.py", b"")


def _setuptools(tree: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """What setuptools takes from [tool.setuptools.dynamic], else from setup.py, else from setup.cfg, which also counts
    where setup.py gives an empty list.

    What a call of setup() that is understood doesn't give, is none; not so where it has `**unknown`, where pbr or
    another build backend may give it, or where PKG-INFO has some.
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
    found = Requirements(*requirements_of_extras(cleaned), by or extras_by or "setup.py")
    given = {"dependencies": by, "optional-dependencies": extras_by}
    are_given = all(given.get(name, "given") for name in strings(project.get("dynamic")))
    return found if (by or extras_by) and are_given else replace(found, is_given=False)


Lines = Sequence[str] | None


def _install_requires(tree: SourceTree, script: SetupArguments, options: Mapping[str, str]) -> tuple[Lines, str]:
    """The requirements without extras (None where they are unknown), and where they are from."""
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
    """The requirements of each extra, as far as they are known, and where they are from."""
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
    """A list of setup.cfg: one requirement a line, or separated by `;` on one line, or the name of a file.

    A marker has quotes, so a line with quotes is one requirement. None where it names an option that there is not.
    """
    if "%(" in value:
        return None
    if value.startswith("file:"):
        return _requirements_files(tree, [name.strip() for name in value.removeprefix("file:").split(",")])
    is_one_line = "\n" not in value and "'" not in value and '"' not in value
    lines = value.split(";") if is_one_line else value.splitlines()
    return [line.strip() for line in lines if line.strip()]


def _requirements_files(tree: SourceTree, names: Sequence[str]) -> Lines:
    """The lines of requirements files; None where one isn't kept, or has options or lines that go on."""
    found = []
    for name in names:
        if name not in tree.files:
            return None
        for line in decode_text(tree.files[name], name)[0].splitlines():
            requirement = _COMMENT.sub("", line).strip()
            if requirement.startswith("-") or requirement.endswith("\\"):
                return None
            found.append(requirement)
    return [each for each in found if each] if names else None


def _pkg_info(_: SourceTree, metadata: CoreMetadata) -> Requirements | None:
    """PKG-INFO from before 2.2 promises nothing, but what it names was true where the sdist was made."""
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
