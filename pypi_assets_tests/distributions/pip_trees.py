"""Unpacks sdists into scratch folders with the pip of an interpreter. Nothing is built or run."""

import json
import logging
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pip._internal.utils.unpacking import unpack_file

from pypi_assets.distributions.archives import trimmed
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.pip_comparison import has_doubt
from pypi_assets.distributions.record import DistributionRecord
from pypi_assets.distributions.sdist_names import readable

MAX_CONTENT = 1024**2
"""The content of larger files, such as sparse ones, is not compared."""


@dataclass(frozen=True, slots=True)
class PipTree:
    """The files by path, with content if small, or the reason why pip rejects the archive."""

    files: dict[str, bytes | None]
    refusal: str | None = None


def unpacked_by_pip(content: bytes, filename: str) -> PipTree:
    """Return the tree that pip unpacks from an archive with this content and name."""
    with tempfile.TemporaryDirectory(prefix="pip-tree-") as scratch:
        archive, folder = Path(scratch) / filename, Path(scratch) / "tree"
        archive.write_bytes(content)
        logging.disable(logging.CRITICAL)
        try:
            unpack_file(str(archive), str(folder))
        except Exception as error:  # noqa: BLE001 - any error is a rejection
            return PipTree({}, f"{type(error).__name__}: {error}")
        finally:
            logging.disable(logging.NOTSET)
        return PipTree(dict(_files_below(str(folder))))


def unpacked_by_pips(archives: Mapping[str, tuple[bytes, str]], python: str) -> dict[str, PipTree]:
    """Return, by name, the trees that the pip of `python` unpacks. `archives` holds contents and filenames by name."""
    with tempfile.TemporaryDirectory(prefix="pip-trees-") as scratch:
        paths = {}
        for number, (name, (content, filename)) in enumerate(archives.items()):
            path = Path(scratch, str(number), filename)
            path.parent.mkdir()
            path.write_bytes(content)
            paths[name] = str(path)
        Path(scratch, "paths.json").write_text(json.dumps(paths))
        answer = Path(scratch, "refusals.json")
        command = [python, "-I", "-W", "ignore", "-c", _DRIVER, str(Path(scratch, "paths.json")), str(answer)]
        subprocess.run(command, check=True, cwd=scratch, capture_output=True, timeout=300)
        refusals: dict[str, str | None] = json.loads(answer.read_text())
        return {
            name: PipTree({}, refusals[name])
            if refusals[name]
            else PipTree(dict(_files_below(str(Path(path).parent / "tree"))))
            for name, path in paths.items()
        }


_DRIVER = """
import json, logging, os, resource, sys
from pip._internal.utils.unpacking import unpack_file

resource.setrlimit(resource.RLIMIT_FSIZE, (2**26, 2**26))  # some Pythons write a sparse file of any size
logging.disable(logging.CRITICAL)
with open(sys.argv[1]) as file:
    paths = json.load(file)
refusals = {}
for name, path in paths.items():
    refusals[name] = None
    try:
        unpack_file(path, os.path.join(os.path.dirname(path), "tree"))
    except Exception as error:
        refusals[name] = f"{type(error).__name__}: {error}"
with open(sys.argv[2], "w") as file:
    json.dump(refusals, file, ensure_ascii=True)
"""


def _files_below(root: str) -> list[tuple[str, bytes | None]]:
    paths: list[tuple[str, bytes | None]] = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - names may not be valid text
            if os.path.isfile(path):  # noqa: PTH113
                small = os.path.getsize(path) <= MAX_CONTENT  # noqa: PTH202
                paths.append((readable(os.path.relpath(path, root)), Path(path).read_bytes() if small else None))
    return paths


def differences(extract: Extract, tree: PipTree) -> list[str]:
    """Return the differences between an uncondensed extract and pip's tree, which omits the single top folder."""
    if tree.refusal is not None:
        return [f"pip refuses it: {tree.refusal}"]
    tops = {path.partition("/")[0] if "/" in path else "" for path in extract.paths}
    top = f"{next(iter(tops))}/" if len(tops) == 1 and tops != {""} else ""
    paths = {path.removeprefix(top) for path in extract.paths}
    listed = [f"by pip alone: {path!a}" for path in sorted(tree.files.keys() - paths)]
    listed += [f"here alone: {path!a}" for path in sorted(paths - tree.files.keys())]
    for path, content in extract.files.items():
        theirs = tree.files.get(path.removeprefix(top))
        if theirs is not None and trimmed(path, theirs) != content:
            listed.append(f"another content: {path!a}")
    return listed


def silent_differences(extract: Extract, record: DistributionRecord, tree: PipTree) -> list[str]:
    """Return the differences that the record does not report."""
    return [] if has_doubt(record) else differences(extract, tree)
