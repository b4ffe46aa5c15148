"""The fault plan: repeatable faults, and the requests that they are injected into.

A plan is a TOML file. It becomes a hook of the server, like any other hook. How each fault changes a response is in
pypi_assets.devindex.response_faults.
"""

import time
import tomllib
import xmlrpc.client
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from pypi_assets.devindex import response_faults
from pypi_assets.devindex.devindex_errors import DevIndexError
from pypi_assets.devindex.history import METADATA_SUFFIX
from pypi_assets.devindex.index_state import IndexState

_TOO_MANY_REQUESTS = -32500
_UNAVAILABLE = -32403
_REDIRECTED = "redirected"
_LOOPING = "looping"

_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Part = Annotated[float, Field(ge=0, lt=1)]


class FaultPlanError(DevIndexError):
    """The file is not a valid fault plan. The message names the file, the fault and the key."""


class RequestKind(StrEnum):
    """The purpose of a request."""

    CHANGELOG = "changelog"
    INDEX = "index"
    PAGE = "page"
    LEGACY = "legacy"
    FILE = "file"
    RANGE = "range"
    SIDECAR = "sidecar"


_PAGES = frozenset({RequestKind.INDEX, RequestKind.PAGE, RequestKind.LEGACY})
_BYTES = frozenset({RequestKind.FILE, RequestKind.RANGE, RequestKind.SIDECAR})
_GOT = _PAGES | _BYTES
_ALL = frozenset(RequestKind)


def request_kind(request: Request) -> RequestKind:
    """Return the kind of `request`; unknown paths count as pages."""
    path = request.url.path
    if path.startswith("/packages/"):
        if path.endswith(METADATA_SUFFIX):
            return RequestKind.SIDECAR
        return RequestKind.RANGE if "range" in request.headers else RequestKind.FILE
    if path.startswith("/pypi"):
        return RequestKind.CHANGELOG if request.method == "POST" else RequestKind.LEGACY
    return RequestKind.INDEX if path == "/simple/" else RequestKind.PAGE


