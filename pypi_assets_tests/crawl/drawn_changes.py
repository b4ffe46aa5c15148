"""Random operations on two projects of a served index."""

from hypothesis import strategies as st

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets_tests.served_index import ServedIndex

PROJECTS = ("Alpha", "beta.pkg")
VERSIONS = ("1.0", "1.1")
RELEASE_KINDS = ("remove_release", "yank", "unyank", "quarantine_release", "unquarantine_release")
PROJECT_KINDS = ("remove_project", "quarantine", "unquarantine")
KINDS = (*["wheel"] * 4, *["sdist"] * 3, "remove_file", *RELEASE_KINDS, *PROJECT_KINDS)


def drawn_changes(*more_kinds: str) -> st.SearchStrategy[tuple[str, str, str]]:
    """Draw the arguments of `do` after the index. The kind `yank_for` is a yank with a reason."""
    return st.tuples(st.sampled_from((*KINDS, *more_kinds)), st.sampled_from(PROJECTS), st.sampled_from(VERSIONS))


changes = drawn_changes()


def do(index: ServedIndex, kind: str, project: str, version: str) -> None:
    """Apply the operation to the index. Operations that the index rejects are ignored."""
    history = index.history
    try:
        if kind in {"wheel", "sdist"}:
            getattr(index, kind)(project, version)
        elif kind == "remove_file":
            history.remove_file(f"{project.replace('.', '_').lower()}-{version}.tar.gz")
        elif kind == "yank_for":
            history.yank(project, version, f"reason {index.serial} <of> {project}")
        elif kind in PROJECT_KINDS:
            getattr(history, kind)(project)
        else:
            getattr(history, kind)(project, version)
    except OperationRefusedError:
        pass
