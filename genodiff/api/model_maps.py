"""The maps of a model in memory: `m.ism`, `m.dependencies` and `m.tracks`."""

from genodiff.jobs.request import method
from genodiff.maps.request import DependencyRequest, HeldTracksRequest, SaturationRequest


class ModelMaps:
    """What `genodiff ism`, `genodiff dependencies` and `genodiff tracks` write, as arrays."""

    ism = method("ism", SaturationRequest)
    dependencies = method("dependencies", DependencyRequest)
    tracks = method("tracks", HeldTracksRequest)
