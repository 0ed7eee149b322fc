"""Shapes of small files of annotation, values, motifs and binary variants, as `reader_shapes`."""

import gzip
import re
import tempfile
from pathlib import Path

import pyBigWig
import pysam
from reader_shapes import VCF_HEAD, VCF_NAMES, VCF_ROWS, Shapes, wrap


def _replace(base: str, changes: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: base.replace(*change) for name, change in changes.items()}


def list_gff(gtf: bool = False) -> Shapes:
    """GFF3, or `gtf`."""
    gene = 'gene_id "g";' if gtf else "ID=g;Name=abc"
    cds = 'gene_id "g"; transcript_id "t";' if gtf else "ID=c;Parent=g"
    rows = f"chr1\tx\tgene\t10\t60\t.\t+\t.\t{gene}\nchr1\tx\tCDS\t10\t60\t.\t+\t0\t{cds}\n"
    head = "" if gtf else "##gff-version 3\n"
    base = head + rows
    more = rows.replace("\t10\t", "\t110\t").replace("\t60\t", "\t160\t")
    changes = {
        "no head": rows,
        "##gff-version 3.1.26": base.replace("3\n", "3.1.26\n", 1),
        "##gff-version  3": base.replace("version 3", "version   3"),
        "gtf-version": "##gtf-version 2.2\n" + rows,
        "#!genome-build": "#!genome-build x\n" + base,
        "##sequence-region": head + "##sequence-region chr1 1 300\n" + rows,
        "### between": head + rows + "###\n" + more,
        "comment between": base + "# x\n" + more,
        "comment at a row's end": base.replace(f"{gene}\n", f"{gene} # x\n"),
        "##FASTA": base + "##FASTA\n>chr1\nACGT\n",
        "> without ##FASTA": base + ">chr1\nACGT\n",
        "blank lines": base.replace("\nchr1", "\n\nchr1"),
        "blanks": base.replace("\t", " "),
        "several blanks": base.replace("\t", "   "),
        "tab at line ends": base.replace(f"{gene}\n", f"{gene}\t\n"),
        "blank at line ends": base.replace(f"{gene}\n", f"{gene} \n"),
        "eight columns": base.replace(f"\t{gene}", "").replace(f"\t{cds}", ""),
        "attributes .": base.replace(gene, "."),
        "attributes empty": base.replace(gene, ""),
        "; at the end": base.replace(gene, gene.rstrip(";") + ";"),
        "no ; at the end": re.sub(";$", "", base, flags=re.M),
        "blanks behind ;": base.replace(";", "; "),
        "two ;": base.replace(";", ";;"),
        "quoted values of GFF3": base.replace("Name=abc", 'Name="abc"'),
        "GTF without quotes": base.replace('"', ""),
        "GTF with =": base.replace(' "', '="'),
        "single quotes": base.replace('"', "'"),
        "; in quotes": base.replace('"g"', '"g;h"'),
        "escapes": base.replace("abc", "a%2Cb%20c"),
        "commas": base.replace("abc", "a,b"),
        "UTF-8": base.replace("abc", "é").replace('"g"', '"é"'),
        "Latin-1": base.replace("abc", "é").replace('"g"', '"é"'),
        "= in a value": base.replace("abc", "a=b"),
        "a bare word": base.replace(gene, "abc"),
        "a key without value": base.replace(gene, gene + ";pseudo" if not gtf else gene + " x;"),
        "a key twice": base.replace(gene, gene + (" " if gtf else ";") + gene),
        "strand ?": base.replace("\t+\t", "\t?\t"),
        "strand .": base.replace("\t+\t", "\t.\t"),
        "strand 1": base.replace("\t+\t", "\t1\t"),
        "strand empty": base.replace("\t+\t", "\t\t"),
        "phase 3": base.replace("\t0\t", "\t3\t"),
        "phase . of a CDS": base.replace("\t0\t", "\t.\t"),
        "score of numbers": base.replace("\t.\t+", "\t1e-5\t+"),
        "score -": base.replace("\t.\t+", "\t-\t+"),
        "start 0": base.replace("\t10\t", "\t0\t"),
        "start empty": base.replace("\t10\t", "\t\t"),
        "start .": base.replace("\t10\t", "\t.\t"),
        "start 10.0": base.replace("\t10\t", "\t10.0\t"),
        "start 1e1": base.replace("\t10\t", "\t1e1\t"),
        "start with blanks": base.replace("\t10\t", "\t 10 \t"),
        "start <10": base.replace("\t10\t", "\t<10\t"),
        "start 1,000": base.replace("\t10\t", "\t1,0\t"),
        "end before start": base.replace("\t10\t60", "\t60\t10"),
        "one base": base.replace("\t60\t", "\t10\t"),
        "end beyond": base.replace("60", "600"),
        "contig unknown": base + more.replace("chr1", "chr9"),
        "contig escaped": base.replace("chr1", "chr%31"),
        "contig quoted": base.replace("chr1", '"chr1"'),
        "type with a blank": base.replace("gene\t", "my gene\t"),
        "type an accession": base.replace("\tgene\t", "\tSO:0000704\t"),
        "type empty": base.replace("\tgene\t", "\t\t"),
        "type .": base.replace("\tgene\t", "\t.\t"),
        "source empty": base.replace("\tx\t", "\t\t"),
        "source with blanks": base.replace("\tx\t", "\tmy tool\t"),
        "header line": "seqname\tsource\tfeature\tstart\tend\tscore\tstrand\tframe\tattribute\n"
        + base,
        "# header line": "#seqname\tsource\tfeature\tstart\tend\tscore\tstrand\tframe\tattributes\n"
        + base,
        "track line": "track name=x\n" + base,
        "browser line": "browser position chr1:1-9\n" + base,
        "ten columns": base.replace(f"{gene}\n", f"{gene}\tx\n"),
        "rows twice": head + rows * 2,
        "out of order": head + more + rows,
        "parent missing": base.replace("Parent=g", "Parent=h"),
        "parent below": head + "".join(reversed(rows.splitlines(True))),
        "ID twice": base.replace("ID=c", "ID=g"),
        "several parents": base.replace("Parent=g", "Parent=g,h"),
        "negative start": base.replace("\t10\t", "\t-10\t"),
        "quotes around rows": "".join(f'"{line}"\n' for line in base.splitlines()),
    }
    said = {
        name: text.encode("latin-1" if name == "Latin-1" else "utf-8")
        for name, text in changes.items()
    }
    return wrap(said, base.encode())


