"""`--block` through a run's life: resumed, laid out anew, begun from MDLM, exported, in shards."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import NETWORK, genome_text, save_run
from tiny_training import run_tiny

import genodiff
from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.generate import samples
from genodiff.hub.adopt import adopt_network
from genodiff.hub.export import export_model
from genodiff.hub.source import read_source
from genodiff.io.fasta import read_fasta
from genodiff.jobs.journal import Journal
from genodiff.runs.model import load_model
from genodiff.runs.resolve import resolve_config
from tests.commands import command, exit_code

BLOCKS = {"block": 16, "strands": "single", "lr_schedule": "constant", "warmup_steps": 0}


def single_run(folder: Path, **diffusion: Any) -> Path:
    """An untrained network of one strand, as a run at `folder`/run."""
    (folder / "genome.fa").write_text(genome_text())
    given = {
        "recipe": "own", "fasta": str(folder / "genome.fa"),
        "backbone": NETWORK | {"strands": "single", "n_layer": 2},
        "data": {"seq_len": 64}, "diffusion": diffusion,
    }  # fmt: skip
    return save_run(folder / "run", resolve_config(given))


def metrics(run: Path) -> list[str]:
    return [row.split(",")[4] for row in (run / "metrics.csv").read_text().splitlines()[1:]]


def test_two_and_two_steps_are_four_and_micro_batches_change_nothing(tmp_path):
    run_tiny(tmp_path / "four", steps=4, **BLOCKS)
    run_tiny(tmp_path / "twice", steps=2, **BLOCKS)
    again = run_tiny(tmp_path / "twice", steps=4, **BLOCKS)
    assert (again.step, again.already_done) == (4, False)
    assert metrics(tmp_path / "four") == metrics(tmp_path / "twice")
    for name in ("model.safetensors", "checkpoints/step_00000004/trainer.safetensors"):
        assert (tmp_path / "four" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()
    run_tiny(tmp_path / "halves", steps=4, accumulate=2, **BLOCKS)
    one, other = (load_model(tmp_path / name).backbone for name in ("four", "halves"))
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_a_run_in_blocks_begins_from_an_unpaired_mdlm(tmp_path):
    source = single_run(tmp_path)
    assert exit_code(
        "train", "--fasta", tmp_path / "genome.fa", "--init", source, "--block", 8, "--seq-len", 64,
        "--max-steps", 1, "--batch-size", 2, "--lr", 1e-12, "--weight-decay", 0,
        "--validate-windows", 0, "--threads", 1, "--device", "cpu", "-q", "--out",
        tmp_path / "blocks",
    ) == 0  # fmt: skip
    begun, before = load_model(tmp_path / "blocks"), load_model(source)
    assert begun.objective == BlockDiffusion(begun.diffusion, block=8)
    for mine, theirs in zip(begun.backbone.parameters(), before.backbone.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("objective", [{"block": 4}, {"objective": "sedd"}, {"objective": "mlm"}])
def test_an_exported_run_comes_back_with_its_objective(tmp_path, objective):
    run = single_run(tmp_path, **objective)
    export_model(run, tmp_path / "out")
    adopt_network(read_source(tmp_path / "out"), tmp_path / "again")
    one, other = genodiff.load(run), genodiff.load(tmp_path / "again")
    assert other.inner.objective == one.inner.objective
    rows = [model.sample(2, length=21, seed=3) for model in (one, other)]
    assert rows[0] == rows[1]


def test_shards_in_blocks_are_one_evaluation(tmp_path, monkeypatch):
    run = single_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"repeats": 2, "batch_size": 2, "seed": 4, "block": 16}
    whole = genodiff.evaluate(run, **options)
    names = [f"s{i}.npy" for i in (1, 2, 3)]
    for i, name in enumerate(names, 1):
        genodiff.evaluate(run, shard=f"{i}/3", out=name, **options)
    merged = genodiff.merge(names[::-1], out="merged.json")
    assert merged["block"] == whole["block"] == 16
    for key in ("bits_per_base", "ci95_bits", "tokens", "windows"):
        assert merged[key] == whole[key], key
    kept = json.loads((run / "eval.json").read_text())
    assert list(kept) == ["test in blocks of 16"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("eval", "{run}", "--block", "0"), "--block.* 1 or more"),
        (("eval", "{run}", "--block", "8", "--order", "random"), "block"),
        (("eval", "{paired}", "--block", "8"), "one strand|strands"),
        (("sample", "{run}", "--block", "8", "-n", "1", "--length", "9", "--stride", "4",
          "--fasta", "o.fa"), "block"),
        (("train", "toy", "--preset", "caduceus-ps-tiny", "--block", "8", "--out", "new"),
         "strands|one strand"),
        (("train", "toy", "--objective", "mdlm", "--strands", "single", "--block", "8",
          "--out", "new"), "block"),
    ],
    ids=lambda given: "-".join(given[:3]) if isinstance(given, tuple) else "",
)  # fmt: skip
def test_what_does_not_go_with_blocks_is_one_line(
    tmp_path, capsys, monkeypatch,
    words, said,
):  # fmt: skip
    run = single_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = {
        "recipe": "own", "fasta": str(tmp_path / "genome.fa"), "backbone": NETWORK,
        "data": {"seq_len": 64},
    }  # fmt: skip
    paired = save_run(tmp_path / "paired", resolve_config(given))
    code, _, error = command(
        capsys, *(word.format(run=run, paired=paired) for word in words), "--threads", "1"
    )
    assert code == 2, error
    assert re.search(said, error), error
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "o.fa").exists()


@pytest.mark.few(1)
@pytest.mark.parametrize("more", [("--threads", 1), ("--batch-size", 1), ("--threads", 2)])
def test_a_long_record_that_is_stopped_goes_on_to_the_same_bytes(
    more, tmp_path, capsys,
    monkeypatch,
):  # fmt: skip
    run = single_run(tmp_path, objective="block", block=8)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(samples, "EACH", 24)
    words = ["sample", run, "-n", 1, "--length", 100, "--steps", 4, "-q"]
    assert exit_code(*words, "--fasta", "whole.fa") == 0
    partial, append = Path("o.fa.partial"), Journal.append_part

    def stop(journal: Journal, part: bytes) -> None:
        append(journal, part)
        raise KeyboardInterrupt

    sizes: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append_part", stop)
        while (done := command(capsys, *words, "--fasta", "o.fa", *more))[0] == 130:
            assert "is kept in o.fa.partial; run the same command again to resume" in done[2]
            sizes.append(partial.stat().st_size)
            if len(sizes) == 3:  # a damaged part is drawn again
                data = partial.read_bytes()
                partial.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            if len(sizes) == 4:
                assert sizes[3] == sizes[2]
                code, _, err = command(capsys, *words, "--fasta", "o.fa", *more, "--seed", 2)
                assert code == 2
                assert "holds entries of another request" in err
    assert done[0] == 0
    assert len(sizes) == 5, "a record is kept 4 times, once of it in vain"
    assert Path("o.fa").read_bytes() == Path("whole.fa").read_bytes()
    read = (json.loads(Path(f"{one}.fa.json").read_text()) for one in ("o", "whole"))
    one, whole = ([record["nfe"] for record in told["records"]] for told in read)
    assert one == whole
    assert not partial.exists()


def test_regions_of_a_genome_are_filled_and_designs_are_refused(tmp_path, capsys, monkeypatch):
    run = single_run(tmp_path, objective="block", block=8)
    monkeypatch.chdir(tmp_path)
    places = ["--region", "c1:101-103", "--region", "c1:106-107", "--region", "c2:1-20"]
    places += ["--region", "c2:3991-4000"]
    words = ["sample", run, "--template", "genome.fa", *places, "--only-filled", "-q"]
    assert exit_code(*words, "-o", "regions.fa") == 0
    filled = {record.name: record.sequence for record in read_fasta("regions.fa")}
    assert [len(one) for one in filled.values()] == [3, 2, 20, 10]
    code, _, err = command(
        capsys, "redesign", run, "--fasta", "genome.fa", *places[:2], "-o", "d.fa", "-q"
    )
    assert code == 2
    assert "redesign needs a model that draws whole windows, and this one draws blocks" in err
    assert len(err.strip().splitlines()) == 1
