"""The process that parses source files: their imports, by `ast`. Nothing of them is run.

Run as a program by `source_imports.py`. A line of JSON with a path comes in, a line of JSON with the imports goes out.
Deep or huge sources can end an interpreter, so this one has bounded memory, and another one can take its place.
"""

import ast
import json
import resource
import sys
import warnings
from pathlib import Path

MEMORY_BYTES = 1024**3
MOST_BYTES = 8 * 1024**2
"""A longer file is not parsed."""
MOST_IMPORTS = 10_000
"""Of one file; what is beyond is left out."""
LONGEST_NAME = 600
"""A longer import is left out: no module is known by it."""


class NotReadError(Exception):
    """A file whose imports are not known; the text is why."""


def imports_in(path: Path) -> list[tuple[str, list[str]]]:
    """The imports of a file: each module with the names that are taken from it, in the order of their first places.

    `import a.b` is ("a.b", []), and `from a import b, c` is ("a", ["b", "c"]). Relative imports are left out. Raises
    NotReadError.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotReadError(error.strerror or str(error)) from None
    if len(content) > MOST_BYTES:
        raise NotReadError(f"longer than {MOST_BYTES} bytes")
    try:
        tree = ast.parse(content)
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        raise NotReadError(f"no Python: {error.msg}{where}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # a zero byte; what is nested too deep
        raise NotReadError(f"no Python: {str(error) or 'too deep or too large'}") from None
    found: dict[str, dict[str, None]] = {}
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            pairs = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            pairs = [(node.module, "" if alias.name == "*" else alias.name) for alias in node.names]
        else:
            continue
        for module, name in pairs:
            if len(module) + len(name) < LONGEST_NAME and count < MOST_IMPORTS:
                count += 1
                found.setdefault(module, {}).setdefault(name)
    return [(module, [name for name in names if name]) for module, names in found.items()]


def main() -> None:
    """Answers a line for each line, until there are no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")  # of odd escapes in sources
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"imports": imports_in(Path(json.loads(line)))}
        except NotReadError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)  # noqa: T201 - to the parent


if __name__ == "__main__":
    main()
