"""Read the metadata of an sdist, such as name, version, licence and links, from its first file that has them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pypi_assets.characters import printable
from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.installer_checks import is_static
from pypi_assets.distributions.metadata import CoreMetadata, decode_text, one_line, parse_metadata, with_facts
from pypi_assets.distributions.poetry_requirements import required_python
from pypi_assets.distributions.project_facts import join_urls
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.record import AMBIGUOUS, ErrorKind
from pypi_assets.distributions.requirements import differ
from pypi_assets.distributions.sdist_requirements import uses_pbr
from pypi_assets.distributions.setup_cfg import listed, mapped, parse_setup_cfg
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree

_POETRY_LINKS = {"repository": "Repository", "documentation": "Documentation"}


def read_metadata(
    files: Mapping[str, bytes],
    egg_info: str | None,
    pyproject: Mapping[str, Any],
    read_script: Callable[[], SetupArguments | None],
    extract: Extract,
    notes: list[str],
) -> CoreMetadata:
    """Return the metadata in PKG-INFO at the top, in the .egg-info, or in pyproject.toml, setup.cfg or setup.py.

    The last three need literal values. Add the file to `notes` unless it is the first of these. If no file has
    metadata, the extract fails.
    """
    for name in ("PKG-INFO", f"{egg_info}/PKG-INFO"):
        if name in files:
            metadata = parse_metadata(files[name], name)
            if not metadata.is_empty:
                if name != "PKG-INFO":
                    notes.append(f"metadata by: {printable(name)}")
                return metadata
            extract.fail(ErrorKind.BAD_METADATA, f"{printable(name)} has neither Metadata-Version nor Name nor Version")
    sources: tuple[tuple[str, Callable[[], Mapping[str, Any]], Callable[[Mapping[str, Any]], dict[str, Any]]], ...] = (
        ("pyproject.toml", lambda: table(pyproject, "project"), _project_facts),
        ("pyproject.toml", lambda: table(pyproject, "tool", "poetry"), _poetry_facts),
        ("setup.cfg", lambda: _setup_cfg_metadata(files), _setup_cfg_facts),
        ("setup.py", lambda: _script_metadata(read_script()), lambda _: {}),
    )
    for name, read, facts in sources:
        fields = read()
        if isinstance(fields.get("name"), str):
            notes.append(f"metadata by: {name}")
            metadata = CoreMetadata(
                name=_text(fields["name"]),
                version=_text(fields.get("version")),
                summary=_text(fields.get("description")),
                requires_python=_text(fields.get("requires-python")),
            )
            return with_facts(metadata, name, [], **facts(fields))
    extract.fail(ErrorKind.NO_METADATA, "neither PKG-INFO nor a project name in pyproject.toml, setup.cfg or setup.py")
    return CoreMetadata()


def _project_facts(project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of [project] (PEP 621), with licence expressions (PEP 639) and import names (PEP 794)."""
    written = project.get("license")
    names = [*_lines(project.get("import-names")), *_lines(project.get("import-namespaces"))]
    return {
        "license_expression": _line(written),
        "license_text": _line(table(project, "license").get("text")),
        "classifiers": _lines(project.get("classifiers")),
        "project_urls": _links(table(project, "urls")),
        "import_names": names if "import-names" in project or "import-namespaces" in project else None,
    }


def _poetry_facts(poetry: Mapping[str, Any]) -> dict[str, Any]:
    links = {label: poetry[key] for key, label in _POETRY_LINKS.items() if key in poetry}
    return {
        "license_text": _line(poetry.get("license")),
        "classifiers": _lines(poetry.get("classifiers")),
        "project_urls": join_urls(_links(links | {**table(poetry, "urls")}), _line(poetry.get("homepage")), None),
    }


def _setup_cfg_facts(metadata: Mapping[str, str]) -> dict[str, Any]:
    home_page = _line(metadata.get("url") or metadata.get("home_page"))
    links = _links(mapped(metadata.get("project_urls", "")))
    return {
        "license_expression": _line(metadata.get("license_expression")),
        "license_text": _line(metadata.get("license")),
        "classifiers": _lines(listed(metadata.get("classifiers") or metadata.get("classifier") or "")),
        "project_urls": join_urls(links, home_page, _line(metadata.get("download_url"))),
    }


