"""Let pages of the site link to files of the repository that are outside docs/.

A link such as `[settings](../deploy/env.example)` works in the repository's browser. The site has no such page, so the
link becomes plain text there, or a link to the repository if mkdocs.yml sets `repo_url`. A missing file is a warning,
which fails the strict build.
"""

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OUTSIDE_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*)(?:#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.hooks.outside_links")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    folder = Path(page.file.abs_src_path).parent

    def replaced(link: re.Match[str]) -> str:
        text, target = link[1], (folder / link[2]).resolve()
        if target.is_relative_to(config.docs_dir):
            return link[0]
        if not target.is_relative_to(ROOT) or not target.exists():
            log.warning("%s links to '%s', which is not a file of the repository", page.file.src_uri, link[2])
        elif config.repo_url:
            kind = "tree" if target.is_dir() else "blob"
            return f"[{text}]({config.repo_url.rstrip('/')}/{kind}/main/{target.relative_to(ROOT).as_posix()})"
        return text

    return OUTSIDE_LINK.sub(replaced, markdown)
