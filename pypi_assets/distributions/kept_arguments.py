"""Keeps the arguments found in a setup.py next to its source in the extract: to follow it again takes as long as all
the rest of making an sdist's record.

They count as long as setup.py is followed by the same rules (SETUP_SCRIPT_VERSION). Then the source is read again.
"""

from collections.abc import Mapping

import msgspec

from pypi_assets.distributions.setup_script import SetupArguments, read_setup_script

SETUP_SCRIPT_VERSION = 7
"""Raised whenever the same setup.py would lead to other arguments, or to other bytes of them."""
_encoder = msgspec.msgpack.Encoder()


class _Kept(msgspec.Struct, array_like=True):
    version: int
    arguments: msgspec.Raw


_kept_decoder = msgspec.msgpack.Decoder(_Kept)
_arguments_decoder = msgspec.msgpack.Decoder(SetupArguments)


def keep_arguments(source: bytes, files: Mapping[str, bytes] | None = None) -> bytes:
    """The arguments in the setup.py `source`, which may use `files`, as MessagePack: `[version, arguments]`.

    Empty where it takes more room than `source`, as lists that are made by repetition do, and where there was a
    problem, which is found again as quickly.
    """
    arguments = read_setup_script(source, files)
    if arguments.problem is not None:
        return b""
    # Sets are written in their order, so that the same source always gives the same bytes.
    values = [sorted(value) if isinstance(value, frozenset) else value for value in msgspec.structs.astuple(arguments)]
    encoded = _encoder.encode((SETUP_SCRIPT_VERSION, values))
    return encoded if len(encoded) <= len(source) else b""


def kept_arguments(kept: bytes) -> SetupArguments | None:
    """What `keep_arguments` kept; None where that is nothing, or not by today's rules."""
    if not kept:
        return None
    found = _kept_decoder.decode(kept)
    return _arguments_decoder.decode(found.arguments) if found.version == SETUP_SCRIPT_VERSION else None
