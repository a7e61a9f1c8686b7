"""`murmurcast methods`: the list, read once and shown twice."""

import json
import subprocess
import sys

from murmurcast.algorithms import registry


def call(*words: str) -> str:
    command = [sys.executable, "-c", "from murmurcast.cli import main; main()", "methods", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_every_method_is_listed_with_what_it_promises() -> None:
    result = json.loads(call("--json"))["methods"]
    assert [one["name"] for one in result] == list(registry.NAMES)
    by_name = {one["name"]: one for one in result}
    assert by_name["power-controlled"]["promises"] == "against everybody"
    assert by_name["power-controlled"]["options"]["publish"] == {"default": "last", "choices": ["last", "average"]}
    assert by_name["noiseless"]["promises"] is None
    assert "no noise" in by_name["noiseless"]["reason"]
    assert "no noise" in by_name["mped2fl"]["otherwise"]
    assert by_name["decor"]["options"]["shared_to_own"] == {"default": 10.0, "choices": None}
    for one in result:
        assert (one["promises"] is None) != (one["reason"] is None)
        assert one["reference"]
        assert one["summary"]
    shown = call()
    assert all(name in shown for name in registry.NAMES)


def test_listing_methods_needs_no_engine() -> None:
    """Nor does reading an experiment file, or certifying: all of them are asked for in a hurry."""
    code = (
        "import sys; from murmurcast.algorithms import registry; registry.methods(); "
        "import murmurcast.experiments.load, murmurcast.certificates.certify; print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
