"""The table of pyproject.toml by which deptry finds the modules of a dependency."""

from pypi_assets.export.spellings import header
from pypi_assets.export.top_level_names import toml_lines
from pypi_assets.questions.locks import LockedAnswer


def render(answer: LockedAnswer) -> str:
    """The table. deptry compares names as they are written, so each has its usual spellings."""
    return f"{header('deptry', answer.lock)}[tool.deptry.package_module_name_map]\n{toml_lines(answer)}"
