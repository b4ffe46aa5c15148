"""The whole pipeline as processes of one machine, under supervisord: `pypi-assets up` starts, watches and stops them.

Their work does not belong here, and neither does the command line.
"""
