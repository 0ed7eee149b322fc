"""How a file of edits says which request it is of, and whether it is one of ours."""

from itertools import islice
from pathlib import Path

from genodiff.io.target import describe_file, read_json_object
from genodiff.jobs.journal import Journal

REQUEST = "genodiffRequest="


def know_edits(file: Path, sidecar: str, partial: str) -> bool:
    """Whether a file is ours: the sidecar describes it, or a request that is not done wrote it."""
    try:
        told = read_json_object(sidecar)
        said = told.get("edits") if isinstance(told.get("genodiff"), str) else None
        some = said.values() if isinstance(said, dict) else ()
        mine = describe_file(file)
        if any(isinstance(one, dict) and mine.items() <= one.items() for one in some):
            return True
        with open(file, "rb") as opened:
            lines = [line[:4096].decode("utf-8", "replace") for line in islice(opened, 4)]
    except OSError:
        return False
    marks = [line.partition(REQUEST)[2].strip() for line in lines if REQUEST in line]
    return bool(marks) and Journal.read_request(partial) in marks