def _setup_cfg_metadata(files: Mapping[str, bytes]) -> Mapping[str, str]:
    sections = parse_setup_cfg(decode_text(files.get("setup.cfg", b""), "setup.cfg")[0])
    metadata, options = sections.get("metadata", {}), sections.get("options", {})
    fields = {**metadata, "requires-python": options.get("python_requires")}
    return {key: value for key, value in fields.items() if value and not value.startswith(("attr:", "file:"))}


def _script_metadata(script: SetupArguments | None) -> Mapping[str, object]:
    if script is None:
        return {}
    return {"name": script.name, "version": script.version, "requires-python": script.python_requires}


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None


def _line(value: object) -> str | None:
    return (one_line(value) or None) if isinstance(value, str) else None


def _lines(value: object) -> list[str]:
    return [line for each in strings(value) if (line := one_line(each))]


def _links(links: Mapping[str, object]) -> list[str]:
    """Return each of `links` as `label, URL`."""
    return [
        f"{written_label}, {written_url}"
        for label, url in links.items()
        if (written_label := _line(label)) and (written_url := _line(url))
    ]


_UNKNOWN = object()
_NOTE = f"{AMBIGUOUS} PKG-INFO has another Requires-Python than the files that pip builds it from"


def with_built_python(tree: SourceTree, metadata: CoreMetadata) -> tuple[CoreMetadata, str | None]:
    """Return `metadata` with the Requires-Python that pip builds from the sdist's files, and a note if it differs.

    Metadata older than 2.2 can lack the field because setuptools did not write it. Then the note is None.
    """
    built = _built(tree)
    if built is _UNKNOWN or not _differ(metadata.requires_python, built):
        return metadata, None
    is_lacking = metadata.requires_python is None and not is_static(metadata)
    return replace(metadata, requires_python=built), None if is_lacking else _NOTE


def _differ(one: str | None, other: str | None) -> bool:
    return differ([f"python {one or ''}"], [f"python {other or ''}"])


def _built(tree: SourceTree) -> Any:
    """Return Requires-Python, None if there is none, or _UNKNOWN."""
    project, poetry = tree.table("project"), tree.table("tool", "poetry")
    is_dynamic = "requires-python" in strings(project.get("dynamic"))
    if tree.is_built_by(backend_names.POETRY) and not is_dynamic and "requires-python" not in project:
        return _of_poetry(table(poetry, "dependencies").get("python"))
    if "name" in project and not is_dynamic:
        return _line(project.get("requires-python"))
    flit = tree.table("tool", "flit", "metadata")
    if flit and not project and tree.is_built_by(backend_names.FLIT):
        return _line(flit.get("requires-python"))
    return _of_setuptools(tree) if tree.is_built_by_setuptools else _UNKNOWN


def _of_poetry(constraint: object) -> Any:
    """Return Poetry's constraint as Requires-Python, or _UNKNOWN. Versions of Poetry write wildcards differently."""
    try:
        specifiers = required_python(constraint) if isinstance(constraint, str) else None
    except ValueError:
        return _UNKNOWN
    return _UNKNOWN if specifiers and "*" in specifiers else specifiers


def _of_setuptools(tree: SourceTree) -> Any:
    """Return python_requires of setup.py, or else of setup.cfg, or _UNKNOWN."""
    if not {"setup.py", "setup.cfg"} & tree.files.keys() or uses_pbr(tree):
        return _UNKNOWN
    options = tree.setup_cfg.get("options", {})
    if "setup.py" in tree.files:
        script = tree.read_setup_script() or SetupArguments()
    else:
        script = SetupArguments(is_complete=bool(options))
    if script.changes_metadata or not script.is_complete:
        return _UNKNOWN
    if "python_requires" in options:
        written = options["python_requires"]
        return _UNKNOWN if "python_requires" in script.given or "%(" in written else _line(written)
    if "python_requires" in script.given and script.python_requires is None:
        return _UNKNOWN
    return _line(script.python_requires)
