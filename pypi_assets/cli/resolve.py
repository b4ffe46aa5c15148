"""The command `resolve`, which chooses versions as an installer would."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.followed_notes import among
from pypi_assets.cli.options import AT, JSON, command
from pypi_assets.cli.resolve_options import Given, question_options
from pypi_assets.terminal import counted, plain, print_json, print_message

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.resolve.formats.text import Node, Rendered
    from pypi_assets.resolve.questions import ResolutionQuestion
    from pypi_assets.resolve.targets import Target
    from pypi_assets.resolve.universal import JoinedResolution, UnsolvableTargetError


@dataclass(frozen=True, slots=True)
class _ResolvedAnswer:
    """The resolution or the proof that there is none, the lock if the format is a lock, hints, and fields for JSON."""

    question: "ResolutionQuestion"
    serial: int
    answer: "JoinedResolution | UnsolvableTargetError"
    lock: "Rendered | None"
    hints: tuple[str, ...]
    context: dict[str, Any]


@command("resolve", "'requests>=2.30' --python 3.12 --platform linux-x86_64")
@question_options
@AT
@click.option(
    "--universal",
    is_flag=True,
    help="Resolve for several Pythons and platforms at once, with markers where they differ.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["tree", "requirements", "pylock", "json"]),
    help="Output format: a tree (the default), a requirements.txt with hashes, a pylock.toml, or JSON.",
)
@JSON
def resolve_command(given: Given, at: "Moment | None", universal: bool, format_: str | None, as_json: bool) -> None:
    """Choose versions as an installer would, now or at an earlier time.

    REQUIREMENT has the form that pip accepts: a project with extras, versions and a marker. Nothing is downloaded or
    installed. Without a solution, the proof is printed to standard error.
    """
    if as_json and format_ not in {None, "json"}:
        raise click.UsageError(f"--json excludes --format {format_}")
    format_ = "json" if as_json else format_ or "tree"
    targets = given.universal_targets() if universal else (given.target(),)
    _print(_found(given, targets, format_, at), format_)


def _found(given: Given, targets: "tuple[Target, ...]", format_: str, at: "Moment | None") -> _ResolvedAnswer:
    from pypi_assets.cli.lookup import context_of, opened  # these import the declarations of questions
    from pypi_assets.questions.resolutions import hints_about
    from pypi_assets.resolve.formats.pylock import as_pylock
    from pypi_assets.resolve.formats.text import as_requirements
    from pypi_assets.resolve.questions import ResolveError
    from pypi_assets.resolve.universal import UnsolvableTargetError, resolve_for

    with opened(at) as asking:
        snapshot = asking.snapshot
        moment = None if given.cooldown is None else snapshot.moment()
        if given.cooldown is not None and moment is None:
            raise ResolveError("the time of this serial is not known, so --cooldown cannot count back from it")
        question = given.question(targets[0], moment)

        def resolved() -> Any:
            hints: tuple[str, ...] = ()
            lock = None
            answer: JoinedResolution | UnsolvableTargetError
            try:
                answer = resolve_for(snapshot.release_index(), question, targets)
            except UnsolvableTargetError as error:
                answer, hints = error, tuple(hints_about(snapshot, error.proof.projects))
            else:
                lock = as_pylock(answer, snapshot) if format_ == "pylock" else None
                lock = as_requirements(answer) if format_ == "requirements" else lock
            return snapshot.collected("depgraph", dict, [{"answer": answer, "lock": lock, "hints": hints}])

        found = asking.answered(resolved)
        context = {**context_of(found), "ignored_options": list(given.ignored_options)}
        return _ResolvedAnswer(question, found.serial, context=context, **next(iter(found.results)))


def _print(found: _ResolvedAnswer, format_: str) -> None:
    from pypi_assets.resolve.formats.json_answer import as_json, proof_as_json
    from pypi_assets.resolve.formats.text import for_targets, remarks_on, tree_nodes
    from pypi_assets.resolve.universal import UnsolvableTargetError

    source = ", from the catalog" if "epoch" in found.context else ""
    as_of = f"as of serial {found.serial}{source}{among(found.context.get('followed_projects'))}"
    if isinstance(found.answer, UnsolvableTargetError):
        if format_ == "json":
            print_json(proof_as_json(found.serial, found.question, found.answer, found.hints) | found.context)
            raise click.exceptions.Exit(1)
        what = f"{as_of}, for {found.answer.target}, as {found.question.semantics.value} resolves"
        raise click.ClickException("\n".join(map(plain, [*str(found.answer).splitlines(), *found.hints, what])))
    if format_ == "json":
        print_json(as_json(found.answer) | found.context)
    elif found.lock is None:
        _print_tree(tree_nodes(found.answer))
    else:
        click.echo(found.lock.text, nl=False)
    for remark in (*remarks_on(found.answer), *(found.lock.remarks if found.lock else ())):
        print_message(remark)
    count = counted(len(found.answer.releases), "release")
    print_message(f"{count} {as_of}, for {for_targets(found.answer)}, as {found.question.semantics.value} resolves")


def _print_tree(nodes: "Iterator[Node]") -> None:
    """Print a tree on a terminal, or else a line for each release, indented by its depth, with columns split by
    tabs."""
    if not sys.stdout.isatty():
        for node in nodes:
            columns = [plain(column) for column in (node.name, node.requirement, node.note)]
            click.echo("  " * node.depth + "\t".join(columns).rstrip("\t"))
        return
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    root = Tree("", hide_root=True)
    branches: list[Any] = [root]
    for node in nodes:
        text = Text(plain(node.name), "bold" if node.depth == 0 else "")
        text.append(f"  {plain(node.requirement)}", "dim")
        if node.note:
            text.append(f"  ({plain(node.note)})", "italic")
        del branches[node.depth + 1 :]
        branches.append(branches[node.depth].add(text))
    Console().print(root)