EMBL = """ID   AB000001; SV 1; linear; genomic DNA; STD; PRO; 60 BP.
XX
AC   AB000001;
XX
DE   made here.
XX
FH   Key             Location/Qualifiers
FT   source          1..60
FT   gene            10..30
FT                   /gene="abc"
XX
SQ   Sequence 60 BP; 15 A; 15 C; 15 G; 15 T; 0 other;
     acgttgcatg ccgataggct aacgttgacc attgcaaggt ccatgatcgg taccttagca        60
//
"""


def list_embl() -> Shapes:
    """EMBL."""
    base, old = EMBL, "ID   AB000001   standard; DNA; PRO; 60 BP."
    first = base.partition("\n")[0]
    changes = {
        **_replace(
            base,
            {
                "ID of old releases": (first, old),
                "ID of ENA": (first, "ID   XXX; XXX; linear; genomic DNA; XXX; XXX; 60 BP."),
                "ID of Artemis": (first, "ID   abc    ; ; ; ; ; 60 BP."),
                "circular": ("linear", "circular"),
                "no XX": ("XX\n", ""),
                "no AC": ("AC   AB000001;\n", ""),
                "no SQ": ("SQ   Sequence 60 BP; 15 A; 15 C; 15 G; 15 T; 0 other;\n", ""),
                "short SQ": (" 60 BP; 15 A; 15 C; 15 G; 15 T; 0 other;", ""),
                "no counts at line ends": ("        60\n", "\n"),
                "capitals": ("acgttgcatg", "ACGTTGCATG"),
                "U": ("acgttgcatg", "acguugcaug"),
                "gap": ("acgttgcatg", "acgtt-catg"),
                "no //": ("//\n", ""),
                "length too long": ("60 BP.", "61 BP."),
                "length too short": ("60 BP.", "59 BP."),
                "bad location": ("10..30", "10...30"),
                "location beyond": ("10..30", "10..90"),
                "UTF-8 qualifier": ("abc", "é"),
                "qualifier not closed": ('"abc"', '"abc'),
                "mRNA": ("genomic DNA", "mRNA"),
                "protein": ("genomic DNA", "protein"),
                "tabs": ("FT   gene  ", "FT\tgene"),
                "blank line between": ("FH   Key", "\nFH   Key"),
                "no FH": ("FH   Key             Location/Qualifiers\n", ""),
            },
        ),
        "two records": base + base.replace("AB000001", "AB000002"),
        "two the same": base * 2,
        "no features": base.partition("FH ")[0] + "SQ" + base.partition("SQ")[2],
        "CO in place of SQ": base.partition("SQ ")[0] + "CO   join(X:1..9)\n//\n",
        "CC above": base.replace("FH ", "CC   by hand\nXX\nFH "),
    }
    return wrap({name: text.encode() for name, text in changes.items()}, base.encode())


