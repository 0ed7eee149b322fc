"""`genodiff sample` as a user meets it, by every sampler with each setting moved."""

import gzip
import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from Bio import bgzf
from tiny_run import SEQ_LEN, write_run

import genodiff
from genodiff.diffusion.sampler import SAMPLERS, Sampled, Sampler
from genodiff.errors import UsageError
from genodiff.io.fasta import read_fasta


def sequences(path: Path) -> list[bytes]:
    return [record.sequence for record in read_fasta(path)]


def test_samples_are_valid_fasta_of_the_length_asked_for_and_say_where_they_come_from(
    run, sample, here
):
    code, out, _ = sample(
        "--checkpoint", run, "--fasta", "out.fa", "--n", 5, "--length", 50, "--steps", 8
    )
    assert (code, out) == (0, "")
    records = list(read_fasta(here / "out.fa"))
    told = json.loads((here / "out.fa.json").read_text())
    assert [len(r.sequence) for r in records] == [50] * 5
    assert set(b"".join(r.sequence for r in records)) == set(b"ACGT")
    assert {"seed": 1, "sampler": "ancestral", "steps": 8}.items() <= told.items()
    assert re.fullmatch("[0-9a-f]{12}", told["checkpoint"])
    for i, (record, entry) in enumerate(zip(records, told["records"], strict=True), 1):
        assert entry == {"name": f"genodiff_{i:06d}", "length": 50, "nfe": entry["nfe"]}
        assert 1 <= entry["nfe"] <= 8
        assert f">{record.name} {record.description}" == (
            f">genodiff_{i:06d} length=50 seed=1 sampler=ancestral steps=8 nfe={entry['nfe']} "
            f"checkpoint={told['checkpoint']}"
        )
    assert sorted(p.name for p in here.iterdir()) == ["out.fa", "out.fa.json"]


def test_the_bytes_depend_on_the_seed_and_not_on_batch_size_threads_or_how_many_are_asked_for(
    run, sample, here
):
    flags = f"--checkpoint {run} --length 60 --steps 6".split()

    def drawn(name: str, *words: object, n: int = 9) -> bytes:
        code, _, err = sample(*flags, "--fasta", name, "--n", n, *words)
        assert code == 0, err
        return (here / name).read_bytes()

    first = drawn("1.fa", "--batch-size", 64)
    assert drawn("2.fa", "--batch-size", 5) == first
    assert first.startswith(drawn("3.fa", "--batch-size", 1, n=4))
    drawn("4.fa", "--seed", 2, n=9)
    assert not set(sequences(here / "4.fa")) & set(sequences(here / "1.fa"))
    assert first.startswith(drawn("5.fa", "--batch-size", 7, "--threads", 2, n=7))


def test_without_flags_it_takes_the_only_run_and_the_trained_length(run, sample, here):
    (here / "runs").mkdir()
    (here / "runs" / "mine").symlink_to(run)
    assert sample("--fasta", "out.fa", "--steps", 4)[0] == 0
    assert [len(s) for s in sequences(here / "out.fa")] == [SEQ_LEN] * 16


def test_without_a_run_it_says_what_to_give(sample):
    code, _, err = sample("--fasta", "out.fa")
    assert (code, err.count("\n")) == (4, 1)
    assert "there is no run" in err
    assert "genodiff train" in err


def test_streams_lines_and_bgzf_have_the_content_of_a_file(run, sample, here):
    flags = ("--checkpoint", run, "--n", 3, "--length", 70, "--steps", 4)
    code, out, err = sample(*flags, "--fasta", "-")
    assert (code, "3 records" in err, list(here.iterdir())) == (0, True, [])
    assert [len(line) for line in out.splitlines() if line[0] != ">"] == [60, 10] * 3
    for width, lines in ((30, [30, 30, 10]), (0, [70])):
        wide = sample(*flags, "--fasta", "-", "--line-width", width)[1]
        assert [len(line) for line in wide.splitlines() if line[0] != ">"] == lines * 3
    assert sample(*flags, "--fasta", "-", "--sidecar", "told.json", "-q") == (0, out, "")
    assert json.loads((here / "told.json").read_text())["records"][2]["length"] == 70
    assert sample(*flags, "--fasta", "out.fa.gz")[0] == 0
    assert gzip.decompress((here / "out.fa.gz").read_bytes()).decode() == out
    with (here / "out.fa.gz").open("rb") as file:
        assert list(bgzf.BgzfBlocks(file))
    assert (here / "out.fa.gz.json").exists()


def test_a_template_keeps_its_name_and_every_letter_but_n_and_question_marks(run, sample, here):
    (here / "in.fa").write_text(">one of two\nACNNgtnRY??\nacgtK\n>two\nACGTACGT\n")
    assert sample("--checkpoint", run, "--fasta", "out.fa", "--template", "in.fa")[0] == 0
    one, two = read_fasta(here / "out.fa")
    assert re.fullmatch(rb"AC[ACGT]{2}gt[acgt]RY[ACGT]{2}acgtK", one.sequence)
    assert two.sequence == b"ACGTACGT"
    assert (one.name, two.name) == ("one", "two")
    assert one.description.endswith(" of two")
    told = json.loads((here / "out.fa.json").read_text())
    assert [(e["name"], e["filled"]) for e in told["records"]] == [("one", 5), ("two", 0)]
    assert told["records"][1]["nfe"] == 0
    assert told["template"] == "in.fa"


