"""A device of JAX for every core: a loop of a compiled program runs on one device, and so on one core."""

import contextlib
import os

import jax

from murmurcast._threads import cores


def use_all_cores() -> None:
    """Must come before anything that makes JAX look for its devices, which it does once and for all.

    Changes nothing where JAX is already running, or where somebody has said how many devices there are to be.
    """
    said = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not said and getattr(jax.config, "jax_num_cpu_devices", 0) < 1:
        with contextlib.suppress(RuntimeError):  # JAX is already running: take what it has
            jax.config.update("jax_num_cpu_devices", cores())
