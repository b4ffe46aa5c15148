"""The top-level names of pinned distributions, for tools that know no others."""

from pypi_assets.export.spellings import all_spellings, toml_array, toml_key
from pypi_assets.export.stubs import described_modules
from pypi_assets.questions.locks import LockedAnswer


def top_level_names(answer: LockedAnswer) -> dict[str, list[str]]:
    """The sorted top-level names of each project that has modules or stubs, by each spelling of its name.

    Stubs are named as their folder is: `yaml-stubs`.
    """
    names: dict[str, set[str]] = {}
    for release in answer.releases:
        roots = {module.partition(".")[0] for module in release.modules}
        roots |= {f"{module.partition('.')[0]}-stubs" for module in described_modules(release)}
        for spelling in all_spellings(release) if roots else ():
            names.setdefault(spelling, set()).update(roots)
    return {spelling: sorted(names[spelling]) for spelling in sorted(names)}


def toml_lines(answer: LockedAnswer) -> str:
    """The same as lines of a table of TOML."""
    return "".join(f"{toml_key(name)} = {toml_array(roots)}\n" for name, roots in top_level_names(answer).items())
