"""A run of genodiff as a model of transformers."""

from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from genodiff.backbones.caduceus import Caduceus as Network
from genodiff.backbones.dit import DiT
from genodiff.errors import UsageError
from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.mdlm import MDLM, UDLM, MDLMConfig, UDLMConfig
from genodiff.hf.models import CaduceusForMaskedLM
from genodiff.hf.tokenizer import CaduceusTokenizer
from genodiff.hub.caduceus_layout import MASKED_LM, make_published_state
from genodiff.hub.export import find_origin, make_config
from genodiff.hub.mdlm import publish_mdlm
from genodiff.runs.model import TrainedModel, collect_tensors, load_model


def from_run(path: str | Path) -> tuple[CaduceusForMaskedLM | MDLM, CaduceusTokenizer]:
    """The model of a run or checkpoint folder and its tokenizer, in evaluation mode.

    It is a Caduceus of DNA, or a DiT of DNA in the published form. `save_pretrained` of both into
    one folder makes a published folder. Raises `CheckpointError` for a damaged run, `UsageError`
    for another network.
    """
    run = load_model(path)
    if run.alphabet.domain != "dna" or not isinstance(run.backbone, Network | DiT):
        raise UsageError(
            f"a network of the kind {run.config.backbone.kind} ({run.alphabet.domain}) has no "
            f"published class here",
            file=path,
            fix="give a run of a Caduceus or a DiT of DNA",
        )
    config, state = (_publish_caduceus if isinstance(run.backbone, Network) else _publish_dit)(run)
    classes: dict[str, tuple[type[PreTrainedConfig], type[PreTrainedModel]]] = {
        "caduceus": (CaduceusConfig, CaduceusForMaskedLM),
        "mdlm": (MDLMConfig, MDLM),
        "udlm": (UDLMConfig, UDLM),
    }
    config_class, model_class = classes[config["model_type"]]
    model = model_class.from_pretrained(
        None, config=config_class.from_dict(config), state_dict=state
    )
    model.name_or_path = model.config.name_or_path = str(path)
    return model.eval(), CaduceusTokenizer(model_max_length=run.config.data.seq_len)


def _publish_caduceus(run: TrainedModel) -> tuple[dict[str, Any], dict[str, Tensor]]:
    assert isinstance(run.backbone, Network)
    settings, origin = run.backbone.settings, find_origin(run)
    tensors = collect_tensors(run.backbone)
    state = make_published_state(settings, tensors, origin.vocabulary, MASKED_LM)
    return make_config(settings, origin) | {"architectures": [MASKED_LM]}, state


def _publish_dit(run: TrainedModel) -> tuple[dict[str, Any], dict[str, Tensor]]:
    assert isinstance(run.backbone, DiT)
    origin, tensors = find_origin(run), collect_tensors(run.backbone)
    return publish_mdlm(
        run.backbone.settings, tensors, origin.vocabulary, origin.config,
        run.config.data.seq_len,
    )  # fmt: skip
