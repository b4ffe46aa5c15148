"""The whole pipeline as processes of one machine, under supervisord: what `pypi-assets up` starts, watches and stops.

What the processes do does not belong here, and neither does the command line.
"""
