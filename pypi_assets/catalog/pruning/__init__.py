"""Rows that go: those of logs by their age, and those that nothing names any more.

What is never pruned (events, changes, intervals, sightings) does not belong here; docs/operations.md names all tables.
"""
