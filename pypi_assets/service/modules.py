"""Routes of modules: which projects provide one."""

from dataclasses import replace
from itertools import islice

from packaging.utils import canonicalize_name
from starlette.routing import Route

from pypi_assets.lookup.answers import Answer as Found
from pypi_assets.lookup.hints import module_hints
from pypi_assets.lookup.modules_reader import COMMANDS, ModuleResult, ModulesReader
from pypi_assets.service.answers import Answer
from pypi_assets.service.cursors import Cursor, question, read_cursor, set_of
from pypi_assets.service.lookups import Results, past_results, published_answer, results_of
from pypi_assets.service.names import CursorText, Flag, Limit, ModuleName
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.problems import conflict
from pypi_assets.service.service import Service

_LIMIT = 1_000
_FEW = 8
"""Most modules have one provider; each costs two reads."""
[_COMMAND] = COMMANDS


class ModuleParameters(Parameters, frozen=True):
    """Which module, and at most `limit` results. With `prefix`, all that begin with its name, in pages."""

    module: ModuleName
    prefix: Flag = False
    limit: Limit | None = None
    cursor: CursorText | None = None


def routes(service: Service) -> list[Route]:
    """The routes of modules."""
    return list(operation_routes(service, [MODULE]))


def _module(service: Service, call: Call[ModuleParameters]) -> Answer:
    given = call.parameters
    if given.cursor is not None and not given.prefix:
        raise conflict("cursor", "cursor goes with prefix=1 alone")
    if call.pinned is not None:
        if given.prefix:
            raise conflict("prefix", "an earlier serial is answered for whole names alone: leave prefix out")
        return past_results(call.pinned, _COMMAND, given.module, given.limit)
    if given.prefix:
        return _modules(service, given)
    datasets = service.datasets()
    reader = datasets.reader(ModulesReader)
    found = reader.module(given.module)
    if given.limit is not None:
        found = replace(found, results=found.results[: given.limit])
    hints = () if found.results else module_hints(reader, given.module, datasets.opened)
    return published_answer(datasets, results_of(datasets, found, hints))


def _latest(service: Service, module: str) -> Answer | None:
    datasets = service.datasets()
    found = datasets.reader(ModulesReader).module_of_few(module, _FEW)
    return published_answer(datasets, results_of(datasets, found)) if found and found.results else None


def _modules(service: Service, given: ModuleParameters) -> Answer:
    wanted = question("modules", given.module)
    cursor = read_cursor(given.cursor, wanted) if given.cursor else None
    datasets = set_of(service, cursor)
    after = (cursor.after[0], cursor.after[1]) if cursor and len(cursor.after) == 2 else None
    limit = given.limit or _LIMIT
    stream = datasets.reader(ModulesReader).modules(given.module, after)
    results = tuple(islice(stream, limit + 1))
    found = Found(stream.version, stream.serial, results[:limit], ModuleResult, None, stream.followed_projects)
    following = None
    if len(results) > limit:
        last = results[limit - 1]
        following = Cursor(datasets.id, wanted, [last["module"], canonicalize_name(last["project"])], 0).text()
    return published_answer(datasets, results_of(datasets, found, following=following))


MODULE = Operation(
    path="/v1/modules/{module}",
    handler=_module,
    summary="Which projects provide a module",
    description="With `prefix=1`, all modules whose names begin with it, in pages.",
    parameters=ModuleParameters,
    answer=Results[ModuleResult],
    problems=(404, 409, 410),
    latest=_latest,
)
