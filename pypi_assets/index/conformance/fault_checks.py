"""Checks of how an index copes with faults of its server, with throttling, credentials and threads."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from pypi_assets.index.conformance.lab import LOGIN, PASSWORD, USER, IndexReading, Lab, download, expect, page_of
from pypi_assets.index.conformance.site import Answers, Request, SiteAnswer, serving
from pypi_assets.index.conformance.subject import Subject, either, expect_exact, script
from pypi_assets.index.errors import LoginError, PackageIndexError, TransientError
from pypi_assets.index.protocol import PackageIndex

_RETRY_AFTER_S = 30
_LONG_RETRY_AFTER_S = 100_000
_MOST_CUTS = 8


class FaultChecks(Subject):
    """The index reports faults as errors, is polite, and loses nothing."""

    def test_unreadable_answers_are_errors(self) -> None:
        """An answer that is not the index's own is an error, and never an empty list or page."""
        for trouble in (
            SiteAnswer(b"<html><form>Log in</form></html>", "text/html"),
            SiteAnswer(b'{"cut', "application/json"),
            SiteAnswer(b"", "application/json"),
            SiteAnswer(b"[]", "application/json"),
            SiteAnswer(b"busy", "text/plain", 503),
            SiteAnswer(b"no", "text/plain", 400),
        ):
            what = f"HTTP {trouble.status} with the body {trouble.body!r}"
            for good in range(2):
                with self.lab() as lab:
                    with lab.opened() as index:
                        lab.world.add("demo", "1.0")
                        lab.world.add("other", "1.0")
                        before = lab.read(index)
                    with lab.opened() as index:
                        for _ in range(3):
                            lab.site.trouble = _after(good, trouble)
                            answer = either(partial(lab.read, index, rounds=1))
                            if isinstance(answer, IndexReading):
                                expect(answer.shown() == before.shown(), f"{what} changes pages")
                    with self._healed(lab) as index:
                        expect(lab.read(index).events == before.events, f"{what} leads to events")

    def test_interrupted_runs_lose_nothing(self) -> None:
        """A run whose connection breaks at any request continues later, with the result of an uninterrupted run."""
        for cut in range(1, _MOST_CUTS + 1):
            with self.lab() as lab:
                for _ in script(lab.world, steps=4):
                    """Take the first steps before anything is read."""
                with lab.opened() as index:
                    lab.read(index)
                for name in ("late", "later"):
                    lab.world.add(name, "1.0")
                with lab.opened() as index:
                    lab.site.trouble = _after(cut - 1, SiteAnswer(b'{"half": "of an answer"}', sent=5))
                    answer = either(partial(lab.read, index, rounds=2))
                    if isinstance(answer, PackageIndexError):
                        expect(
                            isinstance(answer, TransientError),
                            f"a broken connection is a {type(answer).__name__}: {answer}",
                        )
                with self._healed(lab) as index:
                    expect_exact(lab, lab.read(index))

    def test_broken_connection_is_tried_again(self) -> None:
        """A request that breaks once is sent again."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.trouble = _once(SiteAnswer(b"half of an answer", sent=3))
            answer = either(lambda: lab.read(index))
            expect(isinstance(answer, IndexReading), f"one broken answer ends the run: {answer}")
            expect_exact(lab, answer)

    def test_throttling_is_respected(self) -> None:
        """After a 429, no request is sent before the time in Retry-After."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.trouble = _once(_throttled(_RETRY_AFTER_S))
            answer = either(lambda: lab.read(index))
            expect(isinstance(answer, IndexReading), f"a 429 with a short pause ends the run: {answer}")
            first, second = lab.site.received[:2]
            waited = second.at - first.at
            expect(
                waited >= _RETRY_AFTER_S, f"the next request came after {waited} s, and not after {_RETRY_AFTER_S} s"
            )
            for request in lab.site.received:
                agent = request.headers.get("user-agent", "")
                expect(
                    agent.startswith("pypi-assets/"), f"{request.path} was requested as {agent!r}, not by the client"
                )

    def test_long_throttling_is_reported(self) -> None:
        """A pause that is too long to wait for is a TransientError with that pause."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.trouble = lambda _: _throttled(_LONG_RETRY_AFTER_S)
            answer = either(lambda: lab.read(index))
            expect(isinstance(answer, TransientError), f"a 429 with a long pause is {answer!r}")
            pause_s = answer.retry_after_s if isinstance(answer, TransientError) else None
            expect(pause_s == _LONG_RETRY_AFTER_S, f"the error has the pause {pause_s}, not {_LONG_RETRY_AFTER_S}")

    def test_missing_login_is_an_error(self) -> None:
        """Without the credentials that the index requires, requests end with a LoginError."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.login = LOGIN
            answer = either(lambda: lab.read(index))
            expect(isinstance(answer, LoginError), f"a 401 is {answer!r}, and not a LoginError")

    def test_credentials_reach_only_the_index(self) -> None:
        """Credentials of the index's URL are sent to the index alone, and are never displayed."""
        with self.lab() as lab, serving(lambda _: None, lab.clock.now, host="localhost") as elsewhere:
            filename = lab.world.add("demo", "1.0")
            lab.site.login = LOGIN
            login = f"{USER}:{PASSWORD}@"
            with lab.opened(login=login) as index:
                reading = either(lambda: lab.read(index))
                expect(isinstance(reading, IndexReading), f"the credentials of the URL are not used: {reading}")
                [file] = page_of(index, "demo").files
                expect(PASSWORD not in f"{index.index_url}{index.changelog_url}{file}", "the password is displayed")
                expect(download(index, file), f"{filename} is empty")
            lab.world.add("fresh", "1.0")
            with lab.opened(login=login) as index:
                away = SiteAnswer(status=302, headers={"Location": f"{elsewhere.url}/away/"})
                lab.site.trouble = lambda _: away
                for error in (either(lambda: lab.read(index)), either(lambda: index.project_page("fresh"))):
                    expect(PASSWORD not in str(error), "the password is in an error")
            for request in elsewhere.received:
                expect("authorization" not in request.headers, "the credentials were sent to another host")

    def test_threads_do_not_disturb_each_other(self) -> None:
        """Pages that several threads request at the same time belong to the requested projects."""
        names = [f"p{number}" for number in range(6)]
        with self.lab() as lab, lab.opened() as index:
            for name in names:
                lab.world.add(name, "1.0")
            together = threading.Barrier(len(names))

            def wait_for_all(_: Request) -> None:
                try:
                    together.wait(0.5)
                except threading.BrokenBarrierError:
                    """Some requests are not sent at the same time."""

            lab.site.trouble = wait_for_all
            with ThreadPoolExecutor(len(names)) as pool:
                pages = list(pool.map(lambda name: either(lambda: page_of(index, name)), names))
            for name, page in zip(names, pages, strict=True):
                files = {file.filename for file in getattr(page, "files", ())}
                expect(files == lab.world.live()[name], f"a thread that requested {name} got {page}")

    @contextmanager
    def _healed(self, lab: Lab) -> Iterator[PackageIndex]:
        """Yield an index that another process opens after the trouble."""
        lab.site.trouble = lambda _: None
        lab.clock.sleep(100_000)  # no pause after failures is longer
        with lab.opened() as index:
            yield index


def _once(answer: SiteAnswer) -> Answers:
    return _counted(lambda number: answer if number == 1 else None)


def _after(good: int, answer: SiteAnswer) -> Answers:
    """Give `answer` to each request after the first `good` ones."""
    return _counted(lambda number: answer if number > good else None)


def _counted(answer: Callable[[int], SiteAnswer | None]) -> Answers:
    lock, count = threading.Lock(), 0

    def counted(_: Request) -> SiteAnswer | None:
        nonlocal count
        with lock:
            count += 1
            number = count
        return answer(number)

    return counted


def _throttled(seconds: int) -> SiteAnswer:
    return SiteAnswer(b"too many requests", "text/plain", 429, {"Retry-After": str(seconds)})