def list_motifs(kind: str) -> Shapes:
    """MEME (minimal), JASPAR or TRANSFAC."""
    bases = {
        "MEME": (
            "MEME version 4\n\nALPHABET= ACGT\n\nstrands: + -\n\n"
            "Background letter frequencies\nA 0.25 C 0.25 G 0.25 T 0.25\n\n"
            "MOTIF M1 abc\nletter-probability matrix: alength= 4 w= 2 nsites= 20 E= 0\n"
            " 0.7 0.1 0.1 0.1\n 0.1 0.7 0.1 0.1\n"
        ),
        "JASPAR": ">MA0001.1\tabc\nA [ 7 1 ]\nC [ 1 7 ]\nG [ 1 1 ]\nT [ 1 1 ]\n",
        "TRANSFAC": "AC  M1\nXX\nID  abc\nXX\nP0  A C G T\n01  7 1 1 1 A\n02  1 7 1 1 C\nXX\n//\n",
    }
    base = bases[kind]
    changes = _replace(
        base,
        {
            "version 5.5.2": ("version 4", "version 5.5.2"),
            "no version": ("MEME version 4\n", ""),
            "no ALPHABET": ("ALPHABET= ACGT\n", ""),
            "ALPHABET of names": ("= ACGT", ' "DNA" DNA-LIKE'),
            "ALPHABET spaced": ("= ACGT", " = ACGT"),
            "RNA": ("ACGT", "ACGU"),
            "no strands": ("strands: + -\n", ""),
            "strands +": ("+ -", "+"),
            "no background": ("Background letter frequencies\nA 0.25 C 0.25 G 0.25 T 0.25\n", ""),
            "background of a source": ("frequencies\n", "frequencies (from uniform background):\n"),
            "no second name": (" abc", ""),
            "name with blanks": ("abc", "abc def"),
            "no nsites": ("nsites= 20 ", ""),
            "no E": (" E= 0", ""),
            "keys without =": ("alength= 4 w= 2", "alength=4 w=2"),
            "only the word": (": alength= 4 w= 2 nsites= 20 E= 0", ":"),
            "tabs": (" 0.", "\t0."),
            "several blanks": (" 0.", "   0."),
            "sum 0.99": ("0.7 0.1 0.1 0.1\n 0", "0.69 0.1 0.1 0.1\n 0"),
            "sum 0.9": ("0.7 0.1 0.1 0.1\n 0", "0.6 0.1 0.1 0.1\n 0"),
            "counts": ("0.7 0.1 0.1 0.1", "7 1 1 1"),
            "a row missing": (" 0.1 0.7 0.1 0.1\n", ""),
            "blank line between rows": ("0.1\n 0.1", "0.1\n\n 0.1"),
            "URL": (" 0.1 0.7 0.1 0.1\n", " 0.1 0.7 0.1 0.1\nURL http://x\n"),
            "comment": ("MOTIF", "# x\nMOTIF"),
            "no brackets": ("[", ""),
            "no brackets at all": ("[ ", ""),
            "blanks in brackets": ("[ 7 1 ]", "[7 1]"),
            "real counts": ("[ 7 1 ]", "[ 7.5 1.5 ]"),
            "frequencies": ("7", "0.7"),
            "lower case": ("A [", "a ["),
            "name behind a blank": ("\tabc", " abc"),
            "no name": ("\tabc", ""),
            "U of RNA": ("T [", "U ["),
            "another order": ("A [ 7 1 ]\nC [ 1 7 ]\n", "C [ 1 7 ]\nA [ 7 1 ]\n"),
            "a letter missing": ("T [ 1 1 ]\n", ""),
            "other widths": ("T [ 1 1 ]", "T [ 1 1 1 ]"),
            "zeros": ("[ 1 1 ]", "[ 0 0 ]"),
            "negative": ("[ 1 1 ]", "[ -1 1 ]"),
            "no AC": ("AC  M1\nXX\n", ""),
            "no ID": ("ID  abc\nXX\n", ""),
            "PO": ("P0", "PO"),
            "VV head": ("AC  M1", "VV  x\nXX\n//\nAC  M1"),
            "no XX": ("XX\n", ""),
            "no //": ("//\n", ""),
            "one blank": ("AC  M1", "AC M1"),
            "real rows": ("01  7 1 1 1", "01  7.5 1 1 1"),
            "no consensus": (" A\n", "\n"),
            "numbers from 0": ("01  7", "00  7"),
            "numbers without 0": ("01  7", "1  7"),
            "BF and CC": ("P0", "BF  T0001; x\nXX\nCC  x\nXX\nP0"),
            "NA and DE": ("P0", "NA  abc\nDE  x\nP0"),
        },
    )
    changes = {name: text for name, text in changes.items() if text != base}
    second = base.replace("M1", "M2").replace("MA0001", "MA0002")
    changes["two motifs"] = base + (second[second.find("MOTIF") :] if kind == "MEME" else second)
    changes["an id twice"] = base + (base[base.find("MOTIF") :] if kind == "MEME" else base)
    if kind == "JASPAR":
        changes["counts alone (pfm)"] = ">MA0001.1 abc\n7 1\n1 7\n1 1\n1 1\n"
        changes["four rows without >"] = "7 1\n1 7\n1 1\n1 1\n"
    return wrap({name: text.encode() for name, text in changes.items()}, base.encode())


