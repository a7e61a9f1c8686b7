"""The plot of a link budget shows every link where it belongs."""

import numpy as np
import pytest
from matplotlib.axes import Axes

import murmurcast as mc
from murmurcast.network.graph import Network
from murmurcast.radio.link_budget import LinkBudget, link_budget
from murmurcast.radio.settings import Radio
from murmurcast.reports.link_plot import link_figure


def budget(network: Network, radio: Radio) -> LinkBudget:
    nodes = network.nodes
    return link_budget(
        network,
        radio,
        alpha=np.linspace(0.3, 0.7, nodes),
        noise_std=np.full((3, nodes), 0.2),
        dim=50,
        radius=2.0,
        normaliser=nodes,
    )


def office() -> Network:
    gain = mc.gains.Indoor(carrier_hz=2.4e9, reciprocal=False)
    return mc.topologies.geometric(6, gain=gain, power=0.01, seed=5, size_m=60.0)


def axes_of(result: LinkBudget) -> Axes:
    return link_figure(result).axes[0]


def test_links_stand_at_their_length_and_ratio() -> None:
    result = budget(office(), Radio())
    axes = axes_of(result)
    assert result.distance_m is not None
    points = np.asarray(axes.collections[0].get_offsets())
    np.testing.assert_allclose(points, np.stack([result.distance_m, result.snr_db], axis=1))
    assert axes.get_xlabel() == "distance, m"
    words = [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert words == ["link", "receiver noise (0 dB)", "SNR* of receivers: median, and all of them"]


def test_without_positions_links_are_ranked() -> None:
    network = office()
    result = budget(Network(gains=network.gains, power=network.power), Radio())
    points = np.asarray(axes_of(result).collections[0].get_offsets())
    order = points[np.argsort(points[:, 0])]
    np.testing.assert_array_equal(order[:, 0], np.arange(1, network.links + 1))
    assert (np.diff(order[:, 1]) <= 0).all()


@pytest.mark.parametrize(("duplex", "scales"), [("half", 1), ("full", 0)])
def test_received_power_is_shown_where_all_receivers_have_one_noise(duplex: str, scales: int) -> None:
    network = office()
    unequal = Network(gains=network.gains, power=np.linspace(0.01, 0.1, 6), positions=network.positions)
    radio = Radio(duplex=duplex, self_interference_db=90.0)  # type: ignore[arg-type]
    assert len(axes_of(budget(unequal, radio)).child_axes) == scales


def test_decoded_links_have_no_threshold() -> None:
    words = axes_of(budget(office(), Radio(access="digital"))).get_legend().get_texts()  # type: ignore[union-attr]
    assert [text.get_text() for text in words] == ["link", "receiver noise (0 dB)"]
