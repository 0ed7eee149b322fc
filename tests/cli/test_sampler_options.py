"""`--sampler-option`: settings of a sampler, from the command line to header and sidecar."""

import json
import shutil

from genodiff.io.fasta import read_fasta


def test_a_setting_reaches_the_sampler_its_header_and_the_sidecar(run, sample, here):
    words = ["--checkpoint", run, "--n", 3, "--length", 40, "--sampler", "entropy-bounded"]
    for name, bound in (("one.fa", 0), ("all.fa", 1000)):
        code, _, err = sample(*words, "--fasta", name, "--sampler-option", f"bound={bound}")
        assert code == 0, err
    one, every = (json.loads((here / f"{name}.fa.json").read_text()) for name in ("one", "all"))
    assert [entry["nfe"] for entry in one["records"]] == [40] * 3
    assert [entry["nfe"] for entry in every["records"]] == [1] * 3
    assert every["sampler_options"] == {"bound": 1000.0}
    assert "bound=1000.0" in next(iter(read_fasta(here / "all.fa"))).description


def test_steps_are_chosen_for_a_wanted_loss_and_the_curve_is_kept(
    run, sample, here, tmp_path_factory
):
    own = tmp_path_factory.mktemp("run") / "run"
    shutil.copytree(run, own)
    steps = []
    for name, lost in (("few.fa", 40), ("many.fa", 10)):
        words = ["--checkpoint", own, "--fasta", name, "--n", 1, "--length", 30]
        code, _, err = sample(*words, "--bits-lost", lost)
        assert code == 0, err
        steps.append(json.loads((here / f"{name}.json").read_text())["steps"])
    assert 1 <= steps[0] <= steps[1]
    kept = json.loads((own / "mask_curve.json").read_text())
    assert kept["checkpoint"]
    assert kept["split"] == "valid"
