"""Labels at each base with relatives: what only they tell is learned, on both strands."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import genodiff
from genodiff.alphabet import DNA, ID_CODES
from genodiff.annotation.gene_grammar import mirror_states
from genodiff.errors import DataError
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.related_features import RelatedFeatures
from genodiff.models.opening import open_language
from genodiff.runs.related_backbone import RelatedBackbone
from tests.commands import check_refused, succeed
from tests.tiny_networks import COMPLEMENT, network, reverse_complement
from tests.tiny_run import differ, genome_text, write_run

HOW = ("--context", 60, "--head", "linear", "--threads", 1, "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, its genome g.fa, two relatives, and which bases the nearer of them has otherwise."""
    folder = tmp_path_factory.mktemp("related")
    write_run(folder)
    own = genome_text()
    (folder / "g.fa").write_text(own)
    near = differ(own, 0.2, 2)
    (folder / "near.fa").write_text(near)
    (folder / "far.fa").write_text(differ(own, 0.3, 3))
    rows = []
    for mine, other in zip(own.split(">")[1:], near.split(">")[1:], strict=True):
        (name, text), (_, there) = (one.split("\n")[:2] for one in (mine, other))
        pairs = enumerate(zip(text.upper(), there, strict=True))
        rows += [f"{name}\t{i}\t{i + 1}\tapart\n" for i, (a, b) in pairs if a != b]
    (folder / "apart.bed").write_text("".join(rows))
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def words(out: str, *more: object) -> list[object]:
    labels = ("--classes", "apart.bed", "--test", "c3", "--lr", 0.03, "--batch-size", 8)
    core = () if "--core" in more else ("--core", 200)
    return ["finetune", "bases", "run", "g.fa", "-o", out, *labels, *core, *HOW, *more]


@pytest.mark.slow
def test_what_relatives_say_stands_beside_the_features_and_is_that_of_the_other_strand():
    given = open_language("run", "cpu", ["near.fa", "far.fa"]).backbone
    assert isinstance(given, RelatedBackbone)
    text = genome_text().split("\n")[1][300:461].encode()
    x = torch.from_numpy(DNA.encode(text).astype(np.int64))[None].repeat(2, 1)
    lengths = torch.tensor([161, 90])
    x[1, 90:] = DNA.pad_id
    for strands in ("paired", "single"):
        inner = network(3, strands=strands)
        features = RelatedFeatures(inner)
        features.take(given.relatives, given.votes)
        labeller = BaseLabeller(
            features, mirror_states(), complement=COMPLEMENT, head="linear", seed=7
        ).eval()
        with torch.no_grad():
            wide = labeller.features(x, lengths)
            torch.testing.assert_close(wide[..., 4:-4], inner.features(x, torch.zeros(2), lengths))
            for row, n in enumerate(lengths.tolist()):
                places = given.describe_places(ID_CODES[x[row, :n].numpy()])
                assert np.abs(wide[row, :n, :4].numpy() - places).max() < 1e-6
                assert np.abs(wide[row, :n, -4:].numpy() - places[:, ::-1]).max() < 1e-6
                assert places[:, 0].mean() > 0.3
            assert not wide[1, 90:, :4].any()
            both = labeller.predict(x[:1], lengths[:1])
            other = labeller.predict(reverse_complement(x[:1]), lengths[:1])
        turned = other.flip(1)[..., list(mirror_states())]
        assert (turned - both).abs().max() <= 1e-5


@pytest.mark.slow
def test_what_only_relatives_tell_is_learned_and_kept(capsys, tmp_path):
    rates = {}
    for name, more in (("alone", (2,)), ("related", (4, "--relatives", "near.fa"))):
        succeed(capsys, *words(name, "--epochs", *more))
        rates[name] = genodiff.load(name).fitted.card.told["measured"]["test"]["apart"]
    assert rates["alone"] < 0.35
    assert rates["related"] > 0.9

    predict = ["predict", "related", "g.fa", "--region", "c3:1-900", "--threads", 1, "-q"]
    given = genodiff.predict("related", Path("g.fa"), region=["c3:1-900"])

    # Relatives that are gone are asked for, another genome under their name is refused.
    shutil.move("near.fa", tmp_path / "near.fa")
    for said in ("near.fa", "trained with near"):
        check_refused(capsys, [*predict, "-o", "none"], 3, said)
        shutil.copy("far.fa", "near.fa")
    again = genodiff.predict(
        "related", Path("g.fa"), region=["c3:1-900"], relatives=[tmp_path / "near.fa"]
    )
    shutil.move(tmp_path / "near.fa", "near.fa")
    for name, rows in given.items():
        np.testing.assert_array_equal(rows, again[name])


def test_a_genome_that_is_the_relative_itself_is_refused(capsys):
    succeed(capsys, *words("o", "--relatives", "near.fa", "--max-steps", 1))
    with pytest.raises(DataError, match="of the genome itself"):
        genodiff.predict("o", Path("near.fa"))
    succeed(capsys, *words("plain", "--max-steps", 1))
    for code, said, more in (
        (2, "without related genomes", ["predict", "plain", "g.fa", "--relatives", "near.fa"]),
        (2, "--strains is for --relatives", words("x", "--strains")),
        (2, "at most 8,128 bases", words("x", "--relatives", "near.fa", "--core", 8009)),
        (3, "of the genome itself", words("x", "--relatives", "g.fa")),
    ):
        check_refused(capsys, [*more, *["-o", "p"] * (more[0] == "predict")], code, said)
