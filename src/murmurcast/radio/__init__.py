"""What a real radio does: units, settings, fading and phases. It knows arrays and networks, and no method."""
