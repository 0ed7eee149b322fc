"""Embeddings of DNA windows in a file: `genodiff.embed`."""

from genodiff.embedding.request import EmbedRequest
from genodiff.jobs.request import verb

embed = verb("embed", EmbedRequest)
