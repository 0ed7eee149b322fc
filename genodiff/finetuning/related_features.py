"""A network's features, and beside them what genomes of relatives say of each base.

    h' = [p | h | p reversed]        p (4): the shares of votes of `RelatedBackbone.describe_places`

p is that of the other strand as well, whatever the number of relatives. So flipping all channels of
h', as the head of a network that reads both strands does, flips h and leaves p in its place.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import Backbone
from genodiff.errors import DataError
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.tree import VoteNumbers
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.related_backbone import PLACE_CHANNELS, RelatedBackbone
from genodiff.runs.related_genome import leave_strains_out
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives
from genodiff.settings import Settings


class RelatedFeatures(nn.Module):
    """`network` with 2 · 4 channels more; before `relatives` are there it cannot be read."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        empty = Relatives((), None)
        assert isinstance(network, Backbone)
        self.related = RelatedBackbone(network, empty, VoteNumbers(weights=(), kappa=1.0))
        self.paired, self.d_out = network.paired, network.d_out + 2 * PLACE_CHANNELS

    def take(self, relatives: Relatives, votes: VoteNumbers) -> None:
        """Read these from now on."""
        self.related.relatives, self.related.votes = relatives, votes

    def features(
        self, x: Int[Tensor, "B L"], sigma: Tensor, lengths: Int[Tensor, " B"] | None
    ) -> Float[Tensor, "B L C"]:
        """As the network's, wider. Raises `UsageError` for windows that are too long."""
        h = self.related.features(x, sigma, lengths).float()
        places = self.related.describe_rows(x, lengths).to(h)
        return torch.cat([places, h, places.flip(2)], 2)


class KeptRelatives(Settings):
    """What a model keeps of its relatives: how they were given, which genomes, and their numbers.

    The genomes themselves are not kept: they are opened again by the words of `given`.
    """

    given: tuple[str, ...]
    strains: bool = False
    genomes: tuple[dict[str, Any], ...]
    numbers: tuple[RelativeNumbers, ...]
    votes: VoteNumbers

    def open(
        self, genome: LetterSource, given: Sequence[str | Path] = ()
    ) -> tuple[Relatives, VoteNumbers]:
        """The relatives with their numbers, without those of a `genome`'s own species.

        `given` is in place of the words that were kept. Raises `DataError` where one is not here or
        is another genome than in training, where one is `genome` itself, and where none is left.
        """
        listed = list_genomes(given or self.given)
        opened = {one.name: one for one in open_relatives(listed, target=genome)}
        wanted = {one["name"]: one["fingerprint"] for one in self.genomes}
        for name, fingerprint in wanted.items():
            if name not in opened or opened[name].told["fingerprint"] != fingerprint:
                what = f"the model was trained with {name}, which is not among these relatives"
                raise DataError(what, file=listed.path, fix="give the same genomes: --relatives")
        kept, _ = leave_strains_out([opened[name] for name in wanted], genome, strains=self.strains)
        if not kept:
            what = "every related genome of the model is a strain of the genome's own species"
            raise DataError(what, file=listed.path, fix="give another genome")
        at = [[*wanted].index(one.name) for one in kept]
        genomes = tuple(
            RelativeGenome.join(one.memory, self.numbers[i])
            for one, i in zip(kept, at, strict=True)
        )
        weights = tuple(self.votes.weights[i] for i in at)
        return Relatives(genomes, None), VoteNumbers(weights=weights, kappa=self.votes.kappa)


def keep_relatives(network: RelatedBackbone, told: Mapping[str, Any]) -> KeptRelatives:
    """What is kept of the relatives of a network; `told` is `TrainedModel.relatives`."""
    given = (Path(one).absolute() if Path(one).exists() else one for one in told["given"])
    return KeptRelatives(
        given=tuple(map(str, given)),
        strains=told["strains"],
        genomes=tuple(told["genomes"]),
        numbers=tuple(one.numbers for one in network.relatives.genomes),
        votes=network.votes,
    )
