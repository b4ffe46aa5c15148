"""The question `page`: list the files on a project's page of the Simple API."""

from dataclasses import dataclass

from packaging.utils import canonicalize_name

from pypi_assets.lookup.simple_reader import PageFileResult
from pypi_assets.questions.names import ProjectName
from pypi_assets.questions.question import Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot


@dataclass(frozen=True)
class IndexPageParameters(Parameters):
    """Parameters of `page`."""

    project: ProjectName


@question(
    "page",
    example="requests",
    argument="PROJECT",
    result=PageFileResult,
    columns=lambda _given: ("version", "filename", "requires_python", "yanked", "uploaded_at"),
    nothing_found=lambda given: f"the page of {canonicalize_name(given.project)} shows no files",
    hints=lambda snapshot, given: snapshot.project_hints(given.project),
    project_of=lambda given: canonicalize_name(given.project),
)
def page(snapshot: Snapshot, given: IndexPageParameters, _after: After = None) -> Found[PageFileResult]:
    """List the files on a project's page of the Simple API."""
    return snapshot.page_files(given.project)
