"""The ID of a request: in its answer, in its problem document and in each line of the log about it."""

import re
import secrets

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._~+/=:@-]{1,128}")
"""IDs of proxies and tracers: UUIDs, hex, Base64. No terminal, header or page acts on them."""


def request_id(sent: str | None) -> str:
    """Return the ID that the client sent if it is valid, else a new one.

    >>> request_id("4f7a-1"), len(request_id("no ID"))
    ('4f7a-1', 16)
    """
    return sent if sent and _ACCEPTED.fullmatch(sent) else secrets.token_hex(8)
