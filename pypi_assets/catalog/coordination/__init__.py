"""How workers share the work: claims on queue entries, leases on names, one rate of requests, names of workers.

What the work is belongs in `work`. No module here knows projects, ranges or dumps.
"""
