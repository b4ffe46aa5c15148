"""All pages, and the files that they load."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pypi_assets.service.operations import PAGES, Call, Operation
from pypi_assets.service.pages import changes, home, projects, resolutions, search, solvability
from pypi_assets.service.parameters import NoParameters
from pypi_assets.service.responses import Answer
from pypi_assets.service.service import Service

_FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_ADDRESSES = {"robots.txt": "/robots.txt"}


def operations() -> Iterator[Operation]:
    """Yield the operations of all pages and files."""
    for module in (home, search, projects, resolutions, solvability, changes):
        yield from module.OPERATIONS
    yield from (_file(path) for path in sorted(_FOLDER.rglob("*")) if path.is_file())


def _file(path: Path) -> Operation:
    return Operation(
        path=_ADDRESSES.get(path.name, f"/static/{path.relative_to(_FOLDER).as_posix()}"),
        handler=partial(_answer, path.read_bytes(), _MEDIA_TYPES[path.suffix]),
        summary="A file that pages load",
        media_types=(_MEDIA_TYPES[path.suffix],),
        tag=PAGES,
        at_serial=False,
    )


def _answer(content: bytes, media_type: str, _service: Service, _call: Call[NoParameters]) -> Answer:
    return Answer(content, media_type)
