"""Secure noise against seeded noise: all of one epoch's draws, [nodes, dim], both sides in turn, in one process."""

import time
from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import PartitionSpec as Spec

from murmurcast.engine import noise, secure, sharding
from murmurcast.engine.noise import Purpose

BAR = 10.0
ROUNDS = 40
SHAPES = ((4, 7850), (100, 7850), (1000, 7850), (100, 650))


def seeded(nodes: int, dim: int) -> Callable[[int], object]:
    """The engine's draws, compiled as the engine compiles them, on all cores."""
    layout = sharding.layout(nodes, 1, 2**30)
    roots = layout.put(noise.roots((0,)), layout.by_seed)

    def draws(roots: jax.Array, epoch: jax.Array) -> jax.Array:
        keys = noise.at_epoch(roots, Purpose.SIGNAL, epoch)
        stream = noise.stream(keys, dim)
        drawn: jax.Array = jax.lax.map(lambda number: noise.normal(stream, number, np.float32), layout.own_numbers())
        return drawn

    specs = (layout.by_seed, Spec())
    compiled = jax.jit(
        jax.shard_map(draws, mesh=layout.mesh, in_specs=specs, out_specs=layout.by_node, check_vma=False)
    )
    return lambda epoch: jax.block_until_ready(compiled(roots, np.int32(epoch)))


def secured(nodes: int, dim: int) -> Callable[[int], object]:
    """Integers for as many nodes, each with a scale of its own."""
    std, sources = np.geomspace(2.0**26, 2.0**27 * 0.999, nodes), secure.sources()
    return lambda _: secure.draw(std, dim, sources)


def bench() -> None:
    """One line per shape: the best of many rounds of both."""
    for nodes, dim in SHAPES:
        sides = {"seeded": seeded(nodes, dim), "secure": secured(nodes, dim)}
        best = dict.fromkeys(sides, np.inf)
        for epoch in range(1, ROUNDS + 1):
            for name, side in sides.items():
                begun = time.perf_counter()
                side(epoch)
                best[name] = min(best[name], time.perf_counter() - begun)
        ratio = best["secure"] / best["seeded"]
        times = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in best.items())
        print(
            f"noise of {nodes} nodes x {dim}: {times}, "
            f"ratio {ratio:.1f}, {'within' if ratio <= BAR else 'OVER'} {BAR:g}",
            flush=True,
        )
