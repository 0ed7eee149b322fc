"""`genodiff redesign`: what is kept, what is changed, what is refused."""

import json
from pathlib import Path

import pytest
from tiny_run import SEQ_LEN, genome_text

import genodiff
from genodiff.constraints.check import find_violations
from genodiff.constraints.coding import KeepProtein
from genodiff.constraints.composition import GcContent
from genodiff.constraints.words import Avoid, AvoidSites, MaxRun, Require
from genodiff.io.fasta import read_fasta
from genodiff.io.variant_source import read_vcf
from tests.commands import exit_code
from tests.consensus import apply_changes, choose_change

BED = "c2\t1000\t1012\nc1\t300\t345\nc1\t350\t362\nc3\t0\t9\nc3\t2990\t3001\n"
REGIONS = [("c1", 300, 345), ("c1", 350, 362), ("c2", 1000, 1012), ("c3", 0, 9), ("c3", 2990, 3001)]
RULES = ("--avoid", "GNTC", "--enzymes", "EcoRI,BsaI", "--max-run", 3, "--gc", "20-70%")


@pytest.fixture
def redesign(capfdbinary, here, run):
    (here / "in.fa").write_text(genome_text())
    (here / "r.bed").write_text(BED)

    def called(*words: object) -> tuple[int, str, str]:
        code = exit_code("redesign", run, *words, "--threads", 1)
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err
        return code, out.decode(), err.decode()

    return called


def contigs(path: Path) -> dict[str, str]:
    return {record.name: record.sequence.decode() for record in read_fasta(path)}


def test_designs_satisfy_all_keep_the_rest_and_come_back_from_the_vcf(redesign, here):
    words = ("--fasta", "in.fa", "--bed", "r.bed", *RULES, "-n", 3, "--steps", 6)
    code, _, err = redesign(*words, "-o", "o.fa", "--require", "TTS")
    assert code == 0, err
    before, found = contigs(here / "in.fa"), contigs(here / "o.fa")
    assert len(found) == 3 * len(REGIONS)
    # Each design put into the genome, and read by the checker with its flanks.
    rules = Avoid(("GNTC",)) & AvoidSites(("EcoRI", "BsaI")) & MaxRun(3) & GcContent(0.2, 0.7)
    whole = []
    for copy in range(3):
        after = {name: list(text) for name, text in before.items()}
        for contig, start, end in REGIONS:
            after[contig][start:end] = found[f"{contig}:{start + 1}-{end}.{copy + 1}"]
        texts = {name: "".join(letters) for name, letters in after.items()}
        whole.append(texts)
        for contig, start, end in REGIONS:
            both = rules & Require(("TTS",))
            assert not find_violations(both, texts[contig], before[contig], start, end)
            old, new = before[contig][start:end], texts[contig][start:end]
            assert [a.islower() for a in old] == [a.islower() for a in new]
    # Applying sample i of the VCF gives design i.
    header, records = read_vcf(here / "o.fa.vcf")
    rows = list(records)
    assert header.samples == ["design1", "design2", "design3"]
    for copy in range(3):
        for name, text in before.items():
            changes = [
                change
                for row in rows
                if row.chrom == name and (change := choose_change(row, int(row.rest[4 + copy])))
            ]
            made = apply_changes(text.upper(), 0, changes)
            assert made == whole[copy][name].upper()
    # The BED file names the same bases.
    marked = [line.split("\t") for line in (here / "o.fa.bed").read_text().splitlines()[1:]]
    for copy in range(3):
        places = {
            (row[0], at)
            for row in marked
            if row[3].endswith(f".{copy + 1}")
            for at in range(int(row[1]), int(row[2]))
        }
        assert places == {
            (name, i)
            for name, text in before.items()
            for i, (a, b) in enumerate(zip(text, whole[copy][name], strict=True))
            if a.upper() != b.upper()
        }
    told = json.loads((here / "o.fa.json").read_text())
    assert sum(one["edits"] for one in told["records"]) == sum(
        int(row[2]) - int(row[1]) for row in marked
    )


def test_no_batch_changes_a_byte(redesign, here):
    words = ("--fasta", "in.fa", "--bed", "r.bed", *RULES, "-n", 2, "--steps", 4)
    for name, size in (("1.fa", 1), ("2.fa", 7)):
        assert redesign(*words, "-o", name, "--batch-size", size)[0] == 0
    assert (here / "2.fa").read_bytes() == (here / "1.fa").read_bytes()


