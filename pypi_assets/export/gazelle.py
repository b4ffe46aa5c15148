"""gazelle_python.yaml, by which Gazelle for Bazel finds the wheel of an import (rules_python)."""

from pypi_assets.export.module_owners import module_owners
from pypi_assets.export.spellings import header, wheel_name, yaml_text
from pypi_assets.export.stubs import described_modules
from pypi_assets.questions.locks import LockedAnswer

REPOSITORY = "pip"
"""What the repository of wheels is called in most workspaces."""


def render(answer: LockedAnswer) -> str:
    """The manifest, with modules in order.

    A value is the name of a wheel's file up to its first `-`. Gazelle looks a module up by its nearest ancestor, so a
    module whose nearest ancestor has the same value is left out. Stubs are entered under the name of their wheel.
    """
    names = {release.pin.normalized: wheel_name(release) for release in answer.releases}
    mapping = {module: names[project] for module, project in module_owners(answer).simplified().items()}
    for release in answer.releases:
        if described_modules(release):
            stub = wheel_name(release).lower()
            mapping.setdefault(stub, stub)
    lines = [f"    {yaml_text(module)}: {yaml_text(mapping[module])}\n" for module in sorted(mapping)]
    modules = "".join(["  modules_mapping:\n", *lines]) if lines else "  modules_mapping: {}\n"
    return f"{header('gazelle', answer.lock)}manifest:\n{modules}  pip_repository:\n    name: {REPOSITORY}\n"
