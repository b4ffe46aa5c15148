"""Reports for people, sensors and metrics: status, history, failures, ranges, and files live at a serial.

Each module is named after the question that it answers. Reports only read; code that changes rows belongs in the
subpackage of those rows.
"""
