"""Words a message about a failing store: the store's own reason, and the settings to check."""

import re

_S3_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")  # in S3's answer, below obstore's first line
_NOT_REACHED = re.compile(r'ConnectError\(.*?: "([^"]+)"', re.DOTALL)  # why, in obstore's debugging dump
_NOT_TRUSTED = re.compile(r"InvalidCertificate\(\s*(\w+)")  # of TLS, in the same dump
_NOT_WRITABLE = re.compile(r"os error (?:13|30)\b")  # no permission, or a read-only file system, in obstore's text
WRITABLE = "make it writable, or set PYPI_ASSETS_STORAGE_URL or PYPI_ASSETS_HOME to another folder"
_SETTINGS = {
    "s3": {
        "keys": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        "endpoint": "AWS_ENDPOINT_URL",
        "region": "AWS_REGION",
    },
    "gs": {"keys": "GOOGLE_APPLICATION_CREDENTIALS", "endpoint": "the network", "region": "the bucket's region"},
    "az": {
        "keys": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        "endpoint": "AZURE_STORAGE_ENDPOINT",
        "region": "the account's region",
    },
}
"""The variables of the remote stores, which obstore reads itself."""
_ADVICE = [
    (re.compile(r"169\.254\.169\.254"), "no keys are set, so the machine's own were looked for: set {keys}"),
    (
        re.compile(r"necessary privileges|valid authentication credentials|code: 40[13]\b"),
        "check {keys}, and their rights",
    ),
    (re.compile(r"incorrectly configured region"), "check {region}"),
    (re.compile(r"bucket does not exist|NoSuchBucket"), "check PYPI_ASSETS_STORAGE_URL and {endpoint}"),
    (
        re.compile(r"error sending request|ConnectError|code: (?:405|501)\b"),
        "check {endpoint}, and that the store is up",
    ),
]
"""What in obstore's text points at which settings; the first match counts."""


def store_message(error: Exception, url: str) -> str:
    """Return the store's message with the reason from its debugging dump, and with the settings to check.

    `url` is the root of the storage, whose scheme decides which settings these are.
    """
    text = str(error)
    message = _message_of(text, error)
    names = _SETTINGS.get(url.partition("://")[0])
    advice = next((advice for pattern, advice in _ADVICE if pattern.search(text)), None) if names else None
    return message if names is None or advice is None else f"{message.rstrip(' :.')}; {advice.format(**names)}"


def _message_of(text: str, error: Exception) -> str:
    first_line = (text.splitlines() or [type(error).__name__])[0]
    if _NOT_WRITABLE.search(text):
        return f"{first_line}; {WRITABLE}"
    if message := _S3_MESSAGE.search(text):
        return f"{first_line.partition(': <')[0]}: {message[1]}"
    if reason := _NOT_REACHED.search(text):
        return f"{first_line}: {reason[1]}"
    if reason := _NOT_TRUSTED.search(text):
        return (
            f"{first_line}: its certificate is not trusted ({reason[1]}); SSL_CERT_FILE names the file of trusted ones"
        )
    return f"{first_line}: for plain http, set AWS_ALLOW_HTTP=true" if "BadScheme" in text else first_line
