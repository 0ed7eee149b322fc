"""Motif files: the same motifs from every format, or one line that says what is wrong."""

import gzip
import json
import re

import numpy as np
import pytest

from genodiff.io.file_kinds import find_motif_format
from genodiff.io.motifs import read_motifs
from tests.commands import command

SITES = ["ACGT", "ACGA", "ACTA", "ACTT"]  # A, C, G or T, A or T
MATRIX = np.array([[4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 2, 2], [2, 0, 0, 2]]) / 4
ROWS = "".join(" ".join(f"{x:.6f}" for x in row) + "\n" for row in MATRIX)
MINIMAL = f"""MEME version 4

ALPHABET= ACGT

strands: + -

Background letter frequencies
A 0.25 C 0.25 G 0.25 T 0.25

MOTIF M1 first
log-odds matrix: alength= 4 w= 1 E= 0
 -40 -57 -72 77

letter-probability matrix: alength= 4 w= 4 nsites= 4 E= 0
{ROWS}MOTIF M2 NA
letter-probability matrix:
0.1 0.2 0.3 0.4
URL BLANK
"""
TEXT = f"""********
MEME - Motif discovery tool
********
MEME version 5.5.0 (Release date: none)

ALPHABET "DNA" DNA-LIKE
A "Adenine" CC0000 ~ T "Thymine" 008000
C "Cytosine" 0000CC ~ G "Guanine" FFB300
N "Any base" = ACGT
. = ACGT
END ALPHABET
Sequence name            Weight Length
1                        1.0000    500

MOTIF ACKW MEME-1\twidth =   4  sites =   4  llr = 10  E-value = 1.0e+000
--------
\tMotif ACKW MEME-1 position-specific probability matrix
--------
letter-probability matrix: alength= 4 w= 4 nsites= 4 E= 1.0e+000
{ROWS}--------
"""
JASPAR = """>MA1.1 first
A  [ 4  0  0  2 ]
C  [ 0  4  0  0 ]
G  [ 0  0  2  0 ]
T  [ 0  0  2  2 ]
>MA2.1
A 1 0.5
C 2 0.5
G 3 0
T 4 0
"""
TRANSFAC = """VV  a version
XX
//
AC  M00001
XX
ID  V$FIRST
XX
NA  first
XX
P0      A      C      G      T
01      4      0      0      0      A
02      0      4      0      0      C
03      0      0      2      2      K
04      2      0      0      2      W
XX
//
AC  M00002
P0      A      C      G      T
01      1      2      3      4      N
//
"""


def site(n: int, letters: str) -> str:
    refs = "".join(f'<letter_ref letter_id="{x}"/>' for x in letters)
    return (
        f'<contributing_site sequence_id="s{n}" position="1" strand="plus" pvalue="0.1">'
        f"<site>{refs}</site></contributing_site>"
    )


XML = f"""<?xml version='1.0' encoding='UTF-8'?>
<MEME version="5.5.0"><training_set primary_sequences="in.fa">
{"".join(f'<sequence id="s{n}" name="n{n}"/>' for n in range(4))}
<letter_frequencies><alphabet_array>
{"".join(f'<value letter_id="{x}">0.25</value>' for x in "ACGT")}
</alphabet_array></letter_frequencies></training_set>
<model><command_line>meme in.fa</command_line></model>
<motifs><motif id="motif_1" name="ACKW" alt="MEME-1" width="4" sites="4" e_value="1">
<contributing_sites>{"".join(site(n, x) for n, x in enumerate(SITES))}</contributing_sites>
</motif></motifs></MEME>
"""
GOOD = [  # name, file, (id, name) of the motifs, with sites
    ("minimal", MINIMAL, [("M1", "first"), ("M2", "M2")]),
    ("text", TEXT, [("ACKW", "MEME-1")]),
    ("xml", XML, [("ACKW", "MEME-1")]),
    ("jaspar", JASPAR, [("MA1.1", "first"), ("MA2.1", "MA2.1")]),
    ("transfac", TRANSFAC, [("M00001", "first"), ("M00002", "M00002")]),
]


