"""Training with transformers' own tools: losses, the Trainer, memory savers, padding."""

import logging

import pytest
import torch
import torch.nn.functional as F
from hf_folders import write_with_remote_code
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

from genodiff.hf.models import CaduceusPreTrainedModel
from tests.hub.published_folders import sample_ids

BOTH_STRANDS = [{}, {"rcps": False}]


@pytest.fixture(params=BOTH_STRANDS, ids=["PS", "Ph"])
def folder(request, tmp_path):
    write_with_remote_code(tmp_path / "hub", **request.param)
    return tmp_path / "hub"


@pytest.fixture
def model(folder):
    return AutoModelForMaskedLM.from_pretrained(folder)


def test_the_loss_is_the_mean_over_labels_that_count(model):
    ids = sample_ids()
    labels = ids.clone()
    labels[:, ::2] = -100
    logits = model(ids).logits
    wanted = F.cross_entropy(logits[:, 1::2].flatten(0, 1), ids[:, 1::2].flatten())
    torch.testing.assert_close(model(ids, labels=labels).loss, wanted)
    # Published training ignores the padding token as a label too, where the config has one.
    model.config.pad_token_id = 4
    labels[labels == -100] = 4
    torch.testing.assert_close(model(ids, labels=labels).loss, wanted)


def test_loss_weights_are_divided_by_their_sum(model):
    ids = sample_ids()
    labels, weights = ids.clone(), torch.full(ids.shape, 0.1)
    weights[:, ::3] = 1.0
    labels[:, 4] = -100
    given = weights.clone()
    found = model(ids, labels=labels, loss_weights=weights).loss
    assert torch.equal(weights, given)
    nats = -model(ids).logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    given[:, 4] = 0
    torch.testing.assert_close(found, (nats * given).sum() / given.sum())


@pytest.mark.parametrize(
    ("labels", "problem", "loss"),
    [
        (torch.tensor([0, 2, 1]), "single_label_classification", F.cross_entropy),
        (torch.tensor([0.5, 1.5, -1.0]), "regression", F.mse_loss),
        (
            torch.rand(3, 4).round(),
            "multi_label_classification",
            F.binary_cross_entropy_with_logits,
        ),
    ],
)
def test_a_classifiers_loss_is_told_by_its_labels(folder, labels, problem, loss):
    n = {"regression": 1, "single_label_classification": 3}.get(problem, 4)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=n)
    out = model(sample_ids(), labels=labels)
    assert (model.config.problem_type, out.logits.shape) == (problem, (3, n))
    logits = out.logits[:, 0] if n == 1 else out.logits
    torch.testing.assert_close(out.loss, loss(logits, labels))


def test_tuples_and_hidden_states_stand_as_published(folder):
    ids = sample_ids()
    model = AutoModelForMaskedLM.from_pretrained(folder)
    out = model(ids, labels=ids, output_hidden_states=True)
    loss, logits, states = model(ids, labels=ids, output_hidden_states=True, return_dict=False)
    assert torch.equal(loss, out.loss)
    assert torch.equal(logits, out.logits)
    assert len(states) == len(out.hidden_states) == 3
    assert len(model(ids, return_dict=False)) == 1
    bare = AutoModel.from_pretrained(folder, output_hidden_states=True)
    assert torch.equal(bare(ids).hidden_states[1], states[1])
    assert torch.equal(bare(ids, output_hidden_states=False, return_dict=False), states[-1])


def test_embeddings_take_the_place_of_ids(model):
    ids = sample_ids()
    embedded = model.get_input_embeddings()(ids).detach().requires_grad_()
    logits = model(inputs_embeds=embedded).logits
    assert torch.equal(logits, model(ids).logits)
    logits.sum().backward()
    assert float(embedded.grad.abs().min()) > 0
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        model()


def test_recomputing_blocks_changes_no_gradient(model):
    ids = sample_ids()
    kept = []
    for wanted in (True, False):
        change = "enable" if wanted else "disable"
        names = [f"{name}_checkpointing_{change}" for name in ("activation", "gradient")]
        getattr(model, next(name for name in names if hasattr(model, name)))()  # by version
        assert model.caduceus.backbone.settings.checkpointing == wanted
        model.zero_grad()
        model.train()(ids, labels=ids).loss.backward()
        kept.append([p.grad.clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*kept, strict=True))


def test_a_mask_of_padding_is_not_read_and_that_is_said_once(model, caplog, monkeypatch):
    monkeypatch.setattr(CaduceusPreTrainedModel, "_warned", False)
    ids = sample_ids()
    mask = torch.ones_like(ids)
    with caplog.at_level(logging.WARNING, logger="genodiff"):
        full = model(ids, attention_mask=mask).logits
        assert not caplog.records
        mask[0, :5] = 0
        assert torch.equal(model(ids, attention_mask=mask).logits, full)
        model(ids, attention_mask=mask)
    assert [r.message.startswith("attention_mask is not read") for r in caplog.records] == [True]


def test_embeddings_of_one_strand_are_resized_and_saved(folder, tmp_path):
    model, ids = AutoModelForMaskedLM.from_pretrained(folder), sample_ids()
    if model.config.rcps:
        for change in (model.resize_token_embeddings, model.set_input_embeddings):
            with pytest.raises(NotImplementedError, match="both strands"):
                change(17)
        return
    before = model(ids).logits
    assert model.resize_token_embeddings(17) is model.get_input_embeddings()
    assert model.config.vocab_size == 24  # rounded up, as the published constructor does
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    torch.testing.assert_close(model(ids).logits[..., :16], before)
    model.save_pretrained(tmp_path / "wide")
    again = AutoModelForMaskedLM.from_pretrained(tmp_path / "wide")
    assert torch.equal(again(ids).logits, model(ids).logits)


@pytest.mark.few(1)
def test_twenty_steps_of_the_trainer_lower_the_masked_loss(folder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder)
    rows = [tokenizer("ACGGT" * 10 + "T" * (i % 5)) for i in range(32)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=20, learning_rate=8e-3, seed=1,
        per_device_train_batch_size=8, logging_steps=1, report_to="none", use_cpu=True,
        disable_tqdm=True, dataloader_pin_memory=False, save_strategy="steps", save_steps=10,
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator)
    trainer.train()
    seen = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(seen) == 20
    assert sum(seen[-5:]) < 0.6 * sum(seen[:5])
    ids = torch.tensor([rows[0]["input_ids"]])
    saved = AutoModelForMaskedLM.from_pretrained(tmp_path / "out" / "checkpoint-20")
    assert torch.equal(saved(ids).logits, model.eval()(ids).logits)
