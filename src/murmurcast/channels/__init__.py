"""What lies between the antennas: one file per channel."""
