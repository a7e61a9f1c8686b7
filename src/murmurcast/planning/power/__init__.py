"""How power is split between model and noise."""
