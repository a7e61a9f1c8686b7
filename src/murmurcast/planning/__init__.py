"""From a budget to a power split."""
