"""An index with hostile texts, and functions that detect hostile text in output.

Every text that an index or a file may choose is hostile here: names, versions, actions, reasons, errors, requirements,
entry points, modules. The `live_in_*` functions return the reasons why displayed text is not inert; tests expect an
empty list.
"""

import json
import re
import xmlrpc.client
import zipfile
from collections.abc import Iterator
from io import BytesIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.devindex.response_faults import BufferedAnswer, changed
from pypi_assets_tests.builders import core_metadata, zip_bytes
from pypi_assets_tests.served_index import JSON, ServedIndex

BEACON = "beacon.invalid"
"""The host of all URLs in the hostile texts."""
CONTROLS = "\x1b[31m\x00\x07\x9b2J\u202e\u2066\u200b"
PRINTABLE = (
    f"=cmd<img src={BEACON}><script>![i]({BEACON})[l](javascript:x){{x=1}}\"';DROP TABLE projects;--"
    f"&#x41;`a`|\\|![p]({BEACON})www.{BEACON} me@{BEACON} $(id)"
)
"""Hostile text for filenames, without control characters. `FILENAME` also removes slashes and backslashes."""
HOSTILE = f"{PRINTABLE} {CONTROLS}http://{BEACON}/a\\|![q](//{BEACON}/b.png)\r\n# h\n=1+1\t@SUM(1)\n* x"
FILENAME = f"evil-1.0-{PRINTABLE.replace(chr(92), '').replace('/', '')}.zip"
XML_TEXT = re.sub(r"[\x00-\x08\x0b-\x1f]", "", HOSTILE)
"""The hostile text without the characters that XML cannot represent."""
FAULT = f"the index: {HOSTILE}"
PROJECT, FIELDS, BROKEN, RENAMED = "evil", "fields", "broken", "renamed"
"""Project names. The index displays the last project under the name `XML_TEXT`."""

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_BLOCKS = {"inline", "paragraph_open", "paragraph_close"}
_INERT = {"text", "code_inline", "text_special", "softbreak"}
_AUTOLINKED = re.compile(r"://|www\.|\S@\S", re.IGNORECASE)
_FORMULA = re.compile(r"\s*[=+@\uff1d\uff0b\uff0d\uff20]|\s*-(?![0-9.]+$|$)")
_CELL = re.compile(r"(?:\\[\\|]|[^|])*")  # splits rows as micromark does, which Dagster's UI uses
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colours, which Dagster's log lines contain


def upload(index: ServedIndex) -> None:
    """Upload files with hostile content. `HostileAnswers` makes the responses about them hostile."""
    plain, text = index.wheel(PROJECT, "1.0"), HOSTILE.replace("\r", "").replace("\n", " ")
    path = text.replace("\0", "")  # Python's zipfile ends a name at NUL
    headers = [(name, text) for name in ("Summary", "Author", "Author-email", "License", "Keywords", "Classifier")]
    metadata = core_metadata(
        FIELDS, "1.0", requires_dist=[text, f"demo; extra == '{text}'", "demo"], extra_headers=headers
    )
    index.wheel(
        FIELDS,
        "1.0",
        metadata=metadata,
        files={f"{path.replace('/', '')}.py": "", "good/__init__.py": "", f"{path}/__init__.py": ""},
        entry_points=f"[console_scripts]\n{text} = good:main\ngood = {text}\n[{text}]\na = b\n",
        top_level=[text],
    )
    index.sdist(
        FIELDS, "1.0", files={"pyproject.toml": f"[project]\nname = {json.dumps(text)}\n", "setup.py": f"# {text}"}
    )
    named = f"{path}.dist-info/METADATA"
    broken = {"1.0-py3-none-any.whl": _refused_zip(text), "2.0-py3-none-any.whl": zip_bytes({named: metadata})}
    for rest, content in (broken | {"3.0.tar.gz": text.encode()}).items():
        path = index.folder / "built" / f"{BROKEN}-{rest}"
        path.write_bytes(content)
        index.history.add(path, project=BROKEN, version=rest[:3])
    index.history.yank(PROJECT, "1.0", "because")
    index.wheel(RENAMED, "1.0")
    index.history.yank(RENAMED, "1.0", "because")
    assert plain == "evil-1.0-py3-none-any.whl"


def upload_broken(index: ServedIndex, version: str) -> None:
    """Upload another unreadable file."""
    text = HOSTILE.replace("\r", "").replace("\n", " ")
    path = index.folder / "built" / f"{BROKEN}-{version}-py3-none-any.whl"
    path.write_bytes(zip_bytes({f"{text}.dist-info/METADATA": text}))
    index.history.add(path, project=BROKEN, version=version)


def _refused_zip(text: str) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            f"{BROKEN}-1.0.dist-info/METADATA", f"Metadata-Version: {text}\nName: {text}\nVersion: {text}\n"
        )
        archive.writestr(f"{text}-1.0.dist-info/METADATA", "")
    return buffer.getvalue()


