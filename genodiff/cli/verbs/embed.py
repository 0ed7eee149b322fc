"""Embeddings of DNA windows to .npz, .parquet, .zarr, .csv or .tsv."""

from collections.abc import Mapping
from typing import Any

from genodiff.api.embedding import embed as write_embeddings
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def _say(told: Mapping[str, Any]) -> str:
    return f"{format_count(told['windows'], 'window')}, {format_count(told['bases'], 'base')}"


embed = make_verb(write_embeddings, _say)
