"""Features that look at no data: fixed maps, each applied to every example alone.

Name them in their order, with their defaults or with parameters: `dataset.with_features(["deskew", "hog"])`, or
`[data] features = ["deskew", {kind = "hog", cells = 7}]` in an experiment file.
"""

from murmurcast.data.features.base import FeatureMap
from murmurcast.data.features.deskew import Deskew
from murmurcast.data.features.hog import Hog
from murmurcast.data.features.own import Own
from murmurcast.data.features.random_convolution import RandomConvolution
from murmurcast.data.features.random_fourier import RandomFourier
from murmurcast.data.features.scattering import Scattering
from murmurcast.data.features.unit_norm import UnitNorm

__all__ = ["Deskew", "FeatureMap", "Hog", "Own", "RandomConvolution", "RandomFourier", "Scattering", "UnitNorm"]
