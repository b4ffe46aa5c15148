"""Where modules mostly lie in a project: the rule where neither metadata nor a build backend's settings name them."""

from pypi_assets.distributions.members import Files, by_folder
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, module_name, moved

_NOT_INSTALLED = (
    "setup conftest test tests testing example examples sample samples demo demos doc docs documentation manual"
    " benchmark benchmarks bench asv_bench perf script scripts tool tools util utils bin build dist ci contrib extra"
    " extras tasks fabfile noxfile toxfile pavement changelog news newsfragments exercise exercises htmlcov"
    " node_modules site_scons SConstruct ez_setup distribute_setup bootstrap versioneer runtests release make vendor"
    " typings notebooks recipe etc debian"
)
NOT_INSTALLED = frozenset(_NOT_INSTALLED.split())
"""Names at the top that lie next to a project's modules and are not installed."""
_SOURCE_FOLDERS = ("src", "lib", "python")


def installed(tree: SourceTree) -> Installed | None:
    """The package of the project's name, in a source folder or at the top; else the source folder's content; else
    packages, else modules at the top."""
    named = module_name(tree.project or "")
    at_top = tree.named("", named) if named else None
    if at_top in tree.packages and not any(tree.named(folder, named) for folder in _SOURCE_FOLDERS):
        return Installed("project's name", tree.at(str(at_top)), grade=ModulesGrade.GUESSED)
    for folder in _SOURCE_FOLDERS:
        if folder not in tree.packages and (found := tree.below(folder)):
            return Installed(f"{folder} layout", moved(found, folder), grade=ModulesGrade.GUESSED)
    if named and (path := tree.named("", named)) and (found := tree.at(path)):
        return Installed("project's name", found, grade=ModulesGrade.GUESSED)
    tops = set(tree.tops) - NOT_INSTALLED
    found = [each for top in sorted(tops & tree.packages.keys()) for each in tree.below(top)]
    found = found or by_folder(f"{name}.py" for name in tree.modules_at_top if name not in NOT_INSTALLED)
    found = found or [each for top in sorted(tops) for each in tree.below(top)]
    return Installed("flat layout", found, grade=ModulesGrade.GUESSED) if found else None


def declared_names(tree: SourceTree) -> Installed | None:
    """What lies under the import names that the metadata declare (PEP 794), wherever it lies."""
    found: Files = []
    for name in tree.declared:
        path = name.replace(".", "/")
        for folder in ("", *_SOURCE_FOLDERS):
            start = f"{folder}/{path}".lstrip("/")
            if below := tree.below(start) or tree.at(f"{start}.py"):
                found += moved(below, folder)
                break
    return Installed("Import-Name", found, grade=ModulesGrade.DERIVED) if found else None
