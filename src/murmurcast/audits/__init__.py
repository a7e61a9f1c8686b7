"""Attacks on what was really sent, and the confidence they deserve."""