class HostileAnswers:
    """A fault of a served index that adds hostile texts to responses. If `fails`, it returns only faults and errors."""

    def __init__(self, index: ServedIndex) -> None:
        self.fails = False
        self._index = index

    def __call__(self, request: Request) -> Response | None:
        path = request.url.path
        if self.fails:
            fault = xmlrpc.client.Fault(-32000, FAULT)
            body = xmlrpc.client.dumps(fault, methodresponse=True).encode("ascii", "xmlcharrefreplace")
            return Response(re.sub(rb"&#(27|7|155);|\x1b|\x07|\x00", b"", body), media_type="text/xml")
        if path == f"/simple/{PROJECT}/":
            return changed(_hostile_page)
        if path == "/pypi":
            return changed(_hostile_changelog)
        if path == "/simple/":
            return changed(_hostile_list)
        if BEACON.replace(".", "-") in path:  # as in a normalized name
            return Response(_renamed_page(self._index.page(RENAMED)), media_type=JSON)
        return None


def _hostile_page(answer: BufferedAnswer) -> BufferedAnswer:
    page = json.loads(answer.body)
    first = page["files"][0] | {"requires-python": HOSTILE, "yanked": HOSTILE}
    named = page["files"][0] | {"filename": FILENAME, "url": f"//{BEACON}/{FILENAME}", "yanked": False}
    entries = [{"filename": HOSTILE}, {"filename": f"{FILENAME}2", "url": 1, HOSTILE: HOSTILE}, HOSTILE]
    return answer.with_body(json.dumps({**page, "name": page["name"], "files": [first, named, *entries]}).encode())


def _renamed_page(body: bytes) -> bytes:
    page = json.loads(body)
    file = page["files"][0] | {"filename": FILENAME, "yanked": HOSTILE, "requires-python": HOSTILE}
    return json.dumps({**page, "name": XML_TEXT, "versions": [HOSTILE, XML_TEXT], "files": [file]}).encode()


def _hostile_list(answer: BufferedAnswer) -> BufferedAnswer:
    listed = json.loads(answer.body)
    for project in listed["projects"]:
        project["name"] = XML_TEXT if project["name"] == RENAMED else project["name"]
    broken = [{"name": HOSTILE, "_last-serial": HOSTILE}, {HOSTILE: HOSTILE}]
    return answer.with_body(json.dumps({**listed, "projects": [*listed["projects"], *broken]}).encode())


def _hostile_changelog(answer: BufferedAnswer) -> BufferedAnswer:
    values, _ = xmlrpc.client.loads(answer.body)
    if not isinstance(values[0], list):
        return answer
    text = XML_TEXT
    rows = [
        [text, text, timestamp, f"{action} {text}", serial]
        if name == RENAMED
        else [name, version, timestamp, f"{action} {text}" if action.startswith("create") else action, serial]
        for name, version, timestamp, action, serial in values[0]
    ]
    rows += [[text, text, "no time", text, rows[-1][-1]]] if rows else []
    return answer.with_body(xmlrpc.client.dumps((rows,), methodresponse=True, allow_none=True).encode())


def live_in_line(shown: str) -> list[str]:
    """Return control characters and characters that change the direction of text, in text of one or several lines."""
    return [f"{char!r} in {shown[:200]!r}" for char in dict.fromkeys(shown) if not char.isprintable() and char != "\n"]


def live_in_terminal(printed: str) -> list[str]:
    """Return such characters in terminal output, which may also contain tabs and the program's own colours."""
    return live_in_line(_ESCAPES.sub("", printed).replace("\t", " "))


def live_in_csv(cells: Iterator[str]) -> list[str]:
    """Return the cells that a spreadsheet would interpret as formulas."""
    return [cell for cell in cells if _FORMULA.match(cell) or live_in_line(cell)]


def live_in_markdown(text: str) -> list[str]:
    """Return the images, links, HTML and other markup that Dagster's UI would render, except code and tables."""
    lines = text.splitlines()
    if len(lines) < 2 or set(lines[1]) - set("| -"):
        return live_in_line(text) + [found for line in lines for found in _live_tokens(_MARKDOWN.parse(line), line)]
    rows = [line for line in lines if line.startswith("|")]
    others = [line for line in lines if line and not line.startswith("|")]
    cells = [[cell for cell in _CELL.findall(row) if cell] for row in rows]
    odd = [row for row, found in zip(rows, cells, strict=True) if len(found) != len(cells[0])]
    inner = [cell.replace("\\|", "|") for row in cells for cell in row]
    live = [found for cell in inner for found in _live_tokens(_MARKDOWN.parseInline(cell), cell)]
    return live_in_line(text) + odd + live + [found for line in others for found in live_in_markdown(line)]


def _live_tokens(tokens: list[Token], text: str) -> list[str]:
    found = []
    for token in tokens:
        for child in token.children or []:
            is_live = child.type not in _INERT or (child.type == "text" and _AUTOLINKED.search(child.content))
            found += [f"{child.type} in {text!r}"] if is_live else []
        found += (
            [f"{token.type} in {text!r}"] if token.type not in {"inline", "paragraph_open", "paragraph_close"} else []
        )
    return found
