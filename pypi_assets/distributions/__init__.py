"""Read one wheel, sdist or egg from a source of bytes and build its record. Code of the distribution is never run."""
