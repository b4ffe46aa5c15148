"""Texts as TOML has them, for locks that are written."""

import json


def toml_text(text: str) -> str:
    """`text` as a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
