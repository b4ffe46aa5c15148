"""The ledger of serial ranges: which exist, which are complete, which are sealed by a dump.

What happened in a range is in `observed`; what is left to do in it is in `work`.
"""
