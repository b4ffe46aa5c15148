"""Names and texts as other tools spell them."""

import json
import re
from collections.abc import Iterable, Mapping

from pypi_assets.locks.lock_content import toml_text
from pypi_assets.questions.locks import PinnedRelease

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_PLAIN_YAML = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_RESERVED_YAML = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def header(name: str, lock: str) -> str:
    """The comment that a file begins with: the command that makes it again."""
    shown = lock if lock.isprintable() and " " not in lock else json.dumps(lock)
    return f"# Made by `pypi-assets export {name} --lock {shown}`.\n"


def wheel_name(release: PinnedRelease) -> str:
    """The project as the name of its wheel begins: up to the first `-`. Without a wheel, as a build names it."""
    wheels = sorted(file.filename for file in release.chosen if file.kind == "wheel")
    return wheels[0].partition("-")[0] if wheels else release.pin.normalized.replace("-", "_")


def all_spellings(release: PinnedRelease) -> list[str]:
    """The project's name as people write it: as displayed, as the lock has it, and normalized. Each once, sorted.

    Some tools look a requirement up as it is written.
    """
    return sorted({release.project, release.pin.name, release.pin.normalized})


def toml_array(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_text, texts))}]"


def toml_key(name: str) -> str:
    """`name` as a key of TOML: a dot would divide it."""
    return name if _BARE_KEY.fullmatch(name) else toml_text(name)


def yaml_text(text: str) -> str:
    """`text` as a scalar of YAML 1.1 and 1.2, quoted where it could be something other than a text."""
    is_plain = _PLAIN_YAML.fullmatch(text) and text.lower() not in _RESERVED_YAML
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def python_mapping(mapping: Mapping[str, Iterable[str]], indent: str) -> str:
    """A dictionary of lists as BUILD files have it, by key, a line each."""
    lines = []
    for key in sorted(mapping):
        items = ", ".join(json.dumps(item, ensure_ascii=False) for item in mapping[key])
        lines.append(f"{indent}    {json.dumps(key)}: [{items}],\n")
    return f"{{\n{''.join(lines)}{indent}}}" if lines else "{}"
