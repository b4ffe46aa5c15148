"""The first page, and the form that pins a page to a serial or a date."""

from typing import Annotated

from msgspec import Meta
from starlette.routing import Route

from pypi_assets.service.answers import Answer, Lasting, redirect
from pypi_assets.service.operations import PAGES, Call, Operation, Parameters, operation_routes
from pypi_assets.service.pages.addresses import is_local_page
from pypi_assets.service.pages.page import Content, Page, View, page_routes
from pypi_assets.service.pins import PIN_ACCEPTS, parse_pin
from pypi_assets.service.problems import ProblemError, bad_parameter
from pypi_assets.service.service import Service
from pypi_assets.service.status import STATUS


class HomeParameters(Parameters, frozen=True):
    """The first page takes none."""


class AsOfParameters(Parameters, frozen=True):
    """What to pin, and to when; an empty moment is the latest."""

    moment: Annotated[str, Meta(max_length=100, description=PIN_ACCEPTS)] = ""
    page: Annotated[str, Meta(max_length=4_000, description="the path of a page, such as /import/yaml/")] = "/"


def routes(service: Service) -> list[Route]:
    """The routes of the first page and of the form."""
    return [*page_routes(service, [HOME]), *operation_routes(service, [AS_OF])]


def _home(view: View, _parameters: HomeParameters) -> Content:
    return Content("Search", {"status": view.part(STATUS)})


def _as_of(_service: Service, call: Call[AsOfParameters]) -> Answer:
    given = call.parameters
    if not is_local_page(given.page):
        raise bad_parameter("page", "page is no path of this service", "a path that begins with one slash")
    moment = given.moment.strip()
    if not moment:
        return redirect(given.page, Lasting.REVALIDATED, 303)
    try:
        parse_pin(moment)
    except ProblemError as error:
        raise bad_parameter("moment", f"{moment!r:.120} is neither a serial nor a date", PIN_ACCEPTS) from error
    return redirect(f"/at/{moment}{given.page}", Lasting.REVALIDATED, 303)


HOME = Page(path="/", template="home.html", summary="The first page", parameters=HomeParameters, content=_home)
AS_OF = Operation(
    path="/as-of",
    handler=_as_of,
    summary="Leads to a page as of a serial or a date",
    parameters=AsOfParameters,
    media_types=("text/html",),
    tag=PAGES,
    at_serial=False,
)
