"""Maps of regions and tracks: `genodiff.ism`, `genodiff.dependencies` and `genodiff.tracks`."""

from genodiff.jobs.request import verb
from genodiff.maps.request import DependenciesRequest, IsmRequest
from genodiff.maps.track_request import TracksRequest

ism = verb("ism", IsmRequest)
dependencies = verb("dependencies", DependenciesRequest)
tracks = verb("tracks", TracksRequest)
