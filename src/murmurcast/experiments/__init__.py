"""Experiment files, and the objects they describe."""
