"""`genodiff report --samples`: any FASTA of samples is set beside real sequence."""

from pathlib import Path

import pytest
from tiny_run import genome_text

from tests.commands import command, succeed


@pytest.mark.slow
def test_any_file_of_samples_is_compared_and_the_run_keeps_its_page(run, tmp_path, capsys):
    samples = tmp_path / "mine.fa"
    lines = genome_text(seed=7).splitlines()[1::2]
    samples.write_text("".join(f">s{i}\n{line[:60]}\n" for i, line in enumerate(lines)))
    before = sorted(run.rglob("*"))
    code, out, err = command(capsys, "report", run, "--samples", samples)
    assert (code, out) == (0, f"{samples}.html\n"), err
    page = Path(f"{samples}.html").read_text()
    assert "4 samples, " in page
    assert sorted(run.rglob("*")) == before
    succeed(capsys, "report", run, "--samples", samples)
    samples.write_text(genome_text(seed=7))  # longer than every held-out interval
    succeed(capsys, "report", run, "--samples", samples)
    code, _, err = command(capsys, "report", run, "--samples", tmp_path / "no.fa")
    assert (code, err.count("\n")) == (3, 1)
    code, _, err = command(capsys, "report", run, "--samples", samples, "--out", samples, "--force")
    assert (code, "is read" in err) == (2, True)
