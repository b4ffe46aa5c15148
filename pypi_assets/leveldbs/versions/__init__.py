"""Versions of datasets in the storage: their input lists and manifests, publication, copies and clean-up."""
