"""Resolutions for an answer about many projects: each project is a job of the process that resolves."""

from functools import partial
from typing import Any

from packaging.version import Version

from pypi_assets.lookup.impact import Solvable, Verdict
from pypi_assets.questions.breaks import BreaksParameters, resolutions_of
from pypi_assets.questions.snapshot import Snapshot
from pypi_assets.resolve.solutions import Allowance, verdict_on
from pypi_assets.service.operations import Call
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.resolutions import environment_of, job_of
from pypi_assets.service.service import Service

_PROJECT_S, _WAIT_S = 2.0, 10.0
"""For how long one project is resolved, so that other questions come in between, and for how long it waits for them."""


def solvable_by_jobs(
    service: Service, call: Call[Any], _snapshot: Snapshot, given: BreaksParameters, version: Version
) -> Solvable:
    """Return the verdicts on projects with this version. Raises ProblemError for an unknown platform."""
    pinned = call.pinned
    with_it, without = resolutions_of(given, version, environment_of(given.python, given.platform, "platform"))
    most = service.settings.service_timeout_s / 2  # at a serial, the answer begins when it is whole
    allowance = Allowance(given.seconds if pinned is None else min(given.seconds, most))

    def solvable(project: str, newest: str) -> Verdict | None:
        work = partial(
            verdict_on, question=with_it, without=without, project=project, newest=newest, most_seconds=_PROJECT_S
        )

        def solve() -> Verdict | None:
            try:
                job = job_of(service, pinned, work, 3 * _PROJECT_S)
                found: Verdict | None = service.resolver.answer(job, call.client, _WAIT_S)
            except ProblemError as error:
                return Verdict("undecided", error.problem.detail)
            return found

        return allowance.spend(solve, partial(Verdict, "undecided"))

    return solvable
