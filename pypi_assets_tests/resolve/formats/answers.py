"""Answers for tests of formats."""

from pypi_assets.resolve.questions import Unknown
from pypi_assets.resolve.targets import target, universal_targets
from pypi_assets.resolve.universal import JoinedResolution, resolve_for
from pypi_assets_tests.resolve.made_index import MadeIndex, Release, question

PROJECTS: dict[str, dict[str, Release]] = {
    "app": {"1.0": ["lib[x]>=1", "tool; sys_platform == 'win32'"]},
    "lib": {"1.5": ["app", "extra-of-lib; extra == 'x'"]},
    "extra-of-lib": {"2.0": {"requires_dist": None, "outcome": "failed", "filenames": ["extra_of_lib-2.0.tar.gz"]}},
    "tool": {"3": {"yanked": True, "requires_dist": []}},
}


def answer(*requirements: str, universal: bool = False, **options: object) -> JoinedResolution:
    """Return the resolution for CPython 3.12 on Linux, or for Linux and Windows."""
    platforms = ["linux-x86_64", "windows-x86_64"]
    targets = universal_targets(["3.12"], platforms) if universal else (target("3.12", "linux-x86_64"),)
    given = question(*(requirements or ("app", "tool==3")), **({"unknown": Unknown.ASSUME_NONE} | options))
    return resolve_for(MadeIndex(PROJECTS), given, targets)
