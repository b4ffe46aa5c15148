"""Words the reason why no answer came from a server, and names the setting to check.

The texts are ours: those of the libraries can hold a proxy's password. Failed requests are retried in `transport.py`.
"""

import re
import ssl
from collections.abc import Iterator
from http import HTTPStatus

from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError, ProxyError

_TUNNEL_REFUSAL = re.compile(r"Tunnel connection failed: (?P<status>[0-9]{3})")
_PROXY_SETTINGS = "PYPI_ASSETS_PROXY, or HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
_OWN_ADDRESS = "PYPI_ASSETS_INDEX_URL if it is the index's own"
_TIMED_OUT = "timed out"
_EXPIRED, _NOT_YET_VALID, _OTHER_HOST = 10, 9, {62, 64}  # X509_V_ERR_... of OpenSSL


def is_proxy_login_wanted(error: BaseException) -> bool:
    """Return whether the proxy refused a tunnel for want of credentials."""
    return _tunnel_refusal(error) == str(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED.value)


def describe_failure(error: BaseException, proxy: str) -> str:
    """Return why no whole answer came, and which setting to check.

    `proxy` is the one that the request took, without credentials; empty if it took none.
    """
    if status := _tunnel_refusal(error):
        return f"the proxy {proxy} answers HTTP {status}"
    if any(isinstance(cause, ProxyError) for cause in _causes(error)):
        return f"the proxy {proxy} cannot be used: {_reason(error)}; check {_PROXY_SETTINGS}"
    for cause in _causes(error):
        if isinstance(cause, NameResolutionError):
            return f"the host's name cannot be resolved; check the network, and {_OWN_ADDRESS}"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate {_describe_distrust(cause)}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS fails: {cause.reason or 'no reason is given'}; check whether the address is one of https"
    if any(isinstance(cause, NewConnectionError | ConnectTimeoutError) for cause in _causes(error)):
        return f"no connection: {_reason(error)}; check that the server is up, and {_OWN_ADDRESS}"
    reason = _reason(error)
    return reason if reason == _TIMED_OUT else f"no whole answer: {reason}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and what it was raised for, down to the first cause."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        inner = next((part for part in cause.args if isinstance(part, BaseException)), None)
        cause = inner or cause.__cause__ or cause.__context__


def _tunnel_refusal(error: BaseException) -> str | None:
    """Return the status with which the proxy refused a tunnel, or None if it did not."""
    refusals = (_TUNNEL_REFUSAL.match(str(cause)) for cause in _causes(error) if isinstance(cause, OSError))
    return next((refusal["status"] for refusal in refusals if refusal), None)


def _reason(error: BaseException) -> str:
    for cause in _causes(error):
        if isinstance(cause, NameResolutionError):
            return "its name cannot be resolved"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate {_describe_distrust(cause)}"
        if isinstance(cause, TimeoutError):
            return _TIMED_OUT
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return type(error).__name__


def _describe_distrust(error: ssl.SSLCertVerificationError) -> str:
    """Say what is wrong with a certificate, by OpenSSL's number of the reason, and what helps."""
    reason = error.verify_message
    if error.verify_code == _EXPIRED:
        return f"is out of date ({reason}): only its operator can renew it, unless this machine's clock is wrong"
    if error.verify_code == _NOT_YET_VALID:
        return f"is not valid yet ({reason}): check this machine's clock"
    if error.verify_code in _OTHER_HOST:
        return f"is not one of this host ({reason}); check {_OWN_ADDRESS}"
    return f"is not trusted ({reason}); if an authority of your own signed it, name its file in PYPI_ASSETS_CA_FILE"
