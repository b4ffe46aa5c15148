"""The process that parses source files with `ast` to find their imports. It never runs the sources.

`source_imports.py` runs it as a program. It reads paths, and writes the imports of each: both are one line of JSON.
Deeply nested or huge sources can crash an interpreter, so this process has bounded memory and can be replaced.
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
"""The limit for one file. Further imports are ignored."""
LONGEST_NAME = 600
"""A longer import is ignored: no known module has such a long name."""


class NotReadError(Exception):
    """A file that could not be parsed, and the reason."""


def imports_in(path: Path) -> list[tuple[str, list[str]]]:
    """Return the imports of a file: each module with the names that are imported from it, in the order of appearance.

    `import a.b` is ("a.b", []), and `from a import b, c` is ("a", ["b", "c"]). Relative imports are ignored. Raises
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
        raise NotReadError(f"not valid Python: {error.msg}{where}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # a null byte, or deep nesting
        raise NotReadError(f"not valid Python: {str(error) or 'nested too deeply or too large'}") from None
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
    """Answer each line of stdin with a line on stdout, until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")  # about odd escapes in sources
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"imports": imports_in(Path(json.loads(line)))}
        except NotReadError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)  # noqa: T201 - to the parent


if __name__ == "__main__":
    main()
