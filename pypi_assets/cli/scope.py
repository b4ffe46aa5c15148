"""The commands `pypi-assets scope ...`, which decide which projects are followed, and show why."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.contexts import existing_catalog, opened_crawler
from pypi_assets.cli.crawl import describe_reads, reads_to_json, report_failed
from pypi_assets.cli.options import JSON, command, row_output
from pypi_assets.scopes import LEAST_NICE, MOST_NICE
from pypi_assets.scopes.byte_sizes import NO_LIMIT, parse_limit, shown_size
from pypi_assets.scopes.plan import PlanError, check_field, read_plan
from pypi_assets.terminal import Output, by_depth, counted, plain, print_facts, print_json, print_message, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.scopes.scope_status import ScopeStatus
    from pypi_assets.catalog.scopes.stored_scopes import Scope
    from pypi_assets.crawl.keeping import KeptCounts

_FILE = click.Path(dir_okay=False)


@click.group("scope")
def scope_group() -> None:
    """Follow some projects and their requirements."""


class _Limit(click.ParamType[str]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_limit(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


_MOST = click.option(
    "--most",
    type=_Limit(),
    help=f"The most bytes of kept files, such as 50GB; {NO_LIMIT}: no limit. Default: no limit.",
)


class _Depth(click.ParamType[int | str]):
    name = "number or all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        depth = int(value) if re.fullmatch(r"-?[0-9]{1,10}", str(value)) else value
        try:
            check_field("NAME", "depth", depth)
        except PlanError as error:
            self.fail(error.problem, param, ctx)
        return depth


@contextmanager
def _scope_in_catalog(name: str) -> "Iterator[tuple[Catalog, Scope]]":
    """Yield the existing catalog and its scope of this name. Raises CatalogError if either is missing."""
    from pypi_assets.catalog.scopes.stored_scopes import require_scope
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        with catalog.read() as connection:
            scope = require_scope(connection, name)
        yield catalog, scope


@command("create", "tools httpx rich", group=scope_group)
@click.argument("name")
@click.argument("projects", nargs=-1)
@click.option(
    "--roots",
    "files",
    type=_FILE,
    multiple=True,
    help="Use the requirements in this file as roots; repeatable: requirements.txt, pyproject.toml, uv.lock,"
    " pylock.toml or poetry.lock.",
)
@click.option(
    "--depth",
    type=_Depth(),
    default="all",
    show_default=True,
    help="The greatest distance from a root, in requirements.",
)
@click.option("--rules", type=_FILE, help="A file with rules in TOML: see docs/scopes.md.")
@click.option("--nice", type=click.IntRange(LEAST_NICE, MOST_NICE), default=0, help="Priority. Lower values run first.")
@click.option("--concurrency", type=click.IntRange(0), help="The most requests at once; 0 pauses the scope.")
@click.option("--tag", help="Give the work only to workers with this tag or without a tag.")
@click.option("--match-only", is_flag=True, help="Give the work only to workers with the scope's tag.")
@click.option("--keep-files", is_flag=True, help="Keep the bytes of files, to serve those that the index removes.")
@_MOST
@JSON
def scope_create_command(
    name: str, projects: tuple[str, ...], files: tuple[str, ...], as_json: bool, **how: Any
) -> None:
    """Create a scope of root projects, and visit nothing yet.

    The roots are PROJECTS, also with extras as in 'requests[socks]', and the requirements in the files of --roots. Run
    `scope run` to follow them.
    """
    from pypi_assets.crawl.scope_crawl import start_scope

    stated = {key: value for key, value in how.items() if value is not None}
    plan = read_plan(name, {"projects": projects, "roots": files, **stated})
    with opened_crawler(creates=True) as crawler:
        scope = start_scope(crawler, plan)
    for sentence in plan.skipped:
        print_message(f"skipped: {sentence}")
    if as_json:
        print_json({"scope": name, "serial": scope.created_serial, "roots": list(plan.roots), "left_out": plan.skipped})
    else:
        click.echo(
            f"scope {name} from serial {scope.created_serial} on: {counted(len(plan.roots), 'root')}, one request each;"
            f" requirements are followed next (`pypi-assets scope run {name}`)"
        )


@command("run", "tools", group=scope_group)
@click.argument("name", required=False)
@click.option("--tag", help="Without NAME: run scopes with this tag or without a tag.")
@click.option("--match-only", is_flag=True, help="With --tag: run only scopes with this tag.")
@JSON
def scope_run_command(name: str | None, tag: str | None, match_only: bool, as_json: bool) -> None:
    """Visit and read the projects of scope NAME, or without NAME the projects of all scopes with pending work.

    First, scopes that the file of indexes declares are created or updated. The run continues where an earlier run
    stopped. It does not request the project list.
    """
    if name is not None and tag is not None:
        raise click.UsageError("--tag excludes NAME: it selects scopes")
    if match_only and tag is None:
        raise click.UsageError("--match-only works only with --tag")
    from pypi_assets.components import declared_scopes
    from pypi_assets.crawl.incremental_crawl import crawl_incremental
    from pypi_assets.crawl.scope_crawl import keep_in_line, run_ready_scopes
    from pypi_assets.settings import load_settings

    declared = declared_scopes(load_settings())
    with opened_crawler(creates=bool(declared)) as crawler:
        keep_in_line(crawler, declared)
        results = run_ready_scopes(crawler, None if name is None else [name], tag, is_match_only=match_only)
        if crawler.index.is_observed:  # events of pages that were polled for the first time have no range yet
            crawl_incremental(crawler)
        with crawler.catalog.read() as connection:
            from pypi_assets.catalog.scopes.scope_status import scope_status

            states = [scope_status(connection, result.scope, crawler.catalog.clock()) for result in results]
    if as_json:
        print_json(
            [
                _to_json(state) | {"reads": reads_to_json(result.reads), "kept": asdict(result.kept)}
                for state, result in zip(states, results, strict=True)
            ]
        )
    else:
        for state, result in zip(states, results, strict=True):
            click.echo(
                f"scope {state.scope.name}: {counted(state.projects, 'project')}, {state.state};"
                f" {describe_reads(result.reads)}{_describe_kept(result.kept)}"
            )
            if state.missing_roots and not state.visits.todo:
                print_message(f"not on the index: {', '.join(state.missing_roots)}")
        if not results:
            click.echo("no scope has pending work")
    for result in results:
        report_failed(result.reads, result.visits.exhausted)


@command("list", group=scope_group)
@row_output
def scope_list_command(output: Output) -> None:
    """List the scopes, in the order of their priority."""
    from pypi_assets.catalog.observed.followed import follows_all
    from pypi_assets.catalog.scopes.scope_status import scope_status
    from pypi_assets.catalog.scopes.stored_scopes import all_scopes
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog, catalog.read() as connection:
        states = [scope_status(connection, scope, catalog.clock()) for scope in all_scopes(connection)]
        is_all = follows_all(connection)
    if output.as_json:
        print_json([_to_json(state) for state in states])
        return
    columns = ("scope", "state", "projects", "entering", "visits_left", "reads_left", "nice", "tag")
    rows = (
        (
            state.scope.name,
            state.state.value,
            state.projects,
            state.entering,
            state.visits.todo,
            state.reads_left,
            state.scope.nice,
            state.scope.tag,
        )
        for state in states
    )
    if not print_table(columns, rows, output):
        followed = "all of the index is followed" if is_all else "nothing is followed"
        print_message(f"there is no scope: {followed}")


@command("show", "tools", group=scope_group)
@click.argument("name")
@JSON
def scope_show_command(name: str, as_json: bool) -> None:
    """Show the state of scope NAME."""
    from pypi_assets.catalog.scopes.scope_status import scope_status

    with _scope_in_catalog(name) as (catalog, scope), catalog.read() as connection:
        state = scope_status(connection, scope, catalog.clock())
    if as_json:
        print_json(_to_json(state))
        return
    print_facts(
        [
            ("scope", scope.name),
            ("state", f"{state.state}, {counted(state.workers, 'worker')} at work"),
            ("created", f"at serial {scope.created_serial}, {utc_text(scope.created_at)}"),
            ("roots", ", ".join(scope.roots)),
            ("not on the index", ", ".join(state.missing_roots) or "none"),
            ("depth", "all" if scope.most_depth is None else scope.most_depth),
            ("projects", by_depth(state.depths) or "none yet"),
            ("beyond depth", state.beyond),
            ("entering", state.entering),
            ("entered late", state.late),
            ("visits", f"{state.visits.todo} left, {state.visits.done} done, {state.visits.exhausted} exhausted"),
            ("reads left", state.reads_left),
            ("files", ", ".join(f"{count} {outcome}" for outcome, count in state.files.items() if count) or "none"),
            ("rules", f"version {state.rulesets[-1].version}"),
            ("nice", scope.nice),
            ("concurrency", "as in the settings" if scope.concurrency is None else scope.concurrency),
            ("tag", scope.tag or "none"),
            ("pruned", utc_text(scope.pruned_at) or "never"),
            *_kept_facts(state),
        ]
    )


def _describe_kept(kept: "KeptCounts") -> str:
    if not kept.files and not kept.failed:
        return ""
    failed = f", {kept.failed} failed" if kept.failed else ""
    return f"; fetched to keep: {counted(kept.files, 'file')}, {shown_size(kept.bytes)}{failed}"


def _kept_facts(state: "ScopeStatus") -> list[tuple[str, object]]:
    scope = state.scope
    if not scope.keep_files and not state.kept_files:
        return [("kept files", "none: `scope set --keep-files` keeps them")]
    budget = "no limit" if scope.most is None else f"of {shown_size(scope.most)}"
    kept = f"{counted(state.kept_files, 'file')}, {shown_size(scope.kept_bytes)}, {budget}"
    return [
        ("kept files", kept if scope.keep_files else f"{kept}; the next clean-up deletes them"),
        ("evicted", f"{counted(scope.evicted_files, 'file')}, {shown_size(scope.evicted_bytes)}"),
        ("forgotten", f"{counted(state.forgotten_files, 'file')}: see `pypi-assets files list --forgotten`"),
    ]


def _to_json(state: "ScopeStatus") -> dict[str, Any]:
    scope = state.scope
    return {
        "scope": scope.name,
        "state": state.state.value,
        "created_serial": scope.created_serial,
        "created_at": utc_text(scope.created_at),
        "completed_at": utc_text(scope.completed_at),
        "pruned_at": utc_text(scope.pruned_at),
        "roots": {name: sorted(extras) for name, extras in scope.roots.items()},
        "missing_roots": list(state.missing_roots),
        "depth": scope.most_depth,
        "projects": state.projects,
        "projects_by_depth": {str(depth): count for depth, count in state.depths.items()},
        "beyond_depth": state.beyond,
        "entering": state.entering,
        "entered_late": state.late,
        "visits": {"todo": state.visits.todo, "done": state.visits.done, "exhausted": state.visits.exhausted},
        "reads_left": state.reads_left,
        "files": dict(state.files),
        "rules_version": state.rulesets[-1].version,
        "nice": scope.nice,
        "concurrency": scope.concurrency,
        "tag": scope.tag,
        "match_only": scope.match_only,
        "workers": state.workers,
        "keep_files": scope.keep_files,
        "most": scope.most,
        "kept_files": state.kept_files,
        "kept_bytes": scope.kept_bytes,
        "evicted_files": scope.evicted_files,
        "evicted_bytes": scope.evicted_bytes,
        "forgotten_files": state.forgotten_files,
    }


@command("why", "tools idna", group=scope_group)
@click.argument("name")
@click.argument("project")
@JSON
def scope_why_command(name: str, project: str, as_json: bool) -> None:
    """Show why PROJECT is in scope NAME, or why it is not.

    Exits with 1 if it is not.
    """
    from pypi_assets.catalog.scopes.scope_status import why

    with _scope_in_catalog(name) as (catalog, scope), catalog.read() as connection:
        reason = why(connection, scope, project)
    if as_json:
        print_json({"project": reason.project, "is_in": reason.is_in, "path": reason.path, "reasons": reason.sentences})
    else:
        is_in = "is in" if reason.is_in else "is not in"
        click.echo(f"{plain(reason.project)} {is_in} scope {name}: {plain('; '.join(reason.sentences))}")
    if not reason.is_in:
        raise SystemExit(1)


@command("rules", "tools --set rules.toml", group=scope_group)
@click.argument("name")
@click.option(
    "--set",
    "path",
    type=_FILE,
    help="Replace the rules by the rules in this file, as the next version.",
)
@click.option("--version", type=click.IntRange(1), help="The version to show; default: the newest.")
@JSON
def scope_rules_command(name: str, path: str | None, version: int | None, as_json: bool) -> None:
    """Show the rules of scope NAME, or change them.

    The next run visits and reads the projects and files that changed rules admit.
    """
    from pypi_assets.catalog.database import CatalogError
    from pypi_assets.catalog.scopes.stored_scopes import add_ruleset, rulesets_of
    from pypi_assets.scopes.ruleset import read_rules

    with _scope_in_catalog(name) as (catalog, scope):
        if path is not None:
            content = read_rules(Path(path), scope.roots)
            catalog.transact(partial(add_ruleset, scope=scope, content=content, now=catalog.clock()))
        with catalog.read() as connection:
            known = {stored.version: stored for stored in rulesets_of(connection, scope.id)}
    shown = known.get(max(known) if version is None else version)
    if shown is None:
        raise CatalogError(f"scope {name} has no rules of version {version}; it has 1 to {max(known)}")
    if as_json:
        print_json({"scope": name, "version": shown.version, "from_serial": shown.from_serial, "rules": shown.content})
    else:
        click.echo(f"# version {shown.version}, in force from serial {shown.from_serial} on")
        click.echo(
            shown.content.rstrip()
            or "# no rules: all projects that the roots lead to are followed, and all files are read"
        )


@command("set", "tools --concurrency 0", group=scope_group)
@click.argument("name")
@click.option("--nice", type=click.IntRange(LEAST_NICE, MOST_NICE), help="Priority. Lower values run first.")
@click.option("--concurrency", type=click.IntRange(0), help="The most requests at once; 0 pauses the scope.")
@click.option("--tag", help="Give the work only to workers with this tag or without a tag; empty: no tag.")
@click.option("--match-only/--no-match-only", default=None, help="Give the work only to workers with the scope's tag.")
@click.option(
    "--keep-files/--no-keep-files", default=None, help="Keep the bytes of files, to serve those that the index removes."
)
@_MOST
def scope_set_command(name: str, **values: Any) -> None:
    """Change the priority, concurrency, tag or kept files of scope NAME.

    With --keep-files, the next `scope run` also fetches the files that were read before. Without it, the next clean-up
    deletes files that no other scope keeps. A smaller --most deletes files at once.
    """
    from pypi_assets.catalog.scopes.stored_scopes import change_scope
    from pypi_assets.components import storage_from
    from pypi_assets.keeping.keeper import FileKeeper
    from pypi_assets.settings import load_settings

    given = {key: value for key, value in values.items() if value is not None}
    if not given:
        options = "--nice, --concurrency, --tag, --match-only, --keep-files or --most"
        raise click.UsageError(f"nothing to change: pass {options}")
    if "tag" in given:
        given["tag"] = given["tag"] or None
    if "most" in given:
        given["most"] = parse_limit(given["most"])
    with _scope_in_catalog(name) as (catalog, scope):
        catalog.transact(partial(change_scope, scope=scope, values=given))
        if "most" in given:
            FileKeeper(catalog, storage_from(load_settings(), catalog)).enforce_budgets([scope.id])
    click.echo(f"scope {name}: changed")


@command("prune", "tools", group=scope_group)
@click.argument("name")
@JSON
def scope_prune_command(name: str, as_json: bool) -> None:
    """Remove projects from scope NAME that its roots no longer lead to.

    The next dumps omit them. Answers about past serials stay the same.
    """
    from pypi_assets.catalog.scopes.members import prune_scope

    with _scope_in_catalog(name) as (catalog, scope):
        left = catalog.transact(partial(prune_scope, scope=scope, now=catalog.clock()))
    _print_left(name, left, as_json)


@command("remove", "tools", group=scope_group)
@click.argument("name")
@JSON
def scope_remove_command(name: str, as_json: bool) -> None:
    """Remove scope NAME. Projects that are in no other scope are no longer followed."""
    from pypi_assets.catalog.scopes.members import remove_scope

    with _scope_in_catalog(name) as (catalog, scope):
        left = catalog.transact(partial(remove_scope, scope=scope))
    _print_left(name, left, as_json)


def _print_left(name: str, left: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"scope": name, "no_longer_followed": left})
    else:
        click.echo(f"no longer followed: {plain(', '.join(left)) or 'nothing'}")


@command("abort", "tools", group=scope_group)
@click.argument("name")
def scope_abort_command(name: str) -> None:
    """Stop the work of scope NAME until `scope resume`."""
    _set_aborted(name, is_aborted=True)
    click.echo(f"scope {name} is aborted: `pypi-assets scope resume {name}` resumes it")


@command("resume", "tools", group=scope_group)
@click.argument("name")
def scope_resume_command(name: str) -> None:
    """Resume scope NAME after `scope abort`."""
    _set_aborted(name, is_aborted=False)
    click.echo(f"scope {name} is resumed: `pypi-assets scope run {name}` continues its work")


def _set_aborted(name: str, *, is_aborted: bool) -> None:
    from pypi_assets.catalog.scopes.stored_scopes import set_aborted

    with _scope_in_catalog(name) as (catalog, scope):
        catalog.transact(partial(set_aborted, scope=scope, is_aborted=is_aborted))
