"""The question `purl`: find the files of the project or version that a package URL names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pypi_assets.errors import NotAnsweredError
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.package_urls import PurlResult, parse_purl, purl_result, wrong_purl
from pypi_assets.questions.question import Accepts, Batch, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

Purl = Annotated[str, Accepts(text="a package URL, such as pkg:pypi/requests@2.32.3", min_length=1, max_length=1_000)]


@dataclass(frozen=True)
class PurlParameters(Parameters):
    """Parameters of `purl`."""

    purl: Purl


def _known(snapshot: Snapshot, purl: str) -> PurlResult:
    try:
        parsed = parse_purl(purl)
        found = snapshot.distributions(parsed.normalized, parsed.version)
        result = purl_result(purl, parsed, found.results)
        if found.followed_projects is not None and not result["exists"] and not snapshot.versions(parsed.normalized):
            followed = f"the {found.followed_projects:,} followed projects"
            result["error"] = f"{parsed.normalized} has no live files among {followed}; other projects are unknown"
        return result
    except (LookupNameError, NotAnsweredError) as error:
        return wrong_purl(purl, error)


def _several(snapshot: Snapshot, purls: Sequence[str], _given: Parameters) -> Found[PurlResult]:
    return snapshot.collected("depgraph", PurlResult, [_known(snapshot, purl) for purl in purls])


@question(
    "purl",
    batch=Batch(
        path="/v1/purls",
        field="purls",
        most=1_000,
        summary="Look up several package URLs",
        description="There is one result for each URL, in the same order. `error` has the reason if one has no answer.",
        answer=_several,
    ),
    example="pkg:pypi/requests@2.32.3",
    argument="PURL",
    result=PurlResult,
    columns=lambda _given: ("purl", "error", "project", "version", "exists", "yanked", "files"),
    nothing_found=lambda given: f"nothing is known about {given.purl}",
)
def purl(snapshot: Snapshot, given: PurlParameters, _after: After = None) -> Found[PurlResult]:
    """Show whether a package URL names live files, and which.

    The URL can name a project, a version (@), and a file (?file_name=).
    """
    return _several(snapshot, [given.purl], given)
