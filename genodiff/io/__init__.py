"""Which records, regions, variants and annotation a file holds, and whether it is sound.

    bytes          `input_file.py`: any file, compressed or a stream, opened once and judged by its
                   head
    record         `fasta.py`, `genbank.py`, `variant_source.py`, `bed.py`: one entry, with the
                   line it came from
    genome         `faidx.py`: random access to contigs by name
    place          `places.py`: an interval with its strand
    target         `target.py`, `atomic.py`: an output, whole or absent

Read `fasta.py`, `faidx.py`, `variants.py`, then `atomic.py`. No file here imports torch.
"""
