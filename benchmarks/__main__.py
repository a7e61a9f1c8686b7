"""What things cost, each figure beside its bar. Run with: make bench, or one part: make bench PART=training."""

import sys

from benchmarks import planning, training

PARTS = {"planning": planning.bench, "training": training.bench}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
