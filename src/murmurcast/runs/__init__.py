"""A run, from its first epoch to the folder it is kept in."""