def test_a_template_can_be_filled_more_than_once(run, sample, here):
    (here / "in.fa").write_text(f">a\nAC{'N' * 30}GT\n>b\n{'N' * 20}\n")
    assert sample("--checkpoint", run, "--fasta", "out.fa", "--template", "in.fa", "--n", 3)[0] == 0
    records = list(read_fasta(here / "out.fa"))
    assert [r.name for r in records] == ["a.1", "a.2", "a.3", "b.1", "b.2", "b.3"]
    assert len({r.sequence for r in records}) == 6
    words = ["--checkpoint", run, "--template", "in.fa", "--n", 3, "--batch-size", 1]
    assert sample(*words, "--fasta", "1.fa")[0] == 0
    assert (here / "1.fa").read_bytes() == (here / "out.fa").read_bytes(), "texts are not padded"


def test_a_plan_tells_and_writes_nothing(run, sample, here):
    code, out, _ = sample(
        "--checkpoint", run, "--fasta", "out.fa", "--n", 10, "--length", 128, "--steps", 8, "--plan"
    )
    assert code == 0
    for word in ("parameters", "10 of 128", "1,280 bases in 30 windows", "out.fa.json"):
        assert word in out
    assert "bits per 1,000 bases" not in out
    assert list(here.iterdir()) == []
    curve = [
        {"rate_lo": 0.0, "rate_hi": 0.02, "nats": 0.0},
        {"rate_lo": 0.98, "rate_hi": 1.0, "nats": 1.4},
    ]
    shutil.copytree(run, here / "scored")
    (here / "scored" / "eval.json").write_text(json.dumps({"test": {"curve": curve}}))
    out = sample("--checkpoint", "scored", "--fasta", "out.fa", "--steps", 8, "--plan")[1]
    assert re.search(r"8 cost about 12\d\.\d\d bits per 1,000 bases", out)


def test_steps_are_chosen_for_a_wanted_loss_and_the_curve_is_kept(run, sample, here):
    shutil.copytree(run, here / "own")
    steps = []
    for name, lost in (("few.fa", 40), ("many.fa", 10)):
        words = ["--checkpoint", "own", "--fasta", name, "--n", 1, "--length", 30]
        code, _, err = sample(*words, "--bits-lost", lost)
        assert code == 0, err
        steps.append(json.loads((here / f"{name}.json").read_text())["steps"])
    assert 1 <= steps[0] <= steps[1]
    kept = json.loads((here / "own" / "mask_curve.json").read_text())
    assert kept["checkpoint"]
    assert kept["split"] == "valid"


MOVED = {"at_once": 2.0, "noise": 0.0}
"""Settings that are whole numbers; of others a number near the default is in range."""
OBJECTIVES = {"masked": "mdlm", "score": "sedd", "uniform": "uniform"}


@pytest.fixture(scope="module")
def find_run(tmp_path_factory):
    """An untrained run of a network that a sampler fits."""

    @cache
    def build(objective: str) -> Path:
        return write_run(tmp_path_factory.mktemp(objective), diffusion={"objective": objective})

    return lambda sampler: build(OBJECTIVES[sampler.fits[0]])


@pytest.mark.few(7)
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_setting_of_every_sampler_is_planned_drawn_and_written_down(
    find_run, sample, here, monkeypatch, name
):
    monkeypatch.setattr("genodiff.generate.estimate._TIMING", 0.01)
    run, defaults = find_run(SAMPLERS[name]), SAMPLERS[name].settings
    moved = {one: MOVED.get(one, 0.9 * usual + 0.05) for one, usual in defaults.items()}
    words = ["--checkpoint", run, "--n", 2, "--length", 12, "--steps", 6, "--sampler", name]
    for one, value in moved.items():
        words += ["--sampler-option", f"{one}={value}"]
    code, out, err = sample(*words, "--fasta", "out.fa", "--plan", "--json")
    assert code == 0, err
    assert json.loads(out)["evaluations"] > 0
    code, _, err = sample(*words, "--fasta", "out.fa")
    assert code == 0, err
    told = json.loads((here / "out.fa.json").read_text())
    assert told.get("sampler_options", {}) == moved
    how = {"steps": 6, "sampler": name, "sampler_options": moved}
    drawn = genodiff.load(run, device="cpu").sample(2, length=12, **how)
    records = list(read_fasta("out.fa"))
    assert drawn == [one.sequence.decode() for one in records]
    assert all(f"{one}={value}" in records[0].description for one, value in moved.items())


def draw(diffusion: Any, denoiser: Any, xt: Any, options: Any, eta: float = 0.1) -> Sampled:
    raise NotImplementedError


@pytest.mark.parametrize(
    "count",
    [lambda n, share, beta=0.1: n, lambda n, share, eta=0.2: n, lambda n, share, **own: n],
    ids=["unknown", "other default", "unnamed"],
)
def test_a_count_with_other_settings_than_the_draw_is_refused_at_registration(count):
    with pytest.raises(UsageError, match=r"`evaluations` counts with .*, and `draw` has"):
        Sampler(draw, ("masked",), count, uses_steps=True)
    fitting = Sampler(draw, ("masked",), lambda n, share: float(n), uses_steps=True)
    assert fitting.count_with({"eta": 0.5})(7, None) == 7
