"""What the pip of this interpreter unpacks of an sdist, in a scratch folder. Nothing of it is built or run."""

import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pip._internal.utils.unpacking import unpack_file

from pypi_assets.distributions.against_pip import has_doubt
from pypi_assets.distributions.archives import trimmed
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.record import DistributionRecord
from pypi_assets.distributions.sdist_names import readable

MAX_CONTENT = 1024**2
"""Of larger files, such as sparse ones, the content is not compared."""


@dataclass(frozen=True, slots=True)
class PipTree:
    """The files by their paths, with their content where it is small, or why pip refuses the archive."""

    files: dict[str, bytes | None]
    refusal: str | None = None


def unpacked_by_pip(content: bytes, filename: str) -> PipTree:
    """The tree that pip makes of an archive with this content and name."""
    with tempfile.TemporaryDirectory(prefix="pip-tree-") as scratch:
        archive, folder = Path(scratch) / filename, Path(scratch) / "tree"
        archive.write_bytes(content)
        logging.disable(logging.CRITICAL)
        try:
            unpack_file(str(archive), str(folder))
        except Exception as error:  # noqa: BLE001 - any of them is a refusal
            return PipTree({}, f"{type(error).__name__}: {error}")
        finally:
            logging.disable(logging.NOTSET)
        return PipTree(dict(_files_below(str(folder))))


def _files_below(root: str) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - names need not be text
            if os.path.isfile(path):  # noqa: PTH113
                small = os.path.getsize(path) <= MAX_CONTENT  # noqa: PTH202
                found.append((readable(os.path.relpath(path, root)), Path(path).read_bytes() if small else None))
    return found


def differences(extract: Extract, tree: PipTree) -> list[str]:
    """In what `extract`, which is not condensed, differs from pip's tree, which lacks the one folder that all is in."""
    if tree.refusal is not None:
        return [f"pip refuses it: {tree.refusal}"]
    tops = {path.partition("/")[0] if "/" in path else "" for path in extract.paths}
    top = f"{next(iter(tops))}/" if len(tops) == 1 and tops != {""} else ""
    paths = {path.removeprefix(top) for path in extract.paths}
    found = [f"by pip alone: {path!a}" for path in sorted(tree.files.keys() - paths)]
    found += [f"here alone: {path!a}" for path in sorted(paths - tree.files.keys())]
    for path, content in extract.files.items():
        theirs = tree.files.get(path.removeprefix(top))
        if theirs is not None and trimmed(path, theirs) != content:
            found.append(f"another content: {path!a}")
    return found


def silent_differences(extract: Extract, record: DistributionRecord, tree: PipTree) -> list[str]:
    """The differences of which the record gives no sign."""
    return [] if has_doubt(record) else differences(extract, tree)
