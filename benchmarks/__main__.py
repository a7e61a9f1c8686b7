"""What things cost, each number beside its threshold. Run with: make bench, or one part: make bench PART=training."""

import sys

from benchmarks import methods, models, noise, planning, radio, scale, sweep, training

PARTS = {
    "planning": planning.bench,
    "training": training.bench,
    "methods": methods.bench,
    "radio": radio.bench,
    "models": models.bench,
    "noise": noise.bench,
    "scale": scale.bench,
    "sweep": sweep.bench,
}

if __name__ == "__main__":
    asked = sys.argv[1:] or list(PARTS)
    if unknown := set(asked) - set(PARTS):
        sys.exit(f"error: no part {', '.join(unknown)}\nhint: parts are {', '.join(PARTS)}")
    for part in asked:
        PARTS[part]()
