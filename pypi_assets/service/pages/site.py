"""All pages, and the files that they load."""

from functools import partial
from pathlib import Path

from starlette.routing import Route

from pypi_assets.service.answers import Answer
from pypi_assets.service.operations import PAGES, Call, NoParameters, Operation, operation_routes
from pypi_assets.service.pages import changes, home, lookups, projects, releases, resolutions, search, solvability
from pypi_assets.service.service import Service

_FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_ADDRESSES = {"robots.txt": "/robots.txt"}


def routes(service: Service) -> list[Route]:
    """The routes of all pages."""
    modules = (home, search, lookups, projects, releases, resolutions, solvability, changes)
    files = [_file(path) for path in sorted(_FOLDER.rglob("*")) if path.is_file()]
    return [*(route for module in modules for route in module.routes(service)), *operation_routes(service, files)]


def _file(path: Path) -> Operation:
    return Operation(
        path=_ADDRESSES.get(path.name, f"/static/{path.relative_to(_FOLDER).as_posix()}"),
        handler=partial(_answer, path.read_bytes(), _MEDIA_TYPES[path.suffix]),
        summary="A file that pages load",
        parameters=NoParameters,
        media_types=(_MEDIA_TYPES[path.suffix],),
        tag=PAGES,
        at_serial=False,
    )


def _answer(content: bytes, media_type: str, _service: Service, _call: Call[NoParameters]) -> Answer:
    return Answer(content, media_type)
