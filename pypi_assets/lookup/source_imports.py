"""Find the imports of source files that are neither from the standard library nor from the files' own folder."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from pypi_assets.errors import ExpectedError
from pypi_assets.lookup.import_owners import ImportOwners

MOST_FILES = 100_000
SECONDS_FOR_A_FILE = 30.0
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
_ANSWER_BYTES = 64 * 1024**2
_REMOVED = (
    "aifc asynchat asyncore audioop binhex cgi cgitb chunk crypt distutils formatter imghdr imp lib2to3 mailcap msilib"
    " nis nntplib ossaudiodev parser pipes smtpd sndhdr spwd sunau symbol telnetlib uu xdrlib"
)
STANDARD_LIBRARY = frozenset({*sys.stdlib_module_names, *_REMOVED.split(), "__main__"})
"""Top-level names of the standard library: of this Python, and modules that were removed since Python 3.8."""


class TooManyFilesError(ExpectedError):
    """A folder has more source files than the limit."""


@dataclass
class SourceImports:
    """The imports of source files: each module with the names that are imported from it.

    `left_out` lists the files that could not be parsed, each with the reason. `files` counts the files that were
    parsed.
    """

    modules: dict[str, set[str]] = field(default_factory=dict)
    left_out: list[tuple[Path, str]] = field(default_factory=list)
    files: int = 0

    def names(self) -> list[str]:
        """Return all names that may be modules, to look them up: for `from a import b`, these are `a` and `a.b`."""
        return sorted({*self.modules, *(f"{one}.{name}" for one, names in self.modules.items() for name in names)})


def imports_of(path: Path) -> SourceImports:
    """Return the imports of a source file, or of all source files below a folder.

    The standard library, relative imports and the folder's own modules are skipped. A module is the folder's own if it
    is found next to the importing file, in a folder above it up to `path`, in `src`, or in the package that contains
    `path`. Hidden folders, virtual environments and symbolic links to folders are not searched. Files are parsed in
    another process, with bounded time and memory. Raises TooManyFilesError.
    """
    found = SourceImports()
    root = path if path.is_dir() else path.parent
    with _Parser() as parser:
        for file in _source_files(path):
            try:
                imports = parser.imports_in(file)
            except _NotParsedError as error:
                found.left_out.append((file, str(error)))
                continue
            found.files += 1
            places = _places(file, root)
            for module, names in imports:
                if module.partition(".")[0] not in STANDARD_LIBRARY:
                    outside = {name for name in names if not _is_own(f"{module}.{name}", places)}
                    if outside or (not names and not _is_own(module, places)):
                        found.modules.setdefault(module, set()).update(outside)
    return found


def owners_of_modules(found: SourceImports, answers: Iterable[ImportOwners]) -> list[ImportOwners]:
    """Return the answers for `found.names()` that show what is imported, sorted by import.

    `from a import b` is answered by `a.b` if that is a module of another project, else by `a`. If the best owner of
    `a.b` has a much lower score than the best owner of `a`, both are returned, because a small project may have been
    named after something inside `a`.
    """
    by_name = {one["import"]: one for one in answers}
    kept: dict[str, ImportOwners] = {}
    for module, names in found.modules.items():
        parent = by_name[module]
        of_names = [by_name[f"{module}.{name}"] for name in sorted(names)]
        known = [one for one in of_names if one["module"] == one["import"]]
        further = [one for one in known if _best(one) != _best(parent)]
        kept.update((one["import"], one) for one in further)
        if len(further) < len(of_names) or not names or any(_is_weak(one, parent) for one in further):
            kept[module] = parent
    return [kept[name] for name in sorted(kept)]


def _best(one: ImportOwners) -> str | None:
    return one["candidates"][0]["normalized"] if one["candidates"] else None


def _is_weak(one: ImportOwners, parent: ImportOwners) -> bool:
    best, of_parent = one["candidates"][:1], parent["candidates"][:1]
    return bool(best and of_parent) and 2 * best[0]["score"] < of_parent[0]["score"]


def _source_files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    count = 0
    for folder, folders, files in os.walk(path):
        if folder != str(path) and _VIRTUAL_ENVIRONMENT in files:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            file = Path(folder, name)
            if name.endswith((".py", ".pyw")) and file.is_file():
                count += 1
                if count > MOST_FILES:
                    raise TooManyFilesError(f"{path} has more than {MOST_FILES:,} source files: choose a folder in it")
                yield file


def _places(file: Path, root: Path) -> tuple[Path, ...]:
    """Return the folders in which a file may find modules of its own project."""
    above = [file.parent, *(folder for folder in file.parents if folder == root or root in folder.parents)]
    outside = root.absolute()
    while (outside / "__init__.py").is_file() and outside != outside.parent:
        outside = outside.parent
        above.append(outside)
    return tuple(dict.fromkeys((*above, root / "src")))


def _is_own(module: str, places: tuple[Path, ...]) -> bool:
    return any(_is_in(module, place) for place in places)


@lru_cache(maxsize=65_536)
def _is_in(module: str, place: Path) -> bool:
    """Check whether a folder has the module.

    A namespace package has no file of its own, so the whole name must exist: other projects can provide other parts of
    it.
    """
    name, _, rest = module.partition(".")
    if not name.isidentifier():
        return False
    folder = place / name
    try:
        if (place / f"{name}.py").is_file() or (folder / "__init__.py").is_file():
            return True
        return folder.is_dir() and (_is_in(rest, folder) if rest else _has_sources(folder))
    except OSError:  # such as a name that is too long
        return False


def _has_sources(folder: Path) -> bool:
    return any(file.suffix == ".py" for file in folder.iterdir())


class _NotParsedError(Exception):
    """The reason why the imports of a file are unknown."""


class _Parser:
    """A process that parses files. It is replaced when it ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end()

    def imports_in(self, file: Path) -> list[tuple[str, list[str]]]:
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise AssertionError("stdin and stdout must be pipes")
        try:
            process.stdin.write(json.dumps(os.fspath(file)).encode() + b"\n")
            process.stdin.flush()
            line = _read_line(process.stdout.fileno(), SECONDS_FOR_A_FILE)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self._end()
            raise _NotParsedError(f"parsing takes more than {SECONDS_FOR_A_FILE:g} seconds") from None
        if not line.endswith(b"\n"):
            self._end()
            raise _NotParsedError("not parsable: parsing takes too much memory or crashes the interpreter")
        answer = json.loads(line)
        if "error" in answer:
            raise _NotParsedError(answer["error"])
        return [(module, names) for module, names in answer["imports"]]

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-I", "-c", _PROGRAM, *sys.path]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    _quietly(pipe.close)
            process.wait()


_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from pypi_assets.lookup.source_parser import main; main()"


def _read_line(descriptor: int, seconds: float) -> bytes:
    """Return a line of a pipe. If the pipe ends first, the line has no newline. Raises TimeoutError."""
    ends_at = time.monotonic() + seconds
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not line.endswith(b"\n") and len(line) < _ANSWER_BYTES:
            if not selector.select(max(0.0, ends_at - time.monotonic())):
                raise TimeoutError
            part = os.read(descriptor, 1 << 16)
            if not part:
                break
            line += part
    return line


def _quietly(close: Callable[[], object]) -> None:
    try:
        close()
    except BrokenPipeError:
        return
