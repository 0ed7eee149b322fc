"""What a verb computes of a genome is the same whatever this machine holds of the genome that the
model was trained on: its store, its memory, its fits, its former results.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import genodiff
from genodiff.data.recipe import Recipe, Source
from genodiff.io.faidx import Genome
from genodiff.runs.known_contigs import hash_contig, hash_letters
from genodiff.runs.training_memory import is_own_genome, open_train_memory
from tests.commands import exit_code
from tests.jobs.verb_calls import RELATED, find_words, list_planned, write_inputs
from tests.tiny_run import differ, genome_text, write_run

pytestmark = pytest.mark.slow
NO_GENOME = {
    "sample", "compare", "predict", "finetune table", "finetune *", "train", "data relatives",
    "data genomes", "checkpoint import",
}  # fmt: skip
"""Verbs with a plan that read no genome beside a model."""
MORE: dict[str, tuple[str, ...]] = {
    "score --background": (
        "score {run} v.vcf --fasta g.fa -o o.tsv --background 100 --features g.gff3".split()
    ),
    "score none": ("score", "none", "v.vcf", "--fasta", "g.fa", "-o", "o.tsv", *RELATED),
    "tracks none": "tracks none --fasta g.fa --region c1:1-99 -o t".split(),
    "eval --split all": "eval {run} --fasta g.fa --split all --out e.json".split(),
    "eval --split test": "eval {run} --fasta g.fa --split test --out e.json".split(),
    "redesign --gc": (
        "redesign {run} --fasta g.fa --region c1:101-150 -o r.fa --gc 30-60% --vcf r.vcf".split()
    ),
    "sample --bed": "sample {run} --template g.fa --region c1:101-130 -o n.fa".split(),
    "compare": "compare {run} other --fasta g.fa --out cmp".split(),
    "scorecard": "scorecard s.fa --real g.fa --judge {run} --json".split(),
}  # fmt: skip
IDLE = re.compile(
    "seconds|created|argv|seal|folder|rate|timing|genodiff|notes?|fitted_bits|regions|repeat_.*|touched_share"
    "|.*(adaptive|in_training|baseline|markov|mixture|minus_model).*"
)
"""Keys of what is not computed of the genome: times, paths, and what is said of the training split:
what the model has seen of the genome, and baselines that are counted on what it was trained on.
"""


def strip(value):
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if not IDLE.fullmatch(k)}
    return [strip(one) for one in value] if isinstance(value, list) else value


def drop_notes(data):
    """A file; of text the lines without a version, a time or what was seen in training."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return data
    return [one for one in lines if not re.search("genodiff|seconds|in training|trained on", one)]


def list_changes(one, other, at: str = ""):
    """Where two results differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        return [c for k in keys for c in list_changes(one.get(k), other.get(k), f"{at}/{k}")]
    return [] if one == other else [f"{at}: {str(one)[:300]} | {str(other)[:300]}"]


def read_outputs(home, before):
    """What a verb wrote, by name."""
    found: dict[str, Any] = {}
    for path in sorted(set(home.rglob("*")) - before):
        name = str(path.relative_to(home))
        if path.is_dir() or name.startswith("cache"):
            continue
        data = path.read_bytes()
        try:
            found[name] = strip(json.loads(data))
        except ValueError:
            found[name] = drop_notes(data)
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run; a cache with its genome's store, memory, random variants and fits; results of it."""
    home = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("GENODIFF_CACHE", str(home / "cache"))
        run = write_run(home)
        write_inputs()
        Path("g.fa").unlink()
        given = ["--fasta", "genome.fa", *RELATED, "--threads", "1", "-q"]
        scored = ["score", run, "v.vcf", "-o", "own.tsv", "--background", "100"]
        for words in (scored, ["eval", run]):
            assert exit_code(*words, *given) == 0
        open_train_memory(genodiff.load(run, device="cpu").inner)
    return home


@pytest.fixture
def compute(trained, tmp_path, monkeypatch):
    """What a call gives in a folder of its own, with the genome of the run at hand or without."""

    def run_it(call, *, with_own, text):
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        monkeypatch.chdir(home)
        run, own = trained / "run", trained / "genome.fa"
        hidden = trained / "hidden.fa"
        shutil.rmtree(tmp_path / "kept", ignore_errors=True)
        shutil.copytree(run, tmp_path / "kept")
        if with_own:
            monkeypatch.setenv("GENODIFF_CACHE", str(trained / "cache"))
        else:  # its own fits of other genomes are kept from verb to verb
            monkeypatch.setenv("GENODIFF_CACHE", str(trained / "another"))
            (run / "eval.json").unlink(missing_ok=True)
            own.rename(hidden)
        try:
            write_inputs(text)
            shutil.copytree(run, "other")
            before = set(home.rglob("*"))
            answer = call(run)
            return {"answer": strip(answer), **read_outputs(home, before)}
        finally:
            shutil.rmtree(run)
            shutil.copytree(tmp_path / "kept", run)
            if hidden.exists():
                hidden.rename(own)

    return run_it


