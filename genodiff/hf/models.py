"""Caduceus as transformers' models: bare, for masked language modelling, for classification.

Inputs, outputs and losses are those of the published classes, on ids of the published vocabulary.
Source: Schiff et al., 2024, arXiv 2403.03234.
"""

import logging
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import (
    BaseModelOutputWithNoAttention,
    MaskedLMOutput,
    SequenceClassifierOutput,
)

from genodiff.backbones.caduceus import Caduceus as Network
from genodiff.errors import CheckpointError, UsageError
from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.published_model import CaduceusPreTrainedModel, list_complement
from genodiff.hf.published_tree import PublishedBackbone, PublishedHead, StrandHead
from genodiff.hf.tokenizer import CaduceusTokenizer
from genodiff.hub.caduceus import (
    MASKED_LM,
    make_published_config,
    make_published_state,
    read_published_settings,
)
from genodiff.hub.export import find_origin
from genodiff.runs.model import collect_tensors, load_model

IGNORED = -100
"""The label that no loss counts, besides `config.pad_token_id` where it is set."""

POOLINGS = ("mean", "max", "first", "last")

_log = logging.getLogger("genodiff")


class Caduceus(CaduceusPreTrainedModel):
    """The bare network: hidden states (B, L, D), or (B, L, 2 D) with both strands side by side."""

    def __init__(self, config: CaduceusConfig, **kwargs: Any) -> None:
        """Raises `ValueError` for what genodiff does not build."""
        super().__init__(config)
        config.pad_vocabulary()
        try:
            settings = read_published_settings(config.to_dict())
        except CheckpointError as fault:
            raise ValueError(f"config: {fault}") from None
        rows, complement = config.vocab_size, list_complement(config)
        self.backbone = PublishedBackbone(settings, rows, complement, config.residual_in_fp32)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
    ) -> tuple[Any, ...] | Tensor | BaseModelOutputWithNoAttention:
        """Hidden states after the last norm. `attention_mask` is not read, as published, and
        `output_attentions` is what PEFT gives every network: there are none to give.

        `hidden_states` are the embeddings, the output of each mixer but the last, and the last
        norm's; published code without `fused_add_norm` leaves out the last, and so does this.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        every, as_dict = choose_outputs(self.config, output_hidden_states, return_dict)
        self._read_mask(attention_mask)
        last, states = self.backbone(
            input_ids if inputs_embeds is None else inputs_embeds, every=every
        )
        if not self.config.fused_add_norm:
            states = states[:-1]
        if not as_dict:
            return (last, states) if every else last
        return BaseModelOutputWithNoAttention(
            last_hidden_state=last, hidden_states=tuple(states) if every else None
        )


def choose_outputs(
    config: CaduceusConfig, output_hidden_states: bool | None, return_dict: bool | None
) -> tuple[bool, bool]:
    """Whether hidden states are wanted, and whether a dictionary is; None asks the config."""
    every = config.output_hidden_states if output_hidden_states is None else output_hidden_states
    as_dict = config.return_dict if return_dict is None else return_dict
    return bool(every), bool(as_dict)


def list_outputs(made: MaskedLMOutput | SequenceClassifierOutput) -> tuple[Any, ...]:
    """The outputs that are there, hidden states as a list, as published."""
    states = None if made.hidden_states is None else list(made.hidden_states)
    return tuple(one for one in (made.loss, made.logits, states) if one is not None)


class CaduceusForMaskedLM(CaduceusPreTrainedModel):
    """Logits (B, L, vocab_size) of each position, padding rows of the vocabulary included."""

    def __init__(self, config: CaduceusConfig, **kwargs: Any) -> None:
        super().__init__(config)
        self.caduceus = Caduceus(config)
        self.lm_head: nn.Module
        if config.rcps:
            self.lm_head = StrandHead(list_complement(config))
        else:
            self.lm_head = PublishedHead(config.d_model, config.vocab_size)
            self._tied_weights_keys = {
                "lm_head.weight": "caduceus.backbone.embeddings.word_embeddings.weight"
            }
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        """The head. With both strands its weights are the embeddings'."""
        return self.lm_head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replaces the head. Raises `NotImplementedError` with both strands."""
        if self.config.rcps:
            raise NotImplementedError("the head of both strands (rcps) cannot be replaced")
        self.lm_head = new_embeddings

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        loss_weights: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
    ) -> tuple[Any, ...] | MaskedLMOutput:
        """Logits, and the mean cross-entropy (nats) over labels that are not ignored.

        Ignored are -100 and `config.pad_token_id`. `loss_weights` (B, L) weigh the positions; they
        are divided by their sum over the counted ones. `attention_mask` is not read, as published.
        """
        every, as_dict = choose_outputs(self.config, output_hidden_states, return_dict)
        found = self.caduceus(
            input_ids, inputs_embeds, every, return_dict=True, attention_mask=attention_mask
        )
        hidden = found.last_hidden_state
        if self.config.rcps:
            logits = self.lm_head(hidden, self.get_input_embeddings().weight)
        else:
            logits = self.lm_head(hidden)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        loss = None if labels is None else self._weigh_loss(logits, labels, loss_weights)
        made = MaskedLMOutput(loss=loss, logits=logits, hidden_states=found.hidden_states)
        return made if as_dict else list_outputs(made)

    def _weigh_loss(self, logits: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        labels = labels.to(logits.device).reshape(-1).long()
        if self.config.pad_token_id is not None:
            labels = labels.masked_fill(labels == self.config.pad_token_id, IGNORED)
        logits = logits.reshape(-1, logits.shape[-1])
        if weights is None:
            return F.cross_entropy(logits, labels, ignore_index=IGNORED)
        nats = F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="none")
        weights = weights.to(logits).reshape(-1).masked_fill(labels == IGNORED, 0.0)
        return (nats * (weights / weights.sum())).sum()


class CaduceusForSequenceClassification(CaduceusPreTrainedModel):
    """Scores (B, num_labels): pooled hidden states and one linear map without bias.

    With both strands, each is pooled, and the scores are averaged. With one strand `conjoin_train`
    and `conjoin_eval` ask for ids (B, L, 2) of both strands. Every position is pooled, padding too,
    as published.
    """

    def __init__(
        self,
        config: CaduceusConfig,
        pooling_strategy: str | None = None,
        conjoin_train: bool | None = None,
        conjoin_eval: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(config)
        if pooling_strategy is not None:
            config.pooling_strategy = pooling_strategy
        config.conjoin_train = config.conjoin_train if conjoin_train is None else conjoin_train
        config.conjoin_eval = config.conjoin_eval if conjoin_eval is None else conjoin_eval
        if config.pooling_strategy not in POOLINGS:
            known = ", ".join(POOLINGS)
            raise NotImplementedError(f"pooling_strategy '{config.pooling_strategy}'; give {known}")
        self.num_labels = config.num_labels
        self.caduceus = Caduceus(config)
        self.score = nn.Linear(config.d_model, config.num_labels, bias=False)
        self.post_init()

    @property
    def conjoins(self) -> bool:
        """Whether ids of both strands are read, in this mode. A paired network has both itself."""
        wanted = self.config.conjoin_train or (self.config.conjoin_eval and not self.training)
        return wanted and not self.config.rcps

    def pool_hidden_states(self, hidden: Tensor) -> Tensor:
        """(B, D) of (B, L, D)."""
        how = self.config.pooling_strategy
        if how in ("first", "last"):
            return hidden[:, 0 if how == "first" else -1]
        return hidden.mean(1) if how == "mean" else hidden.amax(1)

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
    ) -> tuple[Any, ...] | SequenceClassifierOutput:
        """Scores, and the loss that `config.problem_type` names.

        Where it is None, labels tell it: one label is regression, whole numbers are one class of
        several, others several yes/no answers. `hidden_states` are those of the given strand.
        """
        every, as_dict = choose_outputs(self.config, output_hidden_states, return_dict)
        self._read_mask(attention_mask)
        if self.conjoins:
            if input_ids is None or input_ids.ndim != 3 or input_ids.shape[-1] != 2:
                raise ValueError("conjoining needs input_ids (B, L, 2): both strands of each row")
            found, other = (
                self.caduceus(input_ids[..., strand], None, every, return_dict=True)
                for strand in (0, 1)
            )
            strands = [found.last_hidden_state, other.last_hidden_state]
        else:
            found = self.caduceus(input_ids, inputs_embeds, every, return_dict=True)
            strands = [found.last_hidden_state]
            if self.config.rcps:
                given, turned = strands[0].chunk(2, -1)
                strands = [given, turned.flip(1, 2)]
        logits = torch.stack([self.score(self.pool_hidden_states(h)) for h in strands]).mean(0)
        loss = None if labels is None else self._find_loss(logits, labels.to(logits.device))
        made = SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=found.hidden_states)
        return made if as_dict else list_outputs(made)

    def _find_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.config.problem_type is None:
            kind = "multi" if labels.is_floating_point() else "single"
            kind = "regression" if self.num_labels == 1 else f"{kind}_label_classification"
            self.config.problem_type = kind
        if self.config.problem_type == "regression":
            return F.mse_loss(logits.squeeze(), labels.squeeze().to(logits.dtype))
        if self.config.problem_type == "single_label_classification":
            return F.cross_entropy(logits.view(-1, self.num_labels), labels.view(-1).long())
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))


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
