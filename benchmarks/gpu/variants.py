"""Writes a VCF with a substitution at every 32nd base of each record of a FASTA file.

python benchmarks/gpu/variants.py FASTA VCF
"""

import sys
from pathlib import Path


def main() -> None:
    fasta, vcf = map(Path, sys.argv[1:3])
    rows = ["##fileformat=VCFv4.2", "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"]
    for record in fasta.read_text().split(">")[1:]:
        name, *parts = record.split("\n")
        bases = "".join(parts).upper()
        for at in range(16, len(bases), 32):
            other = "G" if bases[at] == "A" else "A"
            rows.append(f"{name.split()[0]}\t{at + 1}\t.\t{bases[at]}\t{other}\t.\t.\t.")
    vcf.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
