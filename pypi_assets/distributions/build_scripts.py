"""Recognize the small Python files that a setup.py may import or run, and limit how many of them are followed."""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_STEMS = frozenset({"__pkginfo__", "versioninfo", "version_info", "build", "_build"})
_STARTS = ("setup", "_setup", "build_", "_build_", "ffi_", "_ffi_")
_ENDS = ("_setup", "_build", "cffi")
_NO_PART = re.compile(r"/(?:extern|external|third_party|deps|docs?|tests?|testing|examples?|benchmarks?)/", re.ASCII)
MAX_FOLDERS = 6
"""The greatest depth of such a file, counting the top folder."""
MAX_WRITTEN_LENGTH = 250
"""Longer paths and dotted names are ignored."""
MAX_FOLLOWED = 24
MAX_FOLLOWED_BYTES = 128 * 1024
"""The maximum total size of the files that one setup.py imports or runs. A file that is run twice counts twice."""


def is_build_script(name: str) -> bool:
    """Check whether a member of an sdist is named like a file that setup.py may use.

    Examples are `demo-1.0/setup_helpers.py`, `demo-1.0/demo/__pkginfo__.py` and `demo-1.0/src/demo/_core_build.py`.
    """
    if not name.endswith(".py"):
        return False
    stem = name[name.rfind("/") + 1 : -3]
    if stem == "setup" or not (stem in _STEMS or stem.startswith(_STARTS) or stem.endswith(_ENDS)):
        return False
    return 0 < name.count("/") <= MAX_FOLDERS and not _NO_PART.search(name)


def named_scripts(source: bytes, scripts: Mapping[str, bytes]) -> set[str]:
    """Return the paths of the `scripts` that `source`, a setup.py, names directly or through another script."""
    waiting = [source]
    left = set(scripts)
    while waiting and left:
        text = waiting.pop()
        helps = b"get_extensions" in text
        named = {path for path in left if _stem(path).encode() in text or (helps and _stem(path) == "setup_package")}
        left -= named
        waiting += [scripts[path] for path in named]
    return set(scripts) - left


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py")


@dataclass(slots=True)
class BuildScripts:
    """The build scripts by their paths relative to the folder of setup.py. Each one is parsed when it is used."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    parse: Callable[[bytes], ast.Module | None] = lambda _: None
    followed: int = 0
    followed_bytes: int = 0

    def path(self, written: str) -> str | None:
        """Return the path of the file that `written` refers to, or None if there is no such file."""
        if len(written) > MAX_WRITTEN_LENGTH:
            return None
        path = "/".join(part for part in written.replace("\\", "/").split("/") if part not in {"", "."})
        return path if path in self.contents else None

    def tree(self, path: str) -> ast.Module | None:
        """Return the syntax tree of a file, or None if it is not valid Python or the limits are reached."""
        content = self.contents[path]
        self.followed += 1
        self.followed_bytes += len(content)
        if self.followed > MAX_FOLLOWED or self.followed_bytes > MAX_FOLLOWED_BYTES:
            return None
        return self.parse(content)
