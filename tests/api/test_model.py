"""`genodiff.Model`: each method against the naive computation, on Caduceus PS, Ph and a DiT."""

import copy
import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from tiny_run import NETWORK, SEQ_LEN, write_run

import genodiff
from genodiff.alphabet import DNA
from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io.fasta import read_fasta
from tests.commands import exit_code, succeed

NETWORKS: dict[str, dict[str, Any]] = {
    "ps": NETWORK | {"n_layer": 2},
    "ph": NETWORK | {"strands": "single"},
    "dit": {
        "kind": "dit", "d_model": 16, "n_layer": 1, "n_head": 2, "adaln": True, "d_cond": 8,
        "time_conditioning": True,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each network, with weights that are all drawn."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: write_run(folder, name, backbone=one) for name, one in NETWORKS.items()}


@pytest.fixture(params=list(NETWORKS))
def model(request, runs):
    found = genodiff.load(runs[request.param], device="cpu")
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in found.network.parameters():  # a DiT begins as a constant
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.1)
    return found


@pytest.fixture
def ps(runs):
    return genodiff.load(runs["ps"], device="cpu")


def naive_row(model: genodiff.Model, ids: np.ndarray, position: int) -> np.ndarray:
    """p(base at `position` | the rest of `ids`), from one call of the network."""
    xt = torch.from_numpy(ids.astype(np.int64))[None]
    xt[0, position] = DNA.mask_id
    share = float((xt == DNA.mask_id).double().mean())
    diffusion = model.objective.diffusion
    visible = torch.tensor([1 - share], dtype=torch.float64)
    sigma = diffusion.sigma(diffusion.schedule.inverse(visible))
    with torch.no_grad():
        logits = model.network.backbone(xt, sigma)[0, position]
    return logits[list(DNA.targets)].double().softmax(-1).numpy()


def random_dna(length: int, seed: int = 0) -> str:
    letters = np.frombuffer(b"ACGT", np.uint8)
    return letters[np.random.default_rng(seed).integers(0, 4, length)].tobytes().decode()


def test_leave_one_out_is_a_loop_over_positions_at_any_batch_size(model):
    text = random_dna(23) + "N" + random_dna(6, 1)
    ids = DNA.encode(text)
    ids[23] = DNA.mask_id
    naive = np.stack([naive_row(model, ids, i) for i in range(len(text))])
    for batch_size in (1, 7, 64):
        found = model.predict(text, leave_one_out=True, batch_size=batch_size)
        assert found.shape == (30, 4)
        np.testing.assert_allclose(found, naive, atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)


def test_gaps_are_predicted_in_one_pass_beside_one_hot_and_unknown_rows(model):
    text = "ACGtNNRA?"
    ids = DNA.encode(text.replace("?", "N"))
    ids[[4, 5, 8]] = DNA.mask_id
    found = model.predict(text)
    for gap in (4, 5, 8):
        np.testing.assert_allclose(found[gap], naive_row(model, ids, gap), atol=1e-6)
    np.testing.assert_array_equal(found[[0, 1, 2, 3, 7]], np.eye(4)[[0, 1, 2, 3, 0]])
    assert np.isnan(found[6]).all()


def test_every_kth_base_is_masked_together(model):
    ids = DNA.encode(random_dna(20))
    found = model.predict(DNA.decode(ids), leave_one_out=True, every=6)
    for phase in range(6):
        together = ids.copy()
        together[phase::6] = DNA.mask_id
        for i in range(phase, 20, 6):
            np.testing.assert_allclose(found[i], naive_row(model, together, i), atol=1e-6)
    exact = model.predict(DNA.decode(ids), leave_one_out=True)
    widest = model.predict(DNA.decode(ids), leave_one_out=True, every=20)
    np.testing.assert_allclose(widest, exact, atol=1e-6)


def test_sequences_of_any_length_together_are_each_alone(model):
    texts = [random_dna(n, n) + "NN" for n in (3, 40, 1, 17, 40)]
    together = model.predict(texts, batch_size=3)
    for text, rows in zip(texts, together, strict=True):
        np.testing.assert_allclose(rows, model.predict(text), atol=1e-6)


def test_a_long_sequence_is_streamed_to_the_same_rows(ps, monkeypatch):
    text = random_dna(300) + "N" * 9 + random_dna(50, 2)
    whole = ps.predict(["NNA", text, "ACN"])
    monkeypatch.setattr("genodiff.scoring.probabilities.PIECE", 64)
    monkeypatch.setattr("genodiff.backbones.streaming.PIECE", 64)
    for rows, expected in zip(ps.predict(["NNA", text, "ACN"]), whole, strict=True):
        np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_filled_templates_are_those_of_the_command_line(ps, tmp_path):
    gaps, out = tmp_path / "gaps.fa", tmp_path / "out.fa"
    gaps.write_text(">a\nACGTnnnnRacgt\n>b\nNNNN??\n")
    words = ["sample", "--checkpoint", str(ps.path), "--fasta", str(out), "--template", str(gaps)]
    assert exit_code(*words, "-q", "--threads", "1") == 0
    written = [record.sequence.decode() for record in read_fasta(out)]
    assert ps.infill(gaps) == written
    assert ps.infill(["ACGTnnnnRacgt", "NNNN??"]) == written
    assert written[0][:4] == "ACGT"
    assert written[0][8:] == "Racgt"
    assert written[0][4:8].islower()


def test_what_is_filled_comes_back_in_the_form_in_which_it_was_given(ps):
    text = ps.infill("ACNNGT")
    assert isinstance(text, str)
    assert set(text) <= set("ACGT")
    record = SeqRecord(Seq("ACNNGT"), id="x", description="of a test")
    filled = ps.infill(record)
    assert (str(filled.seq), filled.id, filled.description) == (text, "x", "of a test")
    assert str(record.seq) == "ACNNGT"
    assert ps.infill(Seq("ACNNGT")) == Seq(text)
    assert ps.infill(b"ACNNGT") == text.encode()
    assert [str(one.seq) for one in ps.infill([record])] == [text]
    assert ps.infill({"x": "ACNNGT"}) == {"x": text}
    assert ps.infill(one for one in ["ACNNGT"]) == [text]
    assert ps.infill("ACGT", records=True).nfe == 0


def test_embeddings_are_those_of_the_command_line_in_order(model, tmp_path):
    texts = {f"s{n}": random_dna(n, n) for n in (31, 2, 64, 9, 50)}
    fasta, out = tmp_path / "s.fa", tmp_path / "e.npz"
    fasta.write_text("".join(f">{name}\n{text}\n" for name, text in texts.items()))
    assert exit_code("embed", model.path, "--fasta", fasta, "--out", out, "-q", "--threads", 1) == 0
    fresh = genodiff.load(model.path, device="cpu")
    found = fresh.embed(fasta)
    assert found.shape == (5, 16)
    np.testing.assert_allclose(found, np.load(out)["embeddings"], atol=1e-6)
    for i, text in enumerate(texts.values()):
        np.testing.assert_allclose(fresh.embed(text)[0], found[i], atol=1e-6)
    bases = fresh.embed(list(texts.values()), pool="none")
    assert [one.shape for one in bases] == [(n, 16) for n in (31, 2, 64, 9, 50)]
    np.testing.assert_allclose([one.mean(0) for one in bases], found, atol=1e-5)
    assert fresh.embed(texts, layer=[0, 1], strand="both").shape[:3] == (5, 2, 2)


def test_bits_of_the_run_s_split_are_those_of_eval(ps, capsys):
    out = succeed(capsys, "eval", ps.path, "--no-baselines", "--json", "-q", "--threads", 1)
    verb, found = json.loads(out), ps.bits()
    assert found.value == float(found) == verb["bits_per_base"]
    assert found.ci95 == tuple(verb["ci95_bits"])
    assert (found.windows, found.tokens, found.figure) == (verb["windows"], verb["tokens"], "bound")


def test_bits_of_sequences_are_the_mean_of_their_windows_bounds(ps):
    text = random_dna(3)
    found = ps.bits([text] * 600)
    ids, targets = DNA.encode(text), list(DNA.targets)
    nats = 0.0
    for size in (1, 2, 3):
        costs = []
        for chosen in combinations(range(3), size):
            xt = torch.from_numpy(ids.astype(np.int64))[None]
            xt[0, list(chosen)] = DNA.mask_id
            logp = ps.network(xt)[0][:, targets].detach().double().log_softmax(-1)
            costs.append(-sum(float(logp[i, targets.index(ids[i])]) for i in chosen) / size)
        nats += float(np.mean(costs))  # NELBO = Σ C_k / k
    assert (found.tokens, found.windows) == (1800, 600)
    assert found.value == pytest.approx(nats / 3 / np.log(2), rel=0.02)
    assert ps.bits(text).ci95 is None
    assert ps.bits([random_dna(2), random_dna(90)]).ci95 is None  # two windows say too little
    ends = ps.bits([random_dna(n) for n in (2, 2, 2, 2, 90)]).ci95
    assert 0 <= ends[0] <= ends[1]  # five say little, but bits are not negative


def test_bits_count_every_known_base_once_whatever_the_batch(ps):
    texts = [random_dna(n, n) for n in (200, 5, 64, 130)] + ["acgtNNNN", "RRNN"]
    found = ps.bits(texts)
    assert found.tokens == 200 + 5 + 64 + 130 + 4
    assert found.windows == 4 + 1 + 1 + 3 + 1 + 1
    assert found.ci95[0] < found.value < found.ci95[1]
    assert ps.bits(texts, batch_size=1).value == pytest.approx(found.value, abs=1e-6)
    assert ps.bits(texts, seed=2).value != found.value
    with pytest.raises(DataError, match="no A, C, G or T"):
        ps.bits("NNNN")


BAD = {
    "": "an empty string is no sequence",
    "ACGTXX": "'X' at position 5 is no letter of DNA",
    "missing.fa": "missing.fa: no such file",
}


@pytest.mark.parametrize("method", ["predict", "infill", "embed", "bits", "encode"])
def test_bad_sequences_are_one_line(ps, method):
    ask = getattr(ps, method)
    for given, said in BAD.items():
        with pytest.raises(DataError, match=said):
            ask(given)
    with pytest.raises(DataError, match=r"\(record seq2\): base 3: 'Q' is not a DNA letter"):
        ask(["ACGT", "ACQ"])
    with pytest.raises(DataError, match="no sequence"):
        ask([])
    with pytest.raises(UsageError, match="is no sequence"):
        ask(5)


def test_settings_that_cannot_be_meant_are_usage_errors(ps):
    wrong: list[Any] = [
        lambda: ps.sample(0),
        lambda: ps.sample(1, length=-1),
        lambda: ps.sample(1, sampler="analitic"),
        lambda: ps.sample(1, prompt="To be"),
        lambda: ps.sample(1, stride=1000),
        lambda: ps.infill("ANA", temperature=-1),
        lambda: ps.predict("ACGT", every=4),
        lambda: ps.predict("ACGT", leave_one_out=True, every=1),
        lambda: ps.predict("ACGT", batch_size=0),
        lambda: ps.predict("ACGT", leave_one_out=True, batch_size=0),
        lambda: ps.embed("ACGT", layer=9),
        lambda: ps.embed("ACGT", pool="avg"),
        lambda: ps.embed("ACGT", strand="reverse"),
        lambda: genodiff.load(3),
        lambda: ps.embed("ACGT", batch_size=0),
        lambda: ps.embed("ACGT" * (1 << 19)),
        lambda: ps.predict("ACGT" * (1 << 19)),
        lambda: ps.bits("ACGT", split="valid"),
        lambda: ps.bits(repeats=0),
        lambda: genodiff.load(ps.path, device="gpu"),
    ]
    for ask in wrong:
        with pytest.raises(UsageError):
            ask()


def test_ids_of_any_integer_type_give_the_same_logits(model):
    ids, lengths = model.encode(["ACGTACNGT?", "GGGTT"])
    assert ids.shape == (2, 10)
    assert lengths.tolist() == [10, 5]
    assert int(ids[0, 9]) == DNA.mask_id
    expected = model.network(ids, lengths)
    assert expected.shape == (2, 10, model.network.vocab_size)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        torch.testing.assert_close(model.network(ids.to(dtype), lengths.to(dtype)), expected)
    from_numpy = torch.from_numpy(model.alphabet.encode("GGGTT"))[None]  # uint8
    torch.testing.assert_close(model.network(from_numpy)[0], expected[1, :5], atol=1e-4, rtol=1e-4)
    with pytest.raises(UsageError, match=r"shape \(5,\), not \(batch, length\)"):
        model.network(from_numpy[0])
    with pytest.raises(UsageError, match="not whole numbers"):
        model.network(from_numpy.float())
    for wrong in (torch.zeros(2), torch.tensor([10, 5, 1])):  # a noise level in its place
        with pytest.raises(UsageError, match="not a whole number a row"):
            model.network(ids, wrong)


def test_hidden_states_end_in_what_the_head_reads(model):
    ids, lengths = model.encode(["ACGTACNGT", "GGGTT"])
    logits, states = model.network(ids, lengths, hidden_states=True)
    torch.testing.assert_close(logits, model.network(ids, lengths))
    assert len(states) == model.config.backbone.n_layer + 1
    assert all(one.shape == (2, 9, model.network.width) for one in states)
    torch.testing.assert_close(states[-1], model.network.features(ids, lengths))


def test_the_network_learns_in_one_s_own_loop_and_the_model_with_it(model):
    ids, _ = model.encode(["ACGTACGTAA", "GGGTTTCCCA"])
    before = model.predict("ACNTA")
    optimizer = torch.optim.Adam(model.network.train().parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        logits = model.network(ids.masked_fill(ids == 7, DNA.mask_id))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    assert not np.allclose(model.predict("ACNTA")[2], before[2])


def test_a_head_of_one_s_own_learns_on_frozen_features(ps):
    features = ps.network.features(ps.encode(["ACGTACGT", "GGCCGGCC"])[0]).mean(1).detach()
    head = ps.network.new_head(2)
    assert isinstance(head, torch.nn.Linear)
    torch.testing.assert_close(head.weight, ps.network.new_head(2).weight)
    drawn = torch.rand(1)
    torch.manual_seed(0)
    first = torch.rand(1)
    torch.manual_seed(0)
    ps.network.new_head(3, seed=9)
    torch.testing.assert_close(torch.rand(1), first)  # the caller's draws are untouched
    assert drawn.shape == (1,)
    assert head(features).shape == (2, 2)


def test_a_deep_copy_is_apart_and_the_same(model):
    other = copy.deepcopy(model)
    np.testing.assert_array_equal(other.predict("ACNTA"), model.predict("ACNTA"))
    with torch.no_grad():
        for weight in other.network.parameters():
            weight.add_(torch.linspace(-1, 1, weight.numel()).view(weight.shape))
    assert not np.allclose(other.predict("ACNTA")[2], model.predict("ACNTA")[2])
    alone = copy.deepcopy(model.network)
    ids = model.encode("ACGTA")[0]
    torch.testing.assert_close(alone(ids), model.network(ids))
    assert alone.state_dict().keys() == model.network.state_dict().keys()


def test_a_model_says_what_it_is(ps):
    assert repr(ps).startswith(f"<genodiff.Model {ps.path}: Caduceus, ")
    assert ps.alphabet == DNA
    assert ps.config.data.seq_len == SEQ_LEN
    assert ps.objective.name == "mdlm"
    assert ps.device.type == "cpu"
    assert (ps.step, len(ps.digest)) == (1, 12)
    assert ps.to("cpu") is ps


def test_a_one_way_model_says_that_it_cannot_look_ahead(tmp_path):
    network = NETWORK | {"strands": "single", "bidirectional": False}
    run = write_run(tmp_path, backbone=network, diffusion={"objective": "ar"})
    one_way = genodiff.load(run)
    assert len(one_way.sample(2, length=20)) == 2
    assert one_way.bits("ACGTACGTAC").figure == "exact"
    for ask in (one_way.predict, one_way.infill):
        with pytest.raises(
            GenodiffError, match=r"a model of objective ar (only continues|sees nothing)"
        ):
            ask("ACNGT")
