"""Data: sets by name or from files, and how their examples are shared out among nodes."""