TEXTS = {
    "other names": lambda: differ(genome_text(2), 0.0, 9),
    "same names": lambda: "".join(
        f">c{i + 1}\n{line}\n" for i, line in enumerate(genome_text(3).split()[1::2])
    ),
    "same lengths": lambda: differ(genome_text(), 0.05, 5).replace(">r5_", ">"),
}
"""Genomes that the run was not trained on."""


VERBS = [*sorted(set(list_planned()) - NO_GENOME), *MORE]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("verb", "text"),
    [*((one, "same lengths") for one in VERBS), *(("score", one) for one in TEXTS)],
)
def test_what_is_at_hand_of_the_models_genome_decides_nothing(verb, text, compute, capsys):
    letters = TEXTS[text]()
    codes = []

    def call(run):
        contig = letters[1:].split()[0]
        for name in ("v.vcf", "g.gff3"):
            Path(name).write_text(Path(name).read_text().replace("c1\t", f"{contig}\t"))
        if verb in MORE:
            words: list[object] = [word.format(run=run) for word in MORE[verb]]
        else:
            words = [*verb.split(), *find_words(verb, run)]
        if verb == "finetune bases":
            words += ["--max-steps", "2", "--valid", f"{contig}:1-200", "--head", "linear"]
        capsys.readouterr()
        words = [str(word).replace("c1:", f"{contig}:") for word in words]
        codes.append(exit_code(*words, "--threads", "1", "-q"))
        out, err = capsys.readouterr()
        return (codes[-1], err if codes[-1] else "", out if "--json" in words else "")

    without = compute(call, with_own=False, text=letters)
    with_own = compute(call, with_own=True, text=letters)
    found = list_changes(with_own, without)
    assert not found, [one.partition(":")[0] for one in found]
    assert codes[0] == codes[1]


def test_a_loaded_model_follows_the_genome_that_a_method_reads(trained, tmp_path, monkeypatch):
    """As the verbs do: relatives are fitted again, and `none` takes the composition."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(trained / "another"))
    letters = TEXTS["same lengths"]()
    write_inputs(letters)
    given = {"relatives": ["r1.fa"], "strains": True}
    where = {"region": ["c1:101-120"]}
    for name in (trained / "run", "none"):
        first = genodiff.load(name, device="cpu", fasta=trained / "genome.fa", **given)
        then = genodiff.load(name, device="cpu", fasta="g.fa", **given)
        for read in (
            lambda one: one.score("v.vcf", fasta="g.fa")["score"].to_list(),
            lambda one: [track.p.tolist() for track in one.tracks("g.fa", **where)],
            lambda one: str([x.tolist() for x in one.ism("g.fa", **where) if hasattr(x, "tolist")]),
        ):
            assert read(first) == read(then)
        assert first.inner.digest != then.inner.digest
    first, then = (
        genodiff.load(trained / "run", device="cpu", fasta=fasta, **given).embed("g.fa", **where)
        for fasta in (trained / "genome.fa", "g.fa")
    )
    assert first.tolist() == then.tolist()


def test_the_genome_of_a_recipe_is_known_by_its_letters(tmp_path):
    """Another one of the same names and lengths is not taken for it, as by a memory."""
    text, rows = genome_text(), []
    (tmp_path / "own.fa").write_text(text)
    (tmp_path / "soft.fa").write_text(text.swapcase().replace(">C", ">c"))
    (tmp_path / "other.fa").write_text(TEXTS["same lengths"]())
    with Genome(tmp_path / "own.fa") as genome:
        contigs = dict(genome.contigs)
        rows = [(name, n, hash_contig(genome, name)) for name, n in contigs.items()]
    source = Source(url="https://x.org/a", filename="a", licence="x", letters=hash_letters(rows))
    recipe = Recipe(name="mine", contigs=contigs, sources=(source,))
    for name, same in (("own", True), ("soft", True), ("other", False)):
        with Genome(tmp_path / f"{name}.fa") as genome:
            assert is_own_genome(recipe, {}, genome) is same
