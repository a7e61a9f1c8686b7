"""A channel from a ray tracer: from Sionna RT's array to a file that murmurcast reads.

Nobody needs to run this: it needs Sionna RT (pip install sionna-rt), which murmurcast neither installs nor imports. It
shows what to ask a ray tracer for. `to_channel` works on any array of that layout, and the tests try it on one.

Run it:  python examples/ray_tracer.py
"""

import numpy as np

import murmurcast as mc

CARRIER_HZ = 2.4e9
INTERVAL_S = 0.05  # between two steps of time; one epoch takes one step
STEPS = 200
BLOCKS_HZ = np.array([-2e5, 0.0, 2e5])  # parts of the band, around the carrier
POSITIONS = np.array([[8.0, 20.0, 1.5], [40.0, 90.0, 1.5], [60.0, 30.0, 1.5], [-20.0, 60.0, 1.5]])  # metres
WALKING = [1.0, 0.5, 0.0]  # metres per second


def traced_response():
    """[receiver, its antenna, sender, its antenna, time, frequency], complex."""
    from sionna import rt

    scene = rt.load_scene(rt.scene.munich)
    scene.frequency = CARRIER_HZ
    scene.tx_array = scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
    for node, place in enumerate(POSITIONS.tolist()):  # every node sends and hears, in the same order
        scene.add(rt.Transmitter(name=f"sends-{node}", position=place, velocity=WALKING))
        scene.add(rt.Receiver(name=f"hears-{node}", position=place))
    paths = rt.PathSolver()(scene=scene, max_depth=4)
    # Not normalised: the energy is the path loss, and the delays are the phases.
    return paths.cfr(
        frequencies=BLOCKS_HZ.tolist(),
        sampling_frequency=1 / INTERVAL_S,
        num_time_steps=STEPS,
        normalize=False,
        normalize_delays=False,
        out_type="numpy",
    )


def to_channel(response):
    """The same as `gains[time, from, to, block]`, with where and when."""
    return mc.from_ray_tracer(
        response, layout="frequency", positions=POSITIONS, carrier_hz=CARRIER_HZ, interval_s=INTERVAL_S
    )


if __name__ == "__main__":
    channel = to_channel(traced_response())
    channel.save("channel.npz")
    network = channel.network(power=0.1)
    print(f"channel.npz: {channel.steps} steps, {channel.nodes} nodes, {network.links} links")
