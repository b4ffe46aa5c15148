"""Answers for people, sensors and metrics: status, history, failures, ranges, live files at a serial.

Each module is named after the question that it answers. Reports only read; what changes rows belongs in the room of
those rows.
"""