def test_a_protein_is_kept_over_regions_and_edits_are_bounded(redesign, here):
    frame = "c1:298-396:-"  # both regions of c1 lie in it, and codons cross their edges
    words = ("--fasta", "in.fa", "--region", "c1:301-345", "--region", "c1:351-362")
    limits = ("--protein", frame, "--max-edits", 5, "--keep", "c1:310-320", "--genetic-code", 11,
              "--allow-stops")  # fmt: skip
    assert redesign(*words, *limits, "-n", 4, "--steps", 8, "-o", "o.fa")[0] == 0
    before, found = contigs(here / "in.fa")["c1"], contigs(here / "o.fa")
    for copy in range(4):
        after = list(before)
        for start, end in ((300, 345), (350, 362)):
            new = found[f"c1:{start + 1}-{end}.{copy + 1}"]
            assert sum(a != b for a, b in zip(new, before[start:end], strict=True)) <= 5
            after[start:end] = new
        text = "".join(after)
        assert text[309:320] == before[309:320]
        rule = KeepProtein(((297, 396),), -1, 11)
        assert not find_violations(rule, text, before, 300, 345)
        assert text != before


def test_templates_are_filled_by_their_sets(redesign, here):
    (here / "t.fa").write_text(">a\nacgtNNRYnnnn?ACGTW\n>b\nGGNNNNNNNNNNCC\n")
    words = ("--template", "t.fa", "--require", "GAATTC", "--max-run", 2, "-n", 5, "--steps", 4)
    assert redesign(*words, "-o", "o.fa")[0] == 0
    found = contigs(here / "o.fa")
    assert len(found) == 10
    for name, text in found.items():
        assert "GAATTC" in text.upper()
        if name.startswith("a"):
            assert text[:4] == "acgt"
            assert text[13:17] == "ACGT"
            assert text[6] in "AG"
            assert text[7] in "CT"
            assert text[17] in "AT"
            assert text[8:12].islower()
        else:
            assert (text[:2], text[-2:]) == ("GG", "CC")
    assert not (here / "o.fa.vcf").exists()
    long = 3 * SEQ_LEN
    (here / "long.fa").write_text(">x\n" + "N" * long + "\n")
    assert redesign("--template", "long.fa", *RULES, "--steps", 3, "-o", "l.fa")[0] == 0
    text = contigs(here / "l.fa")["x"]
    rules = Avoid(("GNTC",)) & AvoidSites(("EcoRI", "BsaI")) & MaxRun(3) & GcContent(0.2, 0.7)
    assert not find_violations(rules, text, "N" * long, 0, long)


GENOME = ("--fasta", "in.fa", "--region", "c1:301-320")


def test_a_file_of_constraints_says_what_flags_say(redesign, here):
    (here / "v.fa").write_text(">v\nACGTTGCAACGGTA\n")
    (here / "r.yaml").write_text(
        "avoid: GNTC\nenzymes: [EcoRI, BsaI]\nmax_run: 3\ngc: 20-70%\nno_repeats: 6:v.fa\n"
        'protein: [{exons: ["c1:301-303", "c1:310-315"], strand: "-", sequence: MKV}]\n'
    )
    (here / "s.json").write_text('{"avoid": ["GNTC"], "max-run": 3}')
    words = ("--fasta", "in.fa", "--region", "c1:298-330", "--steps", 4)
    assert redesign(*words, "--constraints", "r.yaml", "-o", "1.fa")[0] == 0
    text = contigs(here / "1.fa")["c1:298-330"]
    codons = text[3:6] + text[12:18]
    turned = codons[::-1].upper().translate(str.maketrans("ACGT", "TGCA"))
    assert turned[:6] in ("ATGAAA", "ATGAAG")
    assert turned[6:8] == "GT"
    assert redesign(*words, "--constraints", "s.json", "-o", "2.fa")[0] == 0
    flags = ("--avoid", "GNTC", "--max-run", 3)
    assert redesign(*words, *flags, "-o", "3.fa")[0] == 0
    assert (here / "2.fa").read_bytes() == (here / "3.fa").read_bytes()


def test_its_own_files_may_be_written_again_but_none_that_was_changed(redesign, here):
    for seed in (1, 2):
        assert redesign(*GENOME, "-o", "o.fa", "--seed", seed)[0] == 0
    (here / "o.fa.vcf").write_text("mine\n")
    code, _, err = redesign(*GENOME, "-o", "o.fa", "--seed", 3)
    assert (code, "o.fa.vcf" in err, "--force" in err) == (2, True, True)
    assert redesign(*GENOME, "-o", "o.fa", "--seed", 3, "--force")[0] == 0


def test_python_gives_the_same_designs(redesign, run, here):
    m = genodiff.load(run, device="cpu")
    text = "acgtNNRYnnnnnACGTW"
    (here / "t.fa").write_text(f">a\n{text}\n")
    assert redesign("--template", "t.fa", "--max-run", 2, "-n", 2, "-o", "o.fa")[0] == 0
    found = m.redesign(text, 2, rules={"max_run": 2})
    assert found == list(contigs(here / "o.fa").values())
    assert m.redesign([text, text], 2, rules={"max_run": 2})[0] == found
    some = m.redesign("ACGTACGTACGT", 3, regions=[(4, 8)], rules={"max_edits": 1})
    for one in some:
        assert (one[:4], one[8:]) == ("ACGT", "ACGT")
        assert sum(a != b for a, b in zip(one, "ACGTACGTACGT", strict=True)) <= 1
    with pytest.raises(genodiff.errors.UsageError, match="fixed bases: runs of at most 2"):
        m.redesign("AAANTTTT", rules={"max_run": 2})