@pytest.mark.parametrize(("form", "text", "names"), GOOD, ids=[g[0] for g in GOOD])
@pytest.mark.parametrize("change", ["none", "gzip", "crlf"])
def test_every_format_gives_the_same_motif(tmp_path, form, text, names, change):
    data = text.encode()
    path = tmp_path / "no_suffix"
    path.write_bytes({"none": data, "gzip": gzip.compress(data),
                      "crlf": data.replace(b"\n", b"\r\n")}[change])  # fmt: skip
    motifs = read_motifs(path)
    assert [(m.id, m.name) for m in motifs] == names
    first = motifs[0]
    np.testing.assert_allclose(first.matrix, MATRIX, atol=1e-12)
    assert (first.sites, first.width, first.consensus()) == (4, 4, "ACKW")
    assert first.information_bits() == pytest.approx(6)
    if len(motifs) == 2:
        np.testing.assert_allclose(motifs[1].matrix[0], [0.1, 0.2, 0.3, 0.4], atol=1e-12)
        assert motifs[1].sites == {"minimal": None, "jaspar": None, "transfac": 10}[form]


def test_check_prints_one_line_for_each_motif(tmp_path, capsys):
    path = tmp_path / "in.txt"
    path.write_text(MINIMAL)
    code, out, err = command(capsys, "data", "check", str(path))
    assert (code, err) == (0, "")
    assert out == (
        f"M1   4   6.00 bits  ACKW  first\nM2   1   0.15 bits  N\n{path}: sound; 2 motifs\n"
    )
    code, out, err = command(capsys, "data", "check", str(path), "--json")
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"name": "first", "id": "M1", "length": 4, "consensus": "ACKW", "information_bits": 6.0},
        {"name": "M2", "id": "M2", "length": 1, "consensus": "N", "information_bits": 0.1536},
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt"]
    code, out, err = command(capsys, "data", "check", str(path), "--fasta", str(path))
    assert (code, out) == (2, "")
    path.write_text(MINIMAL[:-19])
    code, out, err = command(capsys, "data", "check", str(path))
    assert (code, out, f"error: {path}, line 21 (record M2): " in err) == (3, "", True)


def test_a_fasta_is_no_motif_file():
    for head in (b">a\nA\n", b">a A [x]\nACGT\n", b">A 1\nAAAA\n", b"ID   X; SV 1;\n", b""):
        assert find_motif_format("in.fa", head) is None
    assert find_motif_format("in.fa", JASPAR.encode()) == "JASPAR"
    assert find_motif_format("in.MEME.gz", b"") == "MEME"


def wrong(text: str, old: str, new: str) -> str:
    assert text.count(old) >= 1
    return text.replace(old, new, 1)


