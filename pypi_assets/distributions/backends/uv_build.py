"""Work out what uv's build backend installs: the modules in its settings, or the module named like the project."""

from pypi_assets.distributions.members import Files, merged
from pypi_assets.distributions.path_patterns import Patterns, without
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, module_name, moved


def installed(tree: SourceTree) -> Installed | None:
    """Return the modules of module-name, or the project's name, below module-root, without excluded files.

    module-root is `src` by default. Data of the schemes purelib and platlib is installed next to the modules.
    """
    settings = tree.table("tool", "uv", "build-backend")
    root = settings.get("module-root")
    root = clean_path(root) if isinstance(root, str) else "src"
    names = strings(settings.get("module-name")) or [_default_name(tree)]
    files: Files = []
    for name in names:
        folder, _, last = f"{root}/{name.replace('.', '/')}".strip("/").rpartition("/")
        if path := tree.named(folder, last):
            files += tree.at(path)
            files += tree.bytecode(path) if settings.get("default-excludes") is False else []
    excludes = [*strings(settings.get("source-exclude")), *strings(settings.get("wheel-exclude"))]
    # A pattern from the top matches only files. Other patterns also match everything below a folder.
    from_top = [pattern[1:] for pattern in excludes if pattern[:1] == "/"]
    anywhere = [f"**/{pattern}" for pattern in excludes if pattern[:1] != "/"]
    files = without(files, from_top, Patterns.FILE_GLOB, tree.effort)
    files = without(files, anywhere, Patterns.GLOB, tree.effort)
    placed = [each for scheme in ("purelib", "platlib") for each in _data(tree, table(settings, "data").get(scheme))]
    return Installed("uv module", merged([*moved(files, root), *placed])) if files else None


def _data(tree: SourceTree, folder: object) -> Files:
    """Return the files of a data folder that is installed to site-packages."""
    if not isinstance(folder, str):
        return []
    source = clean_path(folder)
    return moved(tree.below(source), source)


def _default_name(tree: SourceTree) -> str:
    name = module_name(tree.project or "")
    return f"{name.removesuffix('_stubs')}-stubs" if name.endswith("_stubs") else name