class Fault(BaseModel):
    """A fault, and the requests that it is injected into.

    A request is a candidate if its kind is in `on` and its path matches `url`. Of the candidates, the fault hits a
    share of `rate`, or the numbers in `requests` (from 1), or one in `every`, or all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    can_meet: ClassVar[frozenset[RequestKind]] = _ALL
    by_default: ClassVar[frozenset[RequestKind] | None] = None
    """The kinds of requests if `on` is not given; None stands for all in `can_meet`."""

    kind: str
    on: Annotated[list[Annotated[RequestKind, Field(strict=False)]], Field(min_length=1)] | None = None
    url: Annotated[str, StringConstraints(min_length=1)] | None = None
    rate: Annotated[float, Field(gt=0, le=1)] | None = None
    requests: Annotated[list[_Count], Field(min_length=1)] | None = None
    every: _Count | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in ("rate", "requests", "every") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} cannot be combined; keep one of them")
        if other := sorted(set(self.on or ()) - self.can_meet):
            raise ValueError(f"on: not possible for {', '.join(other)}, only for {', '.join(sorted(self.can_meet))}")
        return self

    @property
    def met_on(self) -> Collection[RequestKind]:
        """Return the kinds of requests that can have the fault."""
        return self.on or self.by_default or self.can_meet

    def concerns(self, request: Request, kind: RequestKind) -> bool:
        """Check whether `request` is a candidate of this fault. Candidates are counted."""
        return kind in self.met_on and (self.url is None or fnmatchcase(request.url.path, self.url))

    def continues(self, request: Request) -> bool:  # noqa: ARG002
        """Check whether `request` results from an earlier response of this fault, as in a redirect loop.

        Such a request always has the fault.
        """
        return False

    @abstractmethod
    def answer(self, request: Request) -> Response:
        """Return the response to the request."""


class _Status(Fault):
    kind: Literal["status"]
    status: Annotated[int, Field(ge=400, le=599)] = 503
    retry_after: Annotated[int, Field(ge=0)] | None = None
    retry_after_as: Literal["seconds", "date"] = "seconds"

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        headers = {}
        if self.retry_after is not None:
            due = datetime.now(UTC) + timedelta(seconds=self.retry_after)
            as_date = self.retry_after_as == "date"
            headers["retry-after"] = format_datetime(due, usegmt=True) if as_date else str(self.retry_after)
        return PlainTextResponse(f"{self.status} by the fault plan", self.status, headers)


class _XmlRpcFault(Fault):
    can_meet: ClassVar = frozenset({RequestKind.CHANGELOG})
    kind: Literal["xmlrpc-fault"]
    code: int = _TOO_MANY_REQUESTS
    reset: Annotated[int, Field(ge=0)] | None = None
    text: str | None = None

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        text = self.text
        if text is None and self.code == _TOO_MANY_REQUESTS:
            text = "HTTPTooManyRequests: The action could not be performed because there were too many requests."
            text += "" if self.reset is None else f" Limit may reset in {self.reset} seconds."
        elif text is None:
            text = "unavailable" if self.code == _UNAVAILABLE else "a fault by the fault plan"
        body = xmlrpc.client.dumps(xmlrpc.client.Fault(self.code, text), methodresponse=True)
        return Response(body, media_type="text/xml")


class _Earlier(Fault):
    """Answers that the index would have given at an earlier time."""

    serials: _Count | None = None
    seconds: _Seconds | None = None

    @model_validator(mode="after")
    def _check_age(self) -> Self:
        if (self.serials is None) == (self.seconds is None):
            raise ValueError("give either serials or seconds")
        return self

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.changed(as_of=self._serial)

    def _serial(self, state: IndexState) -> int:
        if self.serials is not None:
            return (state.last_serial or 0) - self.serials
        return state.serial_at(time.time() - (self.seconds or 0))


class _Stale(_Earlier):
    can_meet: ClassVar = _PAGES
    kind: Literal["stale"]


class _Backwards(_Earlier):
    kind: Literal["backwards"]


class _Reset(Fault):
    kind: Literal["reset"]
    sent: _Part | None = None

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return (
            response_faults.reset_at_once() if self.sent is None else response_faults.cut_short(self.sent, reset=True)
        )


class _Truncated(Fault):
    kind: Literal["truncated"]
    sent: _Part = 0.5

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.cut_short(self.sent, reset=False)


class _Slow(Fault):
    kind: Literal["slow"]
    bytes_per_second: _Seconds

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.dripping(self.bytes_per_second)


class _Hang(Fault):
    kind: Literal["hang"]
    seconds: _Seconds = 3600.0

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.hanging(self.seconds)


class _Redirect(Fault):
    can_meet: ClassVar = _GOT
    kind: Literal["redirect"]
    to: str = "same-host"
    status: Literal[301, 302, 303, 307, 308] = 302

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.to not in {"same-host", "loop"}:
            target = urlsplit(self.to)
            if target.scheme not in {"http", "https"} or not target.hostname:
                raise ValueError(
                    f'to: expected "same-host", "loop" or a URL like "https://files.example.org", got {self.to!r}'
                )
        return self

    def concerns(self, request: Request, kind: RequestKind) -> bool:
        return _REDIRECTED not in request.query_params and super().concerns(request, kind)

    def continues(self, request: Request) -> bool:
        return self.to == "loop" and _LOOPING in request.query_params

    def answer(self, request: Request) -> Response:
        path = request.url.path
        match self.to:
            case "same-host":
                location = f"{path}?{_REDIRECTED}"
            case "loop":
                location = f"{path}?{_LOOPING}"
            case elsewhere:
                location = f"{elsewhere.rstrip('/')}{path}"
        return Response(status_code=self.status, headers={"location": location})


class _Html(Fault):
    kind: Literal["html"]

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return HTMLResponse("<!DOCTYPE html>\n<html><body><h1>We'll be back soon</h1></body></html>\n")


class _Gzip(Fault):
    by_default: ClassVar = _PAGES | {RequestKind.CHANGELOG}
    kind: Literal["gzip"]
    broken: bool = False

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.changed(lambda answer: response_faults.compressed(answer, broken=self.broken))


class _NoRanges(Fault):
    can_meet: ClassVar = frozenset({RequestKind.RANGE})
    kind: Literal["no-ranges"]

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.changed(ignoring=["range"])


class _WrongBytes(Fault):
    by_default: ClassVar = _BYTES
    kind: Literal["wrong-bytes"]

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.changed(response_faults.with_wrong_bytes)


class _WrongSize(Fault):
    by_default: ClassVar = frozenset({RequestKind.FILE, RequestKind.SIDECAR})
    kind: Literal["wrong-size"]
    more: int = 1

    @model_validator(mode="after")
    def _check_more(self) -> Self:
        if self.more == 0:
            raise ValueError("more: expected a number of bytes above or below 0")
        return self

    def answer(self, request: Request) -> Response:  # noqa: ARG002
        return response_faults.changed(lambda answer: response_faults.with_other_size(answer, self.more))


class FaultPlanFile(BaseModel):
    """The content of a plan's file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: int = 0
    fault: list[
        Annotated[
            _Status
            | _XmlRpcFault
            | _Stale
            | _Backwards
            | _Reset
            | _Truncated
            | _Slow
            | _Hang
            | _Redirect
            | _Html
            | _Gzip
            | _NoRanges
            | _WrongBytes
            | _WrongSize,
            Field(discriminator="kind"),
        ]
    ] = []


