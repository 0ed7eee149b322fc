"""FASTA records laid out by hand, for tests of random access."""


def wrapped(name: bytes, sequence: bytes, width: int, end: bytes = b"\n") -> bytes:
    lines = [sequence[at : at + width] + end for at in range(0, len(sequence), width)]
    return b">" + name + end + b"".join(lines)
