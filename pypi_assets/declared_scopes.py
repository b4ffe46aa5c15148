"""The scopes that the file of indexes declares: created where they are missing, and kept in line with the file.

What a table of a scope can have is in `scope_tables.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.scopes.stored_scopes import ScopePlan, bring_in_line, differing, find_scope
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.scope_crawl import start_scope
from pypi_assets.errors import ExpectedError, SettingsError
from pypi_assets.scope_tables import ScopeTable
from pypi_assets.scopes.root_files import named_roots, read_roots
from pypi_assets.scopes.ruleset import read_rules
from pypi_assets.setting_variables import read_all_indexes
from pypi_assets.settings import Settings

_FIELDS = {"depth": "most_depth"}
"""The keys of a table that a plan calls otherwise."""


@dataclass(frozen=True, slots=True)
class DeclaredScope:
    """A scope that is to exist. `given` names the fields of its plan that the file decides. `left_out` has a sentence
    for each requirement of its roots that leads to no project of an index."""

    plan: ScopePlan
    given: frozenset[str]
    left_out: tuple[str, ...] = ()


def declared_scopes(settings: Settings) -> list[DeclaredScope]:
    """The scopes that the file declares for the index of `settings`; none where there is no file of indexes.

    Raises SettingsError, also for what is wrong in the files that a scope names.
    """
    indexes = None if settings.index is None else read_all_indexes()
    index = None if indexes is None or settings.index is None else indexes.named(settings.index)
    found = []
    for table in () if index is None else index.scopes:
        try:
            found.append(_declared(table))
        except ExpectedError as error:
            place = "" if index is None else f"{index.path}: index {index.name}: "
            raise SettingsError(f"{place}scopes.{table.name}: {error}") from error
    return found


def _declared(table: ScopeTable) -> DeclaredScope:
    roots = named_roots(table.projects)
    for path in table.roots:
        roots |= read_roots(path)
    plan = ScopePlan(
        table.name,
        roots.extras,
        None if table.depth == "all" else table.depth,
        "" if table.rules is None else read_rules(table.rules, roots.extras),
        table.nice or 0,
        table.concurrency,
        table.tag,
        bool(table.match_only),
    )
    keys = ("depth", "rules", "nice", "concurrency", "tag", "match_only")
    given = {_FIELDS.get(key, key) for key in keys if getattr(table, key) is not None}
    return DeclaredScope(plan, frozenset({"roots", *given}), roots.skipped)


def keep_in_line(crawler: Crawler, declared: Iterable[DeclaredScope]) -> None:
    """Creates those of these scopes that do not exist, and gives the others what is declared of them.

    It notifies people of what it changes. A repetition changes nothing. Raises CatalogError and RulesError.
    """
    for one in declared:
        changed = _apply(crawler, one)
        if changed is None:
            crawler.notify(f"scope {one.plan.name}: created, since the file of indexes declares it")
        elif changed:
            crawler.notify(f"scope {one.plan.name}: as the file of indexes has it now: {', '.join(changed)}")
        if changed is None or "roots" in changed:
            for sentence in one.left_out:
                crawler.notify(f"scope {one.plan.name}: left out: {sentence}")


def _apply(crawler: Crawler, declared: DeclaredScope) -> list[str] | None:
    """What changed of a scope that exists; None where it was created."""
    catalog, plan = crawler.catalog, declared.plan
    if not _exists(crawler, plan.name):
        try:
            start_scope(crawler, plan)
        except CatalogError:
            if not _exists(crawler, plan.name):  # else another process was first
                raise
        else:
            return None
    with catalog.read() as connection:
        if not differing(connection, plan, declared.given):
            return []
    return catalog.transact(partial(bring_in_line, plan=plan, given=declared.given, now=catalog.clock()))


def _exists(crawler: Crawler, name: str) -> bool:
    with crawler.catalog.read() as connection:
        return find_scope(connection, name) is not None
