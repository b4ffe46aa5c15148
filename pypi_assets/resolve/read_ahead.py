"""Read the projects that a resolution will probably look at before it does, so that few reads have many projects.

A round has all projects that the versions read in the round before require. The version that a solver tries first is
guessed: it is mostly the newest one that all requirements so far allow. A wrong guess costs a read, and never changes
an answer.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from pypi_assets.resolve.candidates import Candidates, notes_of
from pypi_assets.resolve.questions import ReleaseRequirements, ResolutionQuestion, ResolveError, Wanted
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.version_sets import Notes

_WITHOUT_EXTRA = ""


class ReadAhead:
    """Reads the projects that requirements lead to.

    `table` returns the versions of a project, and `required` the requirements of a version. `look` is called in each
    round, and may raise an error.
    """

    def __init__(
        self,
        index: ReleaseIndex,
        question: ResolutionQuestion,
        table: Callable[[str], Candidates],
        required: Callable[[str, int], ReleaseRequirements],
        look: Callable[[], object],
    ) -> None:
        self._index, self._question = index, question
        self._table, self._required, self._look = table, required, look
        self._constraints: dict[str, int] = {}
        self._followed: set[tuple[str, int, str]] = set()

    def constrain(self, constraints: Iterable[Wanted]) -> None:
        """Read the projects of constraints. The versions that they allow are guessed from then on."""
        some = list(constraints)
        self._index.load(one.project for one in some)
        for one in some:
            self._constraints[one.project] = self._allowed(one) & self._constraints.get(one.project, -1)
        pinned = (one for one in some if notes_of(one.specifier) & Notes.PINNED)
        self._index.load_files(
            (self._table(one.project), number) for one in pinned for number in _numbers(self._constraints[one.project])
        )

    def follow_roots(self, requirements: Iterable[Wanted]) -> None:
        """Follow the requirements of the question. Nothing is followed if one of them allows no version."""
        roots = list(requirements)
        self._index.load(one.project for one in roots)
        if all(self._allowed(one) & self._constraints.get(one.project, -1) for one in roots):
            newest = ((one, self._table(one.project).allowed(one.specifier)) for one in roots)
            self._follow(roots, [(one.project, bits.bit_length() - 1) for one, bits in newest])

    def follow_version(self, project: str, number: int, requirements: ReleaseRequirements) -> None:
        """Follow the requirements of a version, if that was not done before."""
        if (project, number, _WITHOUT_EXTRA) not in self._followed:
            self._followed.add((project, number, _WITHOUT_EXTRA))
            self._follow([one for one in requirements.held if one.url is None])

    def _follow(self, requirements: Iterable[Wanted], also: Iterable[tuple[str, int]] = ()) -> None:
        """Read the projects of these requirements, the projects that these require, and so on.

        `also` are further versions whose files are read in the first round.
        """
        new, further = list(requirements), list(also)
        allowed: dict[str, int] = {}
        extras: dict[str, set[str]] = {}
        waiting: dict[str, None] = {}
        while new or waiting:
            self._look()
            self._index.load(one.project for one in new)
            for one in new:
                before = allowed.get(one.project, self._constraints.get(one.project, -1))
                allowed[one.project] = before & self._allowed(one)
                extras.setdefault(one.project, {_WITHOUT_EXTRA}).update(one.extras)
                waiting[one.project] = None
            new, unread = [], []
            for project in waiting:
                number = self._first(project, allowed[project])
                if number is None:
                    continue
                if self._table(project).is_known(number):  # so the projects that it requires were mostly read, too
                    new += self._next(project, number, extras[project] - {_WITHOUT_EXTRA})
                else:
                    unread.append((project, number))
            self._index.load_files(
                (self._table(project), number) for project, number in dict.fromkeys([*unread, *further])
            )
            waiting, further = {}, []
            for project, number in unread:
                if self._is_usable(project, number):
                    new += self._next(project, number, extras[project])
                else:
                    waiting[project] = None

    def _allowed(self, one: Wanted) -> int:
        """Return the bits of the versions that a requirement allows and that a solver tries first."""
        table = self._table(one.project)
        bits = table.allowed(one.specifier)
        if self._question.prereleases.of(one.project) or notes_of(one.specifier) & Notes.PRERELEASES:
            return bits
        return bits & table.stable or bits

    def _first(self, project: str, bits: int) -> int | None:
        """Return the version that a solver tries first. It is one whose file was not read yet, or that has one."""
        table = self._table(project)
        preferred = self._question.preferred.get(project)
        first = None if preferred is None else table.number_of(preferred)
        numbers = _numbers(bits & table.known)
        for number in numbers if first is None or not bits >> first & 1 else chain([first], numbers):
            if not table.is_known(number) or self._is_usable(project, number):
                return number
        return None

    def _is_usable(self, project: str, number: int) -> bool:
        candidate = self._table(project)[number]
        return candidate.file is not None and not candidate.is_yanked

    def _next(self, project: str, number: int, extras: Iterable[str]) -> Iterator[Wanted]:
        """Yield the requirements of a version with these extras that were not followed yet."""
        try:
            required = self._required(project, number)
        except ResolveError:  # its requirements are unknown
            return
        for extra in extras:
            if (project, number, extra) not in self._followed:
                self._followed.add((project, number, extra))
                yield from (one for one in (required.added(extra) if extra else required.held) if one.url is None)


def _numbers(bits: int) -> Iterator[int]:
    """Yield the numbers of a set, the greatest first."""
    while bits:
        number = bits.bit_length() - 1
        yield number
        bits ^= 1 << number
