"""The target `python_requirements` of a BUILD file of Pants, with the modules of each requirement."""

from collections import defaultdict

from pypi_assets.export.module_owners import module_owners
from pypi_assets.export.spellings import header, python_mapping
from pypi_assets.export.stubs import stub_only
from pypi_assets.questions.locks import LockedAnswer


def render(answer: LockedAnswer) -> str:
    """The target, with normalized names as keys.

    Pants looks a module up by its nearest ancestor, and takes none that two requirements have. So each module is
    entered once, and those below it only where they are of another project.
    """
    mapping: defaultdict[str, list[str]] = defaultdict(list)
    for module, project in module_owners(answer).simplified().items():
        mapping[project].append(module)
    return (
        f"{header('pants', answer.lock)}python_requirements(\n"
        f"    module_mapping={python_mapping(mapping, '    ')},\n"
        f"    type_stubs_module_mapping={python_mapping(stub_only(answer), '    ')},\n"
        ")\n"
    )
