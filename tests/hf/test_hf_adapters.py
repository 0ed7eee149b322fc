"""Adapters of `peft` around the layers of published models: the kernels read what they come to."""

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from hf_folders import write_with_remote_code
from torch import Tensor
from transformers import AutoModelForMaskedLM

from genodiff.hf import CaduceusForMaskedLM, CaduceusForSequenceClassification
from genodiff.kernels.dispatch import prefer_provider
from tests.hub.published_folders import sample_ids

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is_gradient_checkpointing.*:FutureWarning", "ignore:LoRA adapter added to ConvNd"
)
PLACES = ("in_proj", "x_proj", "dt_proj", "out_proj", "embedding")
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora": ("LoraConfig", {"r": 2}),
    "dora": ("LoraConfig", {"r": 2, "use_dora": True}),
    "loha": ("LoHaConfig", {"r": 2}),
    "ia3": ("IA3Config", {"feedforward_modules": []}),
}


@pytest.fixture(params=[{}, {"rcps": False}], ids=["PS", "Ph"])
def model(request, tmp_path):
    write_with_remote_code(tmp_path / "hub", **request.param)
    found: CaduceusForMaskedLM = AutoModelForMaskedLM.from_pretrained(tmp_path / "hub")
    return found


def wrap(model: CaduceusForMaskedLM, kind: str, places: list[str]) -> Any:
    """The model under an adapter whose weights are no longer those that change nothing."""
    name, options = KINDS[kind]
    config = getattr(peft, name)(target_modules=places, **options)
    adapted = peft.get_peft_model(deepcopy(model), config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return adapted


def places_of(model: CaduceusForMaskedLM, *names: str) -> list[str]:
    return ["word_embeddings" if n == "embedding" and not model.config.rcps else n for n in names]


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("kind", "places"), [*(("lora", [one]) for one in PLACES), *((k, PLACES[:4]) for k in KINDS)]
)
def test_an_adapter_of_any_layer_and_kind_is_what_its_merged_weights_are(model, kind, places):
    ids = sample_ids()
    adapted = wrap(model, kind, places_of(model, *places))
    found = adapted(ids).logits
    assert (found - model(ids).logits).abs().max() > 1e-4
    with adapted.disable_adapter():
        torch.testing.assert_close(adapted(ids).logits, model(ids).logits)
    if "embedding" in places and not model.config.rcps:
        return  # the head is tied: `peft` leaves it as it is until both are merged
    torch.testing.assert_close(adapted.merge_and_unload()(ids).logits, found, atol=3e-5, rtol=1e-4)


def gradients(adapted: Any) -> dict[str, Tensor]:
    adapted.zero_grad()
    adapted(sample_ids()).logits.square().mean().backward()
    return {n: p.grad for n, p in adapted.named_parameters() if p.requires_grad}


def test_gradients_of_the_fused_kernels_are_those_of_the_plain_ones(model, request):
    adapted = wrap(model, "lora", places_of(model, *PLACES))
    fused = gradients(adapted)
    prefer_provider("torch")
    request.addfinalizer(partial(prefer_provider, None))
    plain = gradients(adapted)
    assert fused.keys() == plain.keys()
    for name, gradient in plain.items():
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(fused[name], gradient, atol=1e-5, rtol=1e-4)


def test_an_adapter_of_the_convolution_is_refused(model):
    # A rank that the groups of a convolution divide; of another `peft` itself refuses.
    name, channels = "conv1d", 2 * model.config.d_model
    config = peft.LoraConfig(target_modules=[name], r=channels)
    adapted = peft.get_peft_model(model, config)
    with pytest.raises(NotImplementedError, match=name):
        adapted(sample_ids())


def test_adapters_of_a_task_are_called_as_peft_calls_them(model):
    """`task_type` has PEFT hand every network `output_attentions`, which these have none of."""
    classifier = CaduceusForSequenceClassification(deepcopy(model.config))
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["in_proj", "out_proj"])
    adapted = peft.get_peft_model(classifier, config)
    ids = sample_ids()
    found = adapted(input_ids=ids, labels=torch.zeros(len(ids), dtype=torch.long))
    found.loss.backward()
    assert any(p.grad is not None for p in adapted.parameters() if p.requires_grad)


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["LoraConfig", "IA3Config", "LoHaConfig", "AdaLoraConfig"])
def test_an_adapter_without_target_modules_is_put_on_the_projections(model, kind, tmp_path):
    """PEFT's quickstart names no layers; what is saved is loaded and merged to the same logits."""
    more = {"total_step": 10} if kind == "AdaLoraConfig" else {}
    config = getattr(peft, kind)(task_type="SEQ_CLS", **more)
    classifier = CaduceusForSequenceClassification(deepcopy(model.config)).eval()
    adapted = peft.get_peft_model(deepcopy(classifier), config).eval()
    assert set(adapted.peft_config["default"].target_modules) == {"in_proj", "out_proj"}
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if weight.requires_grad and "score" not in name:
                weight.add_(torch.randn_like(weight) / 20)
    ids = sample_ids()
    wanted = adapted(input_ids=ids).logits
    assert (wanted - classifier(input_ids=ids).logits).abs().max() > 1e-5
    adapted.save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(classifier, tmp_path).eval()
    torch.testing.assert_close(again(input_ids=ids).logits, wanted)
    merged = again.merge_and_unload()
    torch.testing.assert_close(merged(input_ids=ids).logits, wanted, atol=1e-5, rtol=1e-4)