def list_codons() -> Shapes:
    """Codon usage: a codon and a number on each line, or a table with names."""
    codons = [a + b + c for a in "TCAG" for b in "TCAG" for c in "TCAG"]
    pairs = [(codon, f"{10 + i % 7}.5") for i, codon in enumerate(codons)]

    def make(sep: str = "\t", head: str = "", rows: list[tuple[str, str]] = pairs) -> str:
        return head + "".join(f"{codon}{sep}{value}\n" for codon, value in rows)

    base = make()
    changes = {
        "blanks": make(" "),
        "commas": make(","),
        "semicolons": make(";"),
        "several blanks": make("   "),
        "names": make(head="codon\tfrequency\n"),
        "names of commas": make(",", "codon,frequency\n"),
        "# names": make(head="# codon frequency\n"),
        "U": base.replace("T", "U"),
        "lower case": base.lower(),
        "lower-case u": base.lower().replace("t", "u"),
        "counts": base.replace(".5", ""),
        "fractions": base.replace("1", "0.1"),
        "1e-2": base.replace(".5", "e-2"),
        "two codons": make(rows=pairs[:2]),
        "a codon twice": make(rows=[*pairs, pairs[0]]),
        "a codon missing": make(rows=pairs[1:]),
        "zero": base.replace("10.5", "0"),
        "negative": base.replace("10.5", "-1"),
        "nan": base.replace("10.5", "nan"),
        "decimal comma": base.replace(".", ","),
        "codon of four": base.replace("TTT\t", "TTTT\t"),
        "codon with N": base.replace("TTT\t", "NNN\t"),
        "three columns": "".join(f"X\t{c}\t{v}\n" for c, v in pairs),
        "amino acid first, named": "amino_acid,codon,relative_frequency\n"
        + "".join(f"F,{c},0.5\n" for c, _ in pairs),
        "Kazusa": "".join(
            f"{c.replace('T', 'U')} {v}(  {i + 10})  " + "\n" * (i % 4 == 3)
            for i, (c, v) in enumerate(pairs)
        ),
        "GCG": "AmAcid Codon Number /1000 Fraction ..\n\n"
        + "".join(f"Phe {c} 10.00 {v} 0.50\n" for c, v in pairs),
        "JSON": "{" + ",".join(f'"{c}": {v}' for c, v in pairs) + "}",
        "JSON by amino acid": '{"F": {"TTT": 0.5, "TTC": 0.5}}',
        "quotes": "".join(f'"{c}"\t{v}\n' for c, v in pairs),
    }
    return wrap({name: text.encode() for name, text in changes.items()}, base.encode())


