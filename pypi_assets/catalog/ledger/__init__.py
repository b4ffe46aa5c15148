"""The ledger of serial ranges: which exist, which are complete, which are sealed by a dump.

The events of a range are in `observed`; the remaining work on it is in `work`.
"""
