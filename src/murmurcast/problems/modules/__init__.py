"""Modules that a model can be made of: shipped ones in plain JAX, and those of Flax, Equinox and PyTorch."""
