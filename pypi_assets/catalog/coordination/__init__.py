"""Share work between processes: claims on queue entries, leases on names, one request rate, and names of workers.

The queues themselves are in `work`. No module here knows projects, ranges or dumps.
"""
