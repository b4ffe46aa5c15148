"""The question `project`: list the distributions of a project with their requirements."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.depgraph_reader import Distribution, parse_requirement
from pypi_assets.lookup.hints import newest_version_hint
from pypi_assets.lookup.newest_requirements import newest_distributions
from pypi_assets.questions.names import Prefix, Requirement
from pypi_assets.questions.question import Accepts, ParameterError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot, reduced


@dataclass(frozen=True)
class DistributionsParameters(Parameters):
    """Parameters of `project`."""

    requirement: Requirement
    prefix: Prefix = False
    latest: Annotated[bool, Accepts(text="list only the files of the newest version of each project")] = False


def _check(given: DistributionsParameters) -> None:
    if not given.prefix:
        try:
            parse_requirement(given.requirement)
        except LookupNameError:
            raise ParameterError("requirement", given.requirement, "a project NAME, or NAME==VERSION") from None


def _nothing_found(given: DistributionsParameters) -> str:
    if given.prefix:
        return f"no project begins with {given.requirement}"
    name, version = parse_requirement(given.requirement)
    return f"no distribution of {name}{f' in version {version}' if version else ''} is known"


def _hints(snapshot: Snapshot, given: DistributionsParameters) -> Iterator[str]:
    name, version = given.requirement, None
    if not given.prefix:
        name, version = parse_requirement(given.requirement)
    known = list(snapshot.distributions(name, None).results)
    if not known:
        yield from snapshot.project_hints(name)
    elif version is not None:
        yield newest_version_hint(name, known[-1]["version"])


@question(
    "project",
    example="requests==2.32.3",
    argument="NAME[==VERSION]",
    result=Distribution,
    columns=lambda _given: ("filename", "version", "requires_python", "yanked", "requires_dist"),
    beneath="requires_dist",
    check=_check,
    nothing_found=_nothing_found,
    hints=_hints,
    project_of=lambda given: given.requirement if given.prefix else parse_requirement(given.requirement)[0],
)
def project(snapshot: Snapshot, given: DistributionsParameters, _after: After = None) -> Found[Distribution]:
    """List the distributions of a project, with their requirements.

    With ==VERSION, only the distributions of this version are listed.
    """
    if given.prefix:
        found = snapshot.projects(given.requirement)
    else:
        found = snapshot.distributions(*parse_requirement(given.requirement))
    return reduced(found, newest_distributions) if given.latest else found