LAST = ROWS.splitlines()[-1]
BAD = [  # ending, text, words, line
    (".meme", "", "is empty", None),
    (".meme", "\n \n", "is empty", None),
    (".meme", MINIMAL.split("MOTIF")[0], "holds no motif", None),
    (".meme", wrong(MINIMAL, "MEME version 4\n", ""), "before any line 'MEME v", 9),
    (".meme", "hello\n", "no line 'MEME version'", 1),
    (".meme", wrong(MINIMAL, "= ACGT", "= ACDEFGHIKLMNPQRSTVWY"), "not ACGT", 3),
    (".meme", wrong(MINIMAL, "= ACGT", "= ACGU"), "'ACGU', not ACGT", 3),
    (".meme", wrong(TEXT, "~ T", "~ U"), "'ACGU', not ACGT", 6),
    (".meme", wrong(TEXT, "alength= 4", "alength= 20"), "20 letters, not 4", 19),
    (".meme", wrong(TEXT, "nsites= 4", "nsites= x"), "nsites= x is not a", 19),
    (".meme", wrong(MINIMAL, " w= 4", " w= 3"), "M1.*more rows than w= 3", 18),
    (".meme", wrong(MINIMAL, " w= 4", " w= 5"), "M1.*row 5 of 5 expected.*MOTIF", 19),
    (".meme", MINIMAL.split(LAST)[0], "M1.*ends after 3 rows.*cut short", 14),
    (".meme", MINIMAL.split("letter-")[0], "M1.*no letter-probability", 10),
    (".meme", MINIMAL[:-19], "M2.*four numbers.*'0.1 0.2'", 21),
    (".meme", wrong(MINIMAL, "letter-probability matrix: a", "x"), "M1.*no letter", 10),
    (".meme", wrong(MINIMAL, "0.1 0.2", "0.2 0.2"), "M2.*sums to 1.1, not to 1", 21),
    (".meme", wrong(MINIMAL, "0.1 0.2", "-0.1 0.4"), "M2.*is negative", 21),
    (".meme", wrong(MINIMAL, "0.1 0.2", "nan 0.4"), "M2.*not finite", 21),
    (".meme", wrong(MINIMAL, "0.1 0.2", "0.1 x"), "M2.*four numbers", 21),
    (".meme", wrong(MINIMAL, "MOTIF M2", "MOTIF M1"), "M1.*duplicate.*first at line 10", 19),
    (".meme", wrong(MINIMAL, "MOTIF M2 NA", "MOTIF "), "without a name", 19),
    (".meme", wrong(MINIMAL, "MOTIF M2 NA", ""), "without a MOTIF line", 20),
    (".xml", XML[:-30], "cannot be parsed", 1),
    (".xml", wrong(XML, 'sites="4"', 'sites="5"'), "ACKW.*declares 5 sites and has 4", None),
    (".xml", XML.replace('d="T"', 'd="U"'), "'ACGU', not ACGT", None),
    (".jaspar", JASPAR.split("T 4")[0], "MA2.1.*has 3 rows", 6),
    (".jaspar", wrong(JASPAR, "T 4 0\n", "T 4 0\nT 4 0\n"), "MA2.1.*has 5 rows", 6),
    (".jaspar", wrong(JASPAR, "2  2 ]", "2  2"), "MA1.1.*is not a row", 5),
    (".jaspar", wrong(JASPAR, "G 3 0", "G 3"), "row G has 1 positions and row A 2", 9),
    (".jaspar", wrong(JASPAR, "T  [", "U  ["), "row U where T is expected", 5),
    (".jaspar", wrong(JASPAR, "A 1", "C 1"), "row C where A is expected", 7),
    (".jaspar", wrong(JASPAR, "T 4 0", "T 4 x"), "count of T 'x' is not a finite", 10),
    (".jaspar", wrong(JASPAR, "T 4 0", "T 4 -1"), "MA2.1.*negative", 6),
    (".jaspar", wrong(JASPAR, "A  [ 4", "A  [ 0"), "position 1.*no counts", 1),
    (".jaspar", wrong(JASPAR, ">MA1.1 first", "> "), "without a name", 1),
    (".pfm", "1 2\n3 4\n", "expected a header.*'1 2'", 1),
    (".jaspar", JASPAR + JASPAR, "MA1.1.*duplicate", 11),
    (".transfac", wrong(TRANSFAC, "03  ", "// 9\n03  "), "4 numbered rows, of which 2", 4),
    (".transfac", TRANSFAC[:-3], "cut short", 17),
    (".transfac", TRANSFAC + "AC  M3\n//\n", "no matrix", 21),
    (".transfac", wrong(TRANSFAC, "AC  M00002\n", ""), "no AC and no ID", 17),
    (".transfac", wrong(TRANSFAC, "T\n01      1", "U\n01      1"),
     "M00002.*parsed.*A C G U.*not A C G T", 18),
    (".transfac", wrong(TRANSFAC, "3      4      N", "3"), "M00002.*each nucl", 19),
    (".transfac", wrong(TRANSFAC, "03  ", "x3  "), "M00001.*parsed.*'x3", 13),
    (".transfac", wrong(TRANSFAC, "M00002", "M00001"), "M00001.*duplicate", 17),
]  # fmt: skip


def test_the_published_collections_are_read_whole(shared):
    files = sorted((shared / "data" / "motifs").glob("*.meme.gz"))
    if not files:
        pytest.skip("no motif files in the shared folder")
    for path in files:
        motifs = read_motifs(path)
        text = gzip.decompress(path.read_bytes()).decode()
        widths = [int(w) for w in re.findall(r"^letter-probability.* w= *(\d+)", text, re.M)]
        assert [m.width for m in motifs] == widths, path.name
        assert [m.id for m in motifs] == re.findall(r"^MOTIF +(\S+)", text, re.M)
        for motif in motifs[::50]:
            assert 0 <= motif.information_bits() <= 2 * motif.width
            assert len(motif.consensus()) == motif.width
