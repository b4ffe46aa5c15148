"""The question `module`: find the projects that provide a module."""

from dataclasses import dataclass
from typing import Annotated

from packaging.utils import canonicalize_name

from pypi_assets.lookup.modules_reader import ModuleResult
from pypi_assets.lookup.newest_requirements import newest_providers
from pypi_assets.questions.names import ModuleName, Prefix
from pypi_assets.questions.question import Accepts, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot, reduced

_FEW = 8
"""The most providers of an answer by few reads. Most modules have one provider, and each takes two reads."""


@dataclass(frozen=True)
class ModuleParameters(Parameters):
    """Parameters of `module`."""

    module: ModuleName
    prefix: Prefix = False
    latest: Annotated[
        bool, Accepts(text="list only each project's newest version that provides it, which may not be its newest")
    ] = False


@question(
    "module",
    path="/v1/modules/{module}",
    example="yaml",
    result=ModuleResult,
    columns=lambda _given: ("module", "project", "versions"),
    name_column="module",
    sort_key=lambda result: (result["module"], canonicalize_name(result["project"])),
    key_size=2,
    nothing_found=lambda given: (
        f"no {'module begins with' if given.prefix else 'project provides the module'} {given.module}"
    ),
    hints=lambda snapshot, given: snapshot.module_hints(given.module),
    few=lambda snapshot, name: snapshot.few_providers(name, _FEW),
)
def module(snapshot: Snapshot, given: ModuleParameters, after: After = None) -> Found[ModuleResult]:
    """List the projects that provide a module, and in which versions."""
    found = snapshot.modules(given.module, after) if given.prefix else snapshot.providers(given.module)
    return reduced(found, newest_providers) if given.latest else found
