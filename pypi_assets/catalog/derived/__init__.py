"""Derive the history of each file from events and pages, and store it.

`file_history` is a pure function. `recompute` updates the stored rows to match its result, and `visits` records the
visits that led to it. No other module writes live and yanked intervals.
"""