class FaultPlan:
    """A hook for the server that injects the planned faults.

    `seen` counts the requests, and `met` the faults by kind. Whether a request has a fault with a rate depends only on
    the seed, the address, and the number of earlier requests to it. The order of requests to different addresses does
    not matter.
    """

    def __init__(self, plan: str) -> None:
        """Read a plan from TOML text. Raises FaultPlanError if it is not valid."""
        try:
            read = FaultPlanFile.model_validate(tomllib.loads(plan))
        except tomllib.TOMLDecodeError as error:
            raise FaultPlanError(f"not TOML: {error}") from error
        except ValidationError as error:
            raise FaultPlanError("; ".join(_describe(detail) for detail in error.errors())) from error
        self._seed = read.seed
        self._faults = read.fault
        self._numbers = [0] * len(read.fault)
        self._counts: Counter[bytes] = Counter()
        self._lock = Lock()
        self.seen = 0
        self.met: Counter[str] = Counter()

    @classmethod
    def load(cls, path: Path) -> "FaultPlan":
        """Read a plan from the file at `path`. Raises FaultPlanError, which names the file, and OSError."""
        try:
            return cls(path.read_bytes().decode())
        except (FaultPlanError, UnicodeDecodeError) as error:
            raise FaultPlanError(f"{path}: {error}") from error

    def __call__(self, request: Request) -> Response | None:
        with self._lock:
            self.seen += 1
            fault = self._choose(request)
            if fault is None:
                return None
            self.met[fault.kind] += 1
        return fault.answer(request)

    def _choose(self, request: Request) -> Fault | None:
        """Return the first fault of the request, or None. Each fault counts its candidates, whether it is injected or
        not.
        """
        kind, draw, floor = request_kind(request), self._draw(request), 0.0
        chosen: Fault | None = None
        for place, fault in enumerate(self._faults):
            meets = fault.continues(request)
            if fault.concerns(request, kind):
                self._numbers[place] += 1
                number = self._numbers[place]
                if fault.rate is not None:
                    meets = meets or floor <= draw < floor + fault.rate
                    floor += fault.rate
                elif fault.requests is not None:
                    meets = meets or number in fault.requests
                else:
                    meets = meets or number % (fault.every or 1) == 0
            if meets and chosen is None:
                chosen = fault
        return chosen

    def _draw(self, request: Request) -> float:
        """Return a number from 0 up to 1. All faults share it, so that their rates add up."""
        what = (request.method, request.url.path, request.url.query, request.headers.get("range", ""))
        key = "\n".join(what).encode() + b"\n" + request.state.body
        self._counts[key] += 1
        digest = blake2b(b"%d\n%d\n%b" % (self._seed, self._counts[key], key), digest_size=8).digest()
        return float(int.from_bytes(digest)) / 2.0**64


def _describe(detail: ErrorDetails) -> str:
    """Describe the wrong key of a fault, and the reason. In a location, the second part is the kind, and the third the
    key.
    """
    place = detail["loc"]
    text = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        text = "no such key"
    if not place or place[0] != "fault" or len(place) == 1:
        return f"{'.'.join(str(part) for part in place)}: {text}"
    number = int(place[1]) + 1
    if detail["type"].startswith("union_tag"):
        return f"fault {number}: kind: {text}"
    name = "".join(f" ({part})" for part in place[2:3])
    keys = "".join(f": {part}" for part in place[3:4])
    return f"fault {number}{name}{keys}: {text}"
