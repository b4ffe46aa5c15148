"""Work out what flit installs: one module, or one package with all its files."""

from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.source_tree import Installed, SourceTree, moved


def installed(tree: SourceTree) -> Installed | None:
    """Return the module named by [tool.flit.module], [tool.flit.metadata], flit.ini or the project's name.

    It lies at the top or in `src`.
    """
    if not (name := _module(tree)) or not (path := tree.first_named(("", "src"), name.replace(".", "/"))):
        return None
    return Installed("flit module", moved(tree.at(path), "src" if path.startswith("src/") else ""))


def _module(tree: SourceTree) -> str | None:
    """Return the dotted name of the module.

    A project's name is made a module name, except for the suffix `-stubs` of a package of stubs.
    """
    flit = tree.table("tool", "flit")
    old = parse_setup_cfg(decode_text(tree.files.get("flit.ini", b""), "flit.ini")[0]).get("metadata", {})
    candidates = (
        tree.table("tool", "flit", "module").get("name"),
        tree.table("tool", "flit", "metadata").get("module"),
        old.get("module"),
        flit.get("module"),
    )
    declared = next((each for each in candidates if isinstance(each, str) and each), None)
    if declared is not None:
        return declared
    written = tree.table("project").get("name")
    project = written if isinstance(written, str) and written else tree.project or ""
    stem = project.removesuffix("-stubs")
    return stem.replace("-", "_") + project[len(stem) :]
