"""Names the small Python files that a setup.py may import or run, and bounds what is kept and followed of them."""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_STEMS = frozenset({"__pkginfo__", "versioninfo", "version_info", "build", "_build"})
_STARTS = ("setup", "_setup", "build_", "_build_", "ffi_", "_ffi_")
_ENDS = ("_setup", "_build", "cffi")
_NO_PART = re.compile(r"/(?:extern|external|third_party|deps|docs?|tests?|testing|examples?|benchmarks?)/", re.ASCII)
MAX_FOLDERS = 6
"""How deep such a file lies at the most, the top folder included."""
MAX_WRITTEN_LENGTH = 250
"""A longer path or dotted name leads to none of them."""
MAX_FOLLOWED = 24
MAX_FOLLOWED_BYTES = 128 * 1024
"""Of the files that one setup.py imports or runs, all together, each as often as it is run."""


def is_build_script(name: str) -> bool:
    """Whether the member of an sdist has the name of a file that setup.py may use: `demo-1.0/setup_helpers.py`,
    `demo-1.0/demo/__pkginfo__.py`, `demo-1.0/src/demo/_core_build.py`."""
    if not name.endswith(".py"):
        return False
    stem = name[name.rfind("/") + 1 : -3]
    if stem == "setup" or not (stem in _STEMS or stem.startswith(_STARTS) or stem.endswith(_ENDS)):
        return False
    return 0 < name.count("/") <= MAX_FOLDERS and not _NO_PART.search(name)


def named_scripts(source: bytes, scripts: Mapping[str, bytes]) -> set[str]:
    """The paths of those of `scripts` whose module the setup.py `source` names, or a script that it names."""
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
    """The files by their paths from the folder of setup.py, of which each is parsed where it is used."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    parse: Callable[[bytes], ast.Module | None] = lambda _: None
    followed: int = 0
    followed_bytes: int = 0

    def path(self, written: str) -> str | None:
        """The path of the file that `written` leads to, None where there is none."""
        if len(written) > MAX_WRITTEN_LENGTH:
            return None
        path = "/".join(part for part in written.replace("\\", "/").split("/") if part not in {"", "."})
        return path if path in self.contents else None

    def tree(self, path: str) -> ast.Module | None:
        """The syntax of a file; None where it is no Python, or too much was followed already."""
        content = self.contents[path]
        self.followed += 1
        self.followed_bytes += len(content)
        if self.followed > MAX_FOLLOWED or self.followed_bytes > MAX_FOLLOWED_BYTES:
            return None
        return self.parse(content)
