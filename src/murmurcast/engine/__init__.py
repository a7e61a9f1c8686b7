"""Runs an algorithm on a problem: keyed noise, mixing, compiled rounds."""
