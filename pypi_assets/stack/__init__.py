"""Run the whole pipeline on one machine: `pypi-assets up` starts its processes under supervisord, and stops them.

Neither the work of the processes nor the command line belongs here.
"""
