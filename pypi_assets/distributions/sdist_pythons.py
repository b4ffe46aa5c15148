"""Finds the Requires-Python that a build of an sdist would state, without building it."""

from dataclasses import replace
from typing import Any

from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.metadata import CoreMetadata, one_line
from pypi_assets.distributions.poetry_requirements import required_python
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.refusals import is_static
from pypi_assets.distributions.requirement_differences import differ
from pypi_assets.distributions.sdist_requirements import uses_pbr
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree

_UNKNOWN = object()
_NOTE = f"{AMBIGUOUS} PKG-INFO has another Requires-Python than the files that pip builds it from"


def with_built_python(tree: SourceTree, metadata: CoreMetadata) -> tuple[CoreMetadata, str | None]:
    """Return `metadata` with the Requires-Python of the files that pip builds the sdist from, and a note if they state
    another one.

    Metadata older than 2.2 can lack the field, since setuptools did not write it. There is no note then.
    """
    built = _built(tree)
    if built is _UNKNOWN or not _differ(metadata.requires_python, built):
        return metadata, None
    is_lacking = metadata.requires_python is None and not is_static(metadata)
    return replace(metadata, requires_python=built), None if is_lacking else _NOTE


def _differ(one: str | None, other: str | None) -> bool:
    return differ([f"python {one or ''}"], [f"python {other or ''}"])


def _built(tree: SourceTree) -> Any:
    """The text, None where there is none, or _UNKNOWN."""
    project, poetry = tree.table("project"), tree.table("tool", "poetry")
    is_dynamic = "requires-python" in strings(project.get("dynamic"))
    if tree.is_built_by(backend_names.POETRY) and not is_dynamic and "requires-python" not in project:
        return _of_poetry(table(poetry, "dependencies").get("python"))
    if "name" in project and not is_dynamic:
        return _text(project.get("requires-python"))
    flit = tree.table("tool", "flit", "metadata")
    if flit and not project and tree.is_built_by(backend_names.FLIT):
        return _text(flit.get("requires-python"))
    return _of_setuptools(tree) if tree.is_built_by_setuptools else _UNKNOWN


def _of_poetry(constraint: object) -> Any:
    """Poetry's constraint in the form of metadata. Its versions write wildcards differently."""
    try:
        found = required_python(constraint) if isinstance(constraint, str) else None
    except ValueError:
        return _UNKNOWN
    return _UNKNOWN if found and "*" in found else found


def _of_setuptools(tree: SourceTree) -> Any:
    """python_requires of setup.py, else that of setup.cfg."""
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
        return _UNKNOWN if "python_requires" in script.given or "%(" in written else _text(written)
    if "python_requires" in script.given and script.python_requires is None:
        return _UNKNOWN
    return _text(script.python_requires)


def _text(value: object) -> str | None:
    return (one_line(value) or None) if isinstance(value, str) else None
