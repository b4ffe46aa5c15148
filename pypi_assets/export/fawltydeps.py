"""The file that FawltyDeps takes by `--custom-mapping-file`."""

from pypi_assets.export.spellings import header
from pypi_assets.export.top_level_names import toml_lines
from pypi_assets.questions.locks import LockedAnswer


def render(answer: LockedAnswer) -> str:
    """A line for each spelling of a project.

    FawltyDeps prefers it to what is installed, so it has pinned versions alone.
    """
    return f"{header('fawltydeps', answer.lock)}{toml_lines(answer)}"
