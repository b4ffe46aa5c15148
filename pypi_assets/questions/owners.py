"""Owners: from an import to the projects that provide it, ranked with reasons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pypi_assets.lookup.import_owners import ImportOwners
from pypi_assets.lookup.import_owners import owners as ranked_owners
from pypi_assets.lookup.owner_ranking import in_words
from pypi_assets.questions.question import Accepts, Batch, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

ImportName = Annotated[
    str, Accepts(text="a name that is imported, such as google.cloud.storage", min_length=1, max_length=1_000)
]


@dataclass(frozen=True)
class OwnersParameters(Parameters):
    """Of which import, and how many candidates."""

    name: ImportName
    limit: Annotated[
        int | None, Accepts(text="the most candidates of an import: 1 to 1000; default: all", ge=1, le=1_000)
    ] = None


@dataclass(frozen=True)
class SeveralOwnersParameters(Parameters):
    """How many candidates of each import: what names like `tests` have by thousands is not repeated for each."""

    limit: Annotated[int, Accepts(text="the most candidates of each import: 1 to 20", ge=1, le=20)] = 10


def owners_of(snapshot: Snapshot, names: Sequence[str], most: int | None) -> Found[ImportOwners]:
    """Return the owners of several imports, in their order, with at most this many candidates each."""
    return snapshot.collected("modules", ImportOwners, ranked_owners(snapshot, names, most))


def rows(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a table row for each candidate of an import."""
    for candidate in result["candidates"]:
        yield {
            "import": result["import"],
            "module": result["module"],
            "rank": candidate["rank"],
            "project": candidate["project"],
            "score": candidate["score"],
            "reasons": "; ".join(in_words(candidate["reasons"])),
        }


@question(
    "owners",
    path="/v1/owners/{name}",
    batch=Batch(
        path="/v1/owners",
        field="imports",
        most=5_000,
        summary="Which projects provide several imports",
        description="One result for each, in their order, with the 10 best candidates or `limit` of them.",
        parameters=SeveralOwnersParameters,
        answer=lambda snapshot, names, given: owners_of(snapshot, names, given.limit),
    ),
    example="yaml google.cloud.storage.blob",
    argument="NAME...",
    result=ImportOwners,
    columns=lambda _given: ("import", "module", "rank", "project", "score", "reasons"),
    rows=rows,
    nothing_found=lambda given: f"no project provides {given.name}, or what it is in",
)
def owners(snapshot: Snapshot, given: OwnersParameters, _after: After = None) -> Found[ImportOwners]:
    """Rank the projects that provide imports, with the reasons.

    The longest known module of an import counts, and all projects that provide it.
    """
    return owners_of(snapshot, [given.name], given.limit)