def test_bases_filled_and_bases_changed_are_counted_apart(redesign, here):
    # Of c:5-12 three letters are no base. With no edit allowed these alone are filled.
    (here / "n.fa").write_text(">c\nACGTANRGCnTACGTACG\n")
    words = ("--fasta", "n.fa", "--region", "c:5-12", "--max-edits", 0, "--steps", 2)
    code, _, err = redesign(*words, "-o", "o.fa")
    assert (code, "1 design, 8 bases, 3 filled bases, 0 edits" in err) == (0, True), err
    assert ">c:5-12 length=8 filled=3 edits=0 " in (here / "o.fa").read_text()
    (record,) = json.loads((here / "o.fa.json").read_text())["records"]
    assert (record["filled"], record["edits"]) == (3, 0)
    text = contigs(here / "o.fa")["c:5-12"]
    assert (text[0], text[3:5], text[6:]) == ("A", "GC", "TA")
    assert text[5].islower()


GENE = "ATGGCTTGGAAACTGTAA"  # M A W K L and a stop; turned: LQFPSH, open
TURNED = "TTACAGTTTCCAAGCCAT"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--region", "c:4-21", "--protein", "forward"), None),
        (("--region", "c:4-18", "--protein", "c:4-21"), None),  # the stop at its end is not touched
        (("--region", "d:4-21", "--protein", "reverse"), None),
        (("--region", "e:4-12", "--protein", "forward", "--genetic-code", 2), None),
        # e is ATG TGA AAC: the other strand reads GTT TCA CAT
        (
            ("--region", "e:4-12", "--protein", "forward"),
            "(record e): the forward frame e:4-12 of --protein holds 1 stop codon before its end, "
            "the first at base 7 (codon 2 of 3); the reverse frame is open; give that strand, or "
            "--allow-stops",
        ),
        # f is TTA CTA CAT, which turned is ATG TAG TAA
        (
            ("--region", "f:1-3", "--protein", "f:1-9:-"),
            "the reverse frame f:1-9 of --protein holds 1 stop codon before its end, the first at "
            "base 4 (codon 2 of 3); the forward frame is open",
        ),
        # g: TAA TTA GGG turned is CCC TAA TTA; AAT TAG of g from its base 2 ends in a stop
        (
            ("--region", "g:1-9", "--protein", "forward"),
            "codon 1 of 3); the forward frame from its base 2 on is open; give the region",
        ),
        # Without a stop but where nothing changes: ATG TGA is kept, AAC is free.
        (("--region", "e:10-12", "--no-stop", "e:4-12"), "e:4-12 of --no-stop holds 1 stop codon"),
        (("--region", "e:7-9", "--no-stop", "e:4-12"), None),
        (("--region", "e:4-12", "--protein", "forward", "--allow-stops"), None),
    ],
)
def test_a_frame_with_stop_codons_is_refused_unless_it_is_asked_for(redesign, here, words, says):
    flank = f">c\nCCC{GENE}CC\n>d\nCCC{TURNED}CC\n>e\nCCCATGTGAAACCC\n>f\nTTACTACAT\n"
    (here / "frames.fa").write_text(f"{flank}>g\nTAATTAGGG\n")
    code, _, err = redesign("--fasta", "frames.fa", *words, "--steps", 2, "-o", "o.fa")
    if says is None:
        assert code == 0, err
    else:
        assert (code, err.count("\n")) == (3, 1), err
        assert says in err
        assert not list(here.glob("o.fa*"))


@pytest.mark.parametrize(
    ("protein", "says"),
    [
        ("MKVL", None),
        ("MRVL", None),  # AAA may change
        ("MKVP", "(record c): the codon CTG at base 10 is fixed and does not code for P; allow it"),
        ("MKV*", "does not code for *"),
    ],
)
def test_a_new_protein_that_kept_codons_contradict_is_refused_before_anything_is_drawn(
    redesign, here, protein, says
):
    (here / "p.fa").write_text(">c\nATGAAAGTTCTGCCCTTTAAAGGGATTATAGGC\n")
    (here / "p.yaml").write_text(f'protein: [{{exons: ["c:1-12"], sequence: "{protein}"}}]\n')
    words = ("--fasta", "p.fa", "--region", "c:1-6", "--constraints", "p.yaml", "--steps", 2)
    code, _, err = redesign(*words, "-o", "o.fa")
    assert (code, says is None or says in err) == (0 if says is None else 2, True), err