def list_bcf() -> Shapes:
    """BCF, as htslib writes it."""
    head = VCF_HEAD + '##FORMAT=<ID=GT,Number=1,Type=String,Description="">\n'
    head = head.replace(
        VCF_HEAD, VCF_HEAD + '##INFO=<ID=DP,Number=1,Type=Integer,Description="">\n'
    )
    calls = (
        VCF_NAMES.rstrip("\n") + "\tFORMAT\tS1\tS2\n",
        "chr1\t3\t.\tG\tA\t.\t.\t.\tGT\t0/1\t1|1\n",
    )

    def make(text: str, mode: str = "wb") -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.vcf").write_text(text)
            made = Path(folder) / "a.bcf"
            with (
                pysam.VariantFile(f"{folder}/a.vcf") as source,
                pysam.VariantFile(str(made), mode, header=source.header) as out,
            ):
                for record in source:
                    out.write(record)
            return made.read_bytes()

    base = make(head + VCF_NAMES + VCF_ROWS)
    plain = make(head + VCF_NAMES + VCF_ROWS, "wb0")
    return {
        "as it is": base,
        "not compressed": plain,
        "gzip": gzip.compress(gzip.decompress(base)),
        "samples": make(head + "".join(calls)),
        "several ALT": make(head + VCF_NAMES + VCF_ROWS.replace("A\t.", "A,C\t.", 1)),
        "no record": make(head + VCF_NAMES),
        "symbolic": make(head + VCF_NAMES + VCF_ROWS.replace("\tA\t.", "\t<DEL>\t.", 1)),
        "out of order": make(head + VCF_NAMES + "".join(reversed(VCF_ROWS.splitlines(True)))),
        "without its end block": base[:-28],
        "cut in the middle": base[: len(base) // 2],
        "damaged": base[:60] + b"\0\1\2\3" + base[64:],
        "NUL bytes at the end": base + b"\0" * 16,
        "magic alone": gzip.compress(b"BCF\2\2"),
        "BCF1": gzip.compress(b"BCF\4" + b"\0" * 40),
        "empty": b"",
        "two files joined": base + base,
    }


def list_bigwig() -> Shapes:
    """bigWig, as pyBigWig writes it."""

    def make(
        contigs: list[tuple[str, int]],
        entries: list[tuple[object, dict[str, object]]],
        zooms: int = 10,
    ) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.bw"
            with pyBigWig.open(path, "w") as file:
                file.addHeader(contigs, maxZooms=zooms)
                for given, named in entries:
                    file.addEntries(*given, **named)  # type: ignore[misc]
            return Path(path).read_bytes()

    one = [("chr1", 300)]
    rows = (["chr1", "chr1"], [0, 20]), {"ends": [9, 29], "values": [0.5, 2.0]}
    base = make(one, [rows])
    return {
        "as it is": base,
        "no zooms": make(one, [rows], 0),
        "variableStep": make(one, [(("chr1", [5, 9, 20]), {"values": [1.0, 2.0, 3.0], "span": 2})]),
        "fixedStep": make(one, [(("chr1", 10), {"values": [1.0, 2.0], "span": 5, "step": 5})]),
        "two contigs": make([*one, ("chr2", 50)], [rows]),
        "contig that the genome lacks": make(
            [*one, ("x", 50)], [rows, ((["x"], [0]), {"ends": [9], "values": [1.0]})]
        ),
        "longer contig": make([("chr1", 400)], [rows]),
        "shorter contig": make([("chr1", 200)], [rows]),
        "name without chr": make([("1", 300)], [((["1"], [0]), {"ends": [9], "values": [1.0]})]),
        "nan": make(one, [((["chr1"], [0]), {"ends": [9], "values": [float("nan")]})]),
        "inf": make(one, [((["chr1"], [0]), {"ends": [9], "values": [float("inf")]})]),
        "many": make(
            one, [(("chr1", 0), {"values": [float(i) for i in range(300)], "span": 1, "step": 1})]
        ),
        "cut in the middle": base[: len(base) // 2],
        "gzip": gzip.compress(base),
        "bytes behind": base + b"\0" * 64,
        "empty": b"",
        "magic alone": base[:4],
        "swapped magic": base[3::-1] + base[4:],
    }


MORE = {
    "GFF3": list_gff,
    "GTF": lambda: list_gff(gtf=True),
    "EMBL": list_embl,
    "BCF": list_bcf,
    "bigWig": list_bigwig,
    "MEME": lambda: list_motifs("MEME"),
    "JASPAR": lambda: list_motifs("JASPAR"),
    "TRANSFAC": lambda: list_motifs("TRANSFAC"),
    "codon usage": list_codons,
}
