"""The question `owners`: find the project that an import comes from, ranked with reasons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pypi_assets.lookup.import_owners import ImportOwners
from pypi_assets.lookup.import_owners import owners as ranked_owners
from pypi_assets.lookup.owner_ranking import in_words
from pypi_assets.questions.question import Accepts, Batch, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

ImportName = Annotated[str, Accepts(text="an import, such as google.cloud.storage", min_length=1, max_length=1_000)]


@dataclass(frozen=True)
class OwnersParameters(Parameters):
    """Parameters of `owners`."""

    name: ImportName
    limit: Annotated[
        int | None, Accepts(text="the number of candidates to list, 1 to 1000; by default all", ge=1, le=1_000)
    ] = None


@dataclass(frozen=True)
class SeveralOwnersParameters(Parameters):
    """Parameters of `owners` for several imports.

    `limit` is low, because names such as `tests` have thousands of candidates.
    """

    limit: Annotated[int, Accepts(text="the number of candidates for each import, 1 to 20", ge=1, le=20)] = 10


def owners_of(snapshot: Snapshot, names: Sequence[str], most: int | None) -> Found[ImportOwners]:
    """Return the owners of several imports, in the same order, with at most `most` candidates each."""
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
        summary="Find the projects that provide several imports",
        description="There is one result for each import, in the same order, with the 10 or `limit` best candidates.",
        parameters=SeveralOwnersParameters,
        answer=lambda snapshot, names, given: owners_of(snapshot, names, given.limit),
    ),
    example="yaml google.cloud.storage.blob",
    argument="NAME...",
    result=ImportOwners,
    columns=lambda _given: ("import", "module", "rank", "project", "score", "reasons"),
    rows=rows,
    nothing_found=lambda given: f"no project provides {given.name} or a package that contains it",
)
def owners(snapshot: Snapshot, given: OwnersParameters, _after: After = None) -> Found[ImportOwners]:
    """Rank the projects that provide imports, with the reasons.

    For each import, these are all projects that provide its longest known module.
    """
    return owners_of(snapshot, [given.name], given.limit)
