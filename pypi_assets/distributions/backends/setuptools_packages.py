"""The folders that setuptools' find_packages() and find_namespace_packages() take for packages, and those that commands
of a project's own copy."""

from collections.abc import Iterable

from pypi_assets.distributions.globs import matches_glob
from pypi_assets.distributions.members import Files
from pypi_assets.distributions.path_patterns import Effort
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree, clean_path, moved


def find_packages(
    tree: SourceTree, where: str, include: Iterable[str], exclude: Iterable[str], *, namespaces: bool
) -> list[str]:
    """The dotted names of the folders below `where` that are packages: with `__init__.py` in them and in all folders
    between, or any where `namespaces`."""
    start = f"{where}/" if where else ""
    cut = len(start)
    candidates = tree.sources if namespaces else tree.packages
    tree.effort.spend(4 * len(candidates))
    folders = sorted([folder for folder in candidates if folder.startswith(start) and folder != where])
    if not namespaces:
        accepted = {where}
        for folder in folders:
            if folder.rpartition("/")[0] in accepted:
                accepted.add(folder)
        folders = [folder for folder in folders if folder in accepted]
    names = [folder[cut:].replace("/", ".") for folder in folders if "." not in folder[cut:]]
    included = _named_by(include, names, tree.effort)
    excluded = frozenset(_named_by(exclude, included, tree.effort))
    return [name for name in included if name not in excluded]


def copied_files(tree: SourceTree, script: SetupArguments) -> Files:
    """What lies in the folders that the script's commands copy, each file once, as it lies below the packages' folder.

    The top is left out, since a build has more in it than the sdist.
    """
    files: Files = []
    taken: list[str] = []
    root = clean_path((script.package_dir or {}).get("", ""))
    for folder in sorted({clean_path(folder) for folder in script.copied} - {""}):
        if not any(folder.startswith(f"{above}/") for above in taken):
            taken.append(folder)
            files += moved(tree.below(folder), root if f"{folder}/".startswith(f"{root}/") else "")
    return files


def _named_by(patterns: Iterable[str], names: list[str], effort: Effort) -> list[str]:
    """Those of the dotted `names` that `patterns` match, most of which are a name with a star at one end."""
    exact: set[str] = set()
    starts: list[str] = []
    ends: list[str] = []
    others: list[str] = []
    for pattern in patterns:
        bare = pattern.strip("*")
        if set(bare) & set("*?["):
            others.append(pattern)
        elif pattern == bare:
            exact.add(pattern)
        elif not bare:
            return names
        elif pattern == f"{bare}*":
            starts.append(bare)
        elif pattern == f"*{bare}":
            ends.append(bare)
        else:
            others.append(pattern)
    first, last = tuple(starts), tuple(ends)
    named = [name for name in names if name in exact or name.startswith(first) or name.endswith(last)]
    if others:
        effort.spend(len(others) * sum([1 + len(name) // 64 for name in names]))
        plainly = frozenset(named)
        named = [name for name in names if name in plainly or any(matches_glob(name, each) for each in others)]
    return named
