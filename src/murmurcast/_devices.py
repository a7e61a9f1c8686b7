"""A device of JAX for every core: a loop of a compiled program runs on one device, and so on one core."""

import contextlib

from murmurcast._threads import cores


def use_all_cores() -> None:
    """Must come before anything that makes JAX look for its devices, which it does once and for all.

    Changes nothing where JAX is already running, or where somebody has said how many devices there are to be.
    """
    import jax

    if getattr(jax.config, "jax_num_cpu_devices", 0) < 1:
        with contextlib.suppress(RuntimeError):  # JAX is already running: take what it has
            jax.config.update("jax_num_cpu_devices", cores())
