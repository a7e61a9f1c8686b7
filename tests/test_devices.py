"""A device for every core, whatever is asked of JAX first: else compiled loops run on one core, and nobody notices."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import murmurcast._devices
murmurcast._devices.cores = lambda: 3
import murmurcast as mc

data = mc.datasets.digits().partition("iid", nodes=3)
problem = {problem}
network = mc.Network(gains=[[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]])
plan = mc.plan(network, problem, mc.Budget(epsilon=9.0, unit="node"), mc.Schedule(epochs=2), z="perron")
mc.run(mc.power_controlled(plan), problem)
import jax
print(len(jax.devices()))
"""


@pytest.mark.parametrize(
    "problem",
    [
        "mc.SoftmaxRegression(data=data)",
        'mc.Model(data=data, module=mc.modules.softmax(64, 10), loss="cross-entropy")',  # computes where it is made
    ],
)
def test_a_run_has_a_device_for_every_core(problem: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    words = [sys.executable, "-c", SCRIPT.format(problem=problem)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "3"


@pytest.mark.parametrize(
    ("name", "value"), [("JAX_NUM_CPU_DEVICES", "2"), ("XLA_FLAGS", "--xla_force_host_platform_device_count=2")]
)
def test_a_number_of_devices_that_somebody_chose_stays(name: str, value: str) -> None:
    environment = {key: other for key, other in os.environ.items() if key != "JAX_NUM_CPU_DEVICES"} | {name: value}
    words = [sys.executable, "-c", SCRIPT.format(problem="mc.Quadratic.random(3, 2, clip=1.0)")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "2"
