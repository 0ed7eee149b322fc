"""A run of genodiff as a model of transformers."""

from pathlib import Path

from genodiff.backbones.caduceus import Caduceus as Network
from genodiff.errors import UsageError
from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.models import CaduceusForMaskedLM
from genodiff.hf.tokenizer import CaduceusTokenizer
from genodiff.hub.caduceus import MASKED_LM, make_published_config, make_published_state
from genodiff.hub.export import find_origin
from genodiff.runs.model import collect_tensors, load_model


def from_run(path: str | Path) -> tuple[CaduceusForMaskedLM, CaduceusTokenizer]:
    """The model of a run or checkpoint folder and its tokenizer, in evaluation mode.

    `save_pretrained` of both into one folder makes a published folder. Raises `CheckpointError` for
    a damaged run, `UsageError` for another network than a Caduceus of DNA.
    """
    run = load_model(path)
    if run.alphabet.domain != "dna" or not isinstance(run.backbone, Network):
        what = (
            f"a network of the kind {run.config.backbone.kind} ({run.alphabet.domain}) has no "
            f"published class here"
        )
        raise UsageError(what, file=path, fix="give a run of a Caduceus of DNA")
    settings, origin = run.backbone.settings, find_origin(run)
    tensors = collect_tensors(run.backbone)
    state = make_published_state(settings, tensors, origin.vocabulary, MASKED_LM)
    config = make_published_config(settings, origin.vocabulary, origin.config, MASKED_LM)
    config |= {"architectures": [MASKED_LM]}
    model = CaduceusForMaskedLM.from_pretrained(
        None, config=CaduceusConfig.from_dict(config), state_dict=state
    )
    model.name_or_path = model.config.name_or_path = str(path)
    return model.eval(), CaduceusTokenizer(model_max_length=run.config.data.seq_len)
