"""Known answers about locks, written file by file."""

from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from pypi_assets.locks.environments import ANY_ENVIRONMENT, Environment
from pypi_assets.locks.pins import Pin
from pypi_assets.lookup.pinned_files import PinnedFile
from pypi_assets.questions.locks import InstalledDistribution, LockedAnswer, PinnedRelease, pip_order


def release(
    project: str,
    modules: Iterable[str] | None = (),
    *,
    requires: tuple[str, ...] | None = (),
    stubs: Iterable[str] = (),
    filename: str = "",
    name: str = "",
) -> PinnedRelease:
    """Return version 1 of a project with one file: a wheel, unless `filename` is of another kind."""
    filename = filename or f"{project.replace('-', '_')}-1-py3-none-any.whl"
    kind = "wheel" if filename.endswith(".whl") else "sdist"
    known = None if modules is None else tuple(sorted(modules))
    file = PinnedFile(filename, kind, None, None, requires, (), False, "data", known, tuple(sorted(stubs)))
    pin = Pin(name or project, str(canonicalize_name(project)), "1", "line 1")
    return PinnedRelease(pin, project, (file,), (file,))


def answer(*releases: PinnedRelease, environment: Environment = ANY_ENVIRONMENT) -> LockedAnswer:
    """Return the answer about a lock that pins these releases."""
    installed = [
        InstalledDistribution(release.pin.normalized, release.chosen[0].requires_dist or ()) for release in releases
    ]
    return LockedAnswer(
        lock="uv.lock",
        serial=7,
        environment=environment,
        pins=tuple(release.pin for release in releases),
        releases=releases,
        pip_order=tuple(pip_order(installed, environment)),
        remarks=(),
    )


def with_parents(modules: Iterable[str]) -> set[str]:
    """Return the modules with all their parent packages, as records have them."""
    names = set()
    for module in modules:
        parts = module.split(".")
        names |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return names


def of_modules(modules: Mapping[str, Iterable[str]]) -> LockedAnswer:
    """Return the answer about a lock of projects with these modules."""
    return answer(*(release(project, with_parents(names)) for project, names in modules.items()))


USUAL = answer(
    release("PyYAML", ["_yaml", "yaml", "yaml.nodes"], name="pyyaml"),
    release("google-auth", with_parents(["google.auth.a", "google.oauth2"])),
    release("google-cloud-storage", with_parents(["google.cloud.storage.blob"]), requires=("google-auth",)),
    release("protobuf", with_parents(["google.protobuf.any"])),
    release("types-PyYAML", [], stubs=["yaml", "yaml.nodes"]),
    release("zope.interface", with_parents(["zope.interface.a"])),
    release("old", ["no", "null"], filename="old-1.tar.gz", requires=("PyYAML>5; python_version<'4'",)),
    release("data", []),
)
