"""Names of contigs that differ between files: `1`, `chr1`, `chrI`, `MT` and `chrM`."""

import pytest

from genodiff.annotation.base_labels import read_class_labels, read_gene_labels
from genodiff.io.bed import read_bed
from genodiff.io.genes import read_genes
from genodiff.io.regions import find_contig, parse_region
from genodiff.io.value_tracks import read_values
from tests.commands import command


@pytest.mark.parametrize(
    ("name", "contigs", "found"),
    [
        ("1", "chr1 chr2", "chr1"),
        ("chr1", "1 2", "1"),
        ("chr4", "chrIV chrV", "chrIV"),
        ("4", "chrIV", "chrIV"),
        ("IV", "4", "4"),
        ("MT", "chrM chr1", "chrM"),
        ("chrM", "MT", "MT"),
        ("M", "chrMT", "chrMT"),
        ("X", "chrX chr10", "chrX"),
        ("10", "chrX chr10", "chr10"),
        ("10", "chrX chr1", None),
        ("10", "chrIX chrX", "chrX"),
        ("X", "chr10 chr1", None),
        ("1", "chr1 Chr1", None),
        ("a", "chr1", None),
        ("", "chr", None),
        ("chra", "a", None),
        ("2L", "chr2L", "chr2L"),
        ("NC_1", "NC_1", "NC_1"),
    ],
)
def test_a_contig_is_found_by_what_other_files_call_it(name, contigs, found):
    assert find_contig(name, dict.fromkeys(contigs.split(), 9)) == found
    sizes = dict.fromkeys(contigs.split(), 9)
    if found:
        assert parse_region(f"{name}:2-3", sizes) == (found, 1, 3)
        assert parse_region(name, sizes) == (found, 0, 9)


def test_every_reader_takes_them_and_says_so(tmp_path, run, caplog, capsys):
    sizes = {"chrII": 90, "chrM": 60}
    rows = "2\t3\t9\ta\t0\t+\nMT\t3\t9\ta\t0\t+\n"
    gff = "".join(f"{c}\tx\tCDS\t4\t9\t.\t+\t0\tID={c}\n" for c in ("2", "MT"))
    for name, text in (("a.bed", rows), ("a.gff3", gff), ("a.bedgraph", "II\t1\t4\t2\n")):
        (tmp_path / name).write_text(text)
    assert read_bed(tmp_path / "a.bed", sizes)["contig"].to_list() == ["chrII", "chrM"]
    assert caplog.messages.count(f"{tmp_path}/a.bed: contig '2' is taken for 'chrII' of the FASTA")
    for file in ("a.bed", "a.gff3"):
        genes = read_genes(tmp_path / file, sizes)
        assert [one.contig for one in genes] == ["chrII", "chrM"]
    assert {*read_gene_labels(tmp_path / "a.gff3", sizes).contigs} == {*sizes}
    assert {*read_class_labels(tmp_path / "a.bed", sizes).contigs} == {*sizes}
    assert {*read_values(tmp_path / "a.bedgraph", sizes)} == {"chrII"}

    (tmp_path / "g.fa").write_text(">chrII\n" + "ACGTTTGACA" * 9 + "\n>chr1\nACGT\n")
    head = "##fileformat=VCFv4.2\n##contig=<ID=2,length=90>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL"
    (tmp_path / "v.vcf").write_text(head + "\tFILTER\tINFO\n2\t11\t.\tA\tG\t.\t.\t.\n")
    words = ["score", run, tmp_path / "v.vcf", "--fasta", tmp_path / "g.fa"]
    code, _, err = command(capsys, *words, "--region", "II:1-20", "-o", tmp_path / "o.vcf")
    assert code == 0, err
    lines = (tmp_path / "o.vcf").read_text().splitlines()
    assert "##contig=<ID=chrII,length=90>" in lines
    assert lines[-1].startswith("chrII\t11\t.\tA\tG\t")
    assert "contig '2' is taken for 'chrII'" in err
