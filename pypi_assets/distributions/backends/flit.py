"""What flit installs: one package or module, all that is in it."""

from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.source_tree import Installed, SourceTree, moved


def installed(tree: SourceTree) -> Installed | None:
    """The module of [tool.flit.module], [tool.flit.metadata], flit.ini or the project's name, at the top or in src."""
    if not (name := _module(tree)):
        return None
    path = name.replace(".", "/")
    for folder in ("", "src"):
        folder_, _, last = f"{folder}/{path}".strip("/").rpartition("/")
        if found := tree.named(folder_, last):
            return Installed("flit module", moved(tree.at(found), folder))
    return None


def _module(tree: SourceTree) -> str | None:
    flit = tree.table("tool", "flit")
    old = parse_setup_cfg(decode_text(tree.files.get("flit.ini", b""), "flit.ini")[0]).get("metadata", {})
    candidates = (
        tree.table("tool", "flit", "module").get("name"),
        tree.table("tool", "flit", "metadata").get("module"),
        old.get("module"),
        flit.get("module"),
        tree.table("project").get("name"),
        tree.project,
    )
    name = next((each for each in candidates if isinstance(each, str) and each), None)
    return None if name is None else name.replace("-", "_")
