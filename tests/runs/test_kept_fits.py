"""What is kept of fits of related genomes: one by one, and fitted anew where it is outdated."""

import json

import pytest

from genodiff.io.faidx import Genome
from genodiff.memory import relatives_fit
from genodiff.runs.related_genome import relate_genome
from tests.conservation.constraint_world import write_world


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr("genodiff.runs.related_genome.FIT_WINDOWS", 8)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    return write_world(tmp_path)


@pytest.fixture
def fitted(monkeypatch):
    """The genomes that were fitted."""
    found, fit = [], relatives_fit.fit_genome

    def count(memory, *given, **more):
        found.append(memory.text.sources[0].contig)
        return fit(memory, *given, **more)

    monkeypatch.setattr(relatives_fit, "fit_genome", count)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("first", ["one", "both"])
def test_a_genome_is_fitted_once_alone_and_among_others(world, fitted, first):
    genome, one = Genome(world.genome), world.relatives[1:]
    orders = {"one": (one, world.relatives), "both": (world.relatives, one)}
    told = {}
    for given in orders[first]:
        found = relate_genome(genome, given).relatives.genomes
        told[len(given)] = {g.memory.text.sources[0].contig: g.numbers for g in found}
    assert sorted(fitted) == ["far_1", "near_1"]
    assert told[2]["far_1"] == told[1]["far_1"] != told[2]["near_1"]


@pytest.mark.slow
def test_a_kept_fit_of_a_far_genome_by_the_ordinary_search_is_not_used(world, fitted, tmp_path):
    genome, one = Genome(world.genome), world.relatives[1:]
    said = relate_genome(genome, one)
    (path,) = [p for p in (tmp_path / "cache" / "relatives").glob("*.json") if holds_columns(p)]
    numbers = json.loads(path.read_text())
    for is_far in (True, False):
        own = {**numbers["genomes"][0], "divergence": [0.3] * 7, "far": is_far}
        path.write_text(json.dumps({**numbers, "genomes": [own]}))
        again = relate_genome(genome, one)
        assert (again.digest == said.digest) == (not is_far)
    assert fitted == ["far_1"]


def holds_columns(path) -> bool:
    return "columns" in json.loads(path.read_text())
