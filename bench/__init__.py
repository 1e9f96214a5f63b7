"""Measurements, run by `nox -s bench`; neither installed nor tested for time."""
