"""The domains, DNA and text: what differs between them as plain data.

Words, units, defaults and file names are read from the value, as `DOMAINS[config.domain].unit`.
What a domain does (open data, score, write samples) stands in a table by domain name beside the
functions that do it, so that no caller branches.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

DomainName = Literal["dna", "text"]


@dataclass(frozen=True)
class Domain:
    """One kind of sequence, and all that is said, counted or assumed differently for it."""

    name: DomainName
    """As in `config.yaml`, recipes and `--domain`."""
    title: str
    """In a sentence: "a recipe of DNA"."""
    unit: str
    """One position of a sequence."""
    units: str
    size_unit: str
    """What bits are counted per."""
    size_units: str
    has_two_strands: bool
    alphabet: str
    """Name of the alphabet or the tokenizer where none is named."""
    uniform_bits: float
    """Bits per `size_unit` of a model that knows nothing."""
    preset: str
    """The network where none is named."""
    inputs: tuple[str, ...]
    """Settings of a run that name a user's own files; the first is the sequence itself."""
    output_flag: str
    """The flag of `genodiff sample` that names the file to write."""
    samples: str
    """File of the samples in a run folder; its sidecar adds `.json`."""
    samples_title: str
    n_samples: int
    """How many are made where no number is given."""
    letters: frozenset[str]
    """Letters that a sample may hold; empty where any may."""
    blank: str
    """What a task's sequence without content consists of."""
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    """Defaults of a run that differ from those of `RunConfig`."""

    @property
    def input_flag(self) -> str:
        """The flag that names a user's own sequences."""
        return f"--{self.inputs[0]}"

    @property
    def sidecar(self) -> str:
        """File in a run folder that says how the samples were made."""
        return f"{self.samples}.json"


DNA = Domain(
    name="dna",
    title="DNA",
    unit="base",
    units="bases",
    size_unit="base",
    size_units="bases",
    has_two_strands=True,
    alphabet="dna",
    uniform_bits=2.0,
    preset="caduceus-ps-470k",
    inputs=("fasta", "bed", "genomes"),
    output_flag="--fasta",
    samples="samples.fa",
    samples_title="Generated DNA",
    n_samples=16,
    letters=frozenset("ACGT"),
    blank="N",
)

TEXT = Domain(
    name="text",
    title="text",
    unit="token",
    units="tokens",
    size_unit="byte",
    size_units="bytes",
    has_two_strands=False,
    alphabet="bytes",
    uniform_bits=8.0,
    preset="dit-tiny-bytes",
    inputs=("text",),
    output_flag="--out",
    samples="samples.txt",
    samples_title="Generated text",
    n_samples=4,
    letters=frozenset(),
    blank="blanks",
    settings={"data": {"seq_len": 128}, "train": {"batch_size": 8}},  # many small steps, for a CPU
)

DOMAINS: dict[str, Domain] = {domain.name: domain for domain in (DNA, TEXT)}
