"""`genodiff data check` from outside: exit codes, one line, and nothing written."""

import hashlib
import json
import os
import re
import resource
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from genodiff.errors import DataError
from genodiff.io.text_file import digest_text
from tests.commands import SERVER, check_refused, command

GOOD = b">a x\nACGTNryk\n>b\nacgt\n"
SHAS = [hashlib.sha256(s).hexdigest() for s in (b"ACGTNNNN", b"ACGT")]


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `genodiff data check ...`, run in this process."""
    return command(capsys, "data", "check", *arguments)


def test_each_record_is_one_json_line(tmp_path, capsys):
    (tmp_path / "in.fa").write_bytes(GOOD)
    code, out, err = check(capsys, str(tmp_path / "in.fa"), "--json")
    assert (code, err) == (0, "")
    keys = ("name", "length", "sha")
    assert [[json.loads(line)[key] for key in keys] for line in out.splitlines()] == [
        ["a", 8, SHAS[0]],
        ["b", 4, SHAS[1]],
    ]
    code, out, err = check(capsys, str(tmp_path / "in.fa"))
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{tmp_path / 'in.fa'}: sound; 2 records, 12 bases"


def test_gc_n_codes_and_soft_masked_bases_are_told(tmp_path, capsys):
    path = tmp_path / "in.fa"
    path.write_bytes(b">a\r\nACGTNRY\r\nacgtnn\r\n>b\r\nSWryGC\r\n>c\r\nNNN\r\n")
    code, out, err = check(capsys, str(path))
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == (
        f"{path}: GC 60.0 %, N 54.5 %, soft-masked 36.4 %; read as N: R 2, S 1, W 1, Y 2"
    )
    rows = [json.loads(line) for line in check(capsys, str(path), "--json")[1].splitlines()]
    assert rows[0]["gc"] == 0.5
    assert rows[0]["n"] == pytest.approx(5 / 13, abs=1e-6)
    assert rows[0]["soft_masked"] == pytest.approx(6 / 13, abs=1e-6)
    assert [row["codes"] for row in rows] == [
        {"R": 1, "Y": 1},
        {"R": 1, "S": 1, "W": 1, "Y": 1},
        {},
    ]
    assert (rows[2]["gc"], rows[2]["n"]) == (None, 1.0)


def test_a_circular_record_is_told_with_what_goes_round(tmp_path, capsys):
    path = tmp_path / "in.fa"
    path.write_text(">a\nACGT\n>b [topology=circular]\nACGT\n")
    code, out, err = check(capsys, str(path))
    assert (code, err) == (0, "")
    assert f"{path}: 1 circular (b): redesign goes round; windows of training" in out
    rows = [json.loads(line) for line in check(capsys, str(path), "--json")[1].splitlines()]
    assert [row.get("circular") for row in rows] == [None, True]


def test_a_fault_on_the_last_line_leaves_stdout_empty(tmp_path, capsys):
    (tmp_path / "in.fa").write_bytes(GOOD * 1 + b">c\nAC-T\n")
    code, out, err = check(capsys, str(tmp_path / "in.fa"), "--json")
    assert (code, out) == (3, "")
    assert re.fullmatch(
        r"genodiff: error: \S+/in\.fa, line 6 \(record c\): column 3: gap .*; remove the gaps\n",
        err,
    )


def test_a_bed_is_judged_against_its_reference(here, capsys):
    words = ["in.bed", "--fasta", "ref.fa"]
    (here / "in.bed").write_bytes(b"b\t1\t5\n")
    for reference, said in (
        (GOOD, "in.bed, line 1: the end 5 is past the end of b (length 4)"),
        (b">b\nAC-T\n", "ref.fa, line 2 (record b)"),
    ):
        (here / "ref.fa").write_bytes(reference)
        check_refused(capsys, ["data", "check", *words], 3, said)
    assert check(capsys, words[0])[0] == 0


def test_text_is_judged_as_utf8(tmp_path, capsys):
    (tmp_path / "in.txt").write_bytes("\ufeffGröße \u2028\r\n[MASK] \x1b[31m\n".encode())
    code, out, _ = check(capsys, str(tmp_path / "in.txt"), "--domain", "text", "--json")
    text = "Größe \u2028\r\n[MASK] \x1b[31m\n"
    assert code == 0
    assert json.loads(out) == {
        "name": "in.txt",
        "length": len(text),
        "sha": hashlib.sha256(text.encode()).hexdigest(),
    }


def test_data_without_one_window_of_the_wanted_length_are_refused(here, capsys):
    (here / "in.fa").write_bytes(GOOD)
    assert check(capsys, "in.fa", "--seq-len", "8")[0] == 0
    said = "every record is shorter than --seq-len 9: the longest has 8 bases; give longer data"
    check_refused(capsys, "data check in.fa --seq-len 9 --json".split(), 3, said)


def test_a_byte_that_is_no_text_is_named_at_its_offset_wherever_blocks_end(tmp_path):
    path = tmp_path / "in.txt"
    for size in (4, 8, 12, 1 << 20):
        for good in (
            "aé\n染" * 5,
            "x" + "aé\n染" * 5,
            *("x" * shift + "👩" * 7 for shift in range(4)),
        ):
            path.write_bytes(good.encode() + b"b\xff" + good.encode())
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("genodiff.io.input_file.BLOCK", size)
                with pytest.raises(DataError) as caught:
                    digest_text(path)
            assert caught.value.line == good.count("\n") + 1
            assert f"byte 0xFF at offset {len(good.encode()) + 1} is not UTF-8" in caught.value.what


NAMES = [
    "it's.fa", 'say "hi".fa', "$(touch pwned).fa", "`touch pwned`.fa", "100%s%n.fa", "{}.fa",
    "a b  c.fa", " lead.fa", "-x.fa",
    "--json", "染色体.fa", "é.fa", "a;b&c|d.fa", "*.fa", "~", "#x.fa", "n" * 255, "new\nline.fa",
    "esc\x1b[2J.fa", "x.bed.fa",
    "\udce9.fa",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_is_a_file_name(here, capsys, name):
    path = f"./{name}" if name.startswith("-") else name
    Path(path).write_bytes(GOOD)
    code, out, err = check(capsys, path, "--json")
    assert (code, err, out.count("\n")) == (0, "", 2)
    Path(path).write_bytes(b"ACGT\n")
    code, out, err = check(capsys, path, "--json")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert err.startswith("genodiff: error: ")
    assert err.rstrip("\n").isprintable()
    assert name in err or not name.isprintable()
    assert [p.name for p in here.iterdir()] == [name]


def test_what_is_no_regular_file_is_refused_at_once(tmp_path, capsys):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("gone.fa")
    (tmp_path / "link").symlink_to("good.fa")
    (tmp_path / "good.fa").write_bytes(GOOD)
    (tmp_path / "file").write_bytes(GOOD)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "sock"))
        for name, words in (
            ("fifo", "named pipe"), ("folder", "is a directory"), ("loop",
            "loop of symbolic links"), ("sock", "is a socket"),
            ("dangling", "broken link to gone.fa"), ("good.f",
            "no such file; did you mean 'good.fa'"), ("gone", "no such file"),
            ("file/x.fa", "Not a directory"), ("n" * 256, "File name too long"),
        ):  # fmt: skip
            for arguments in ([name], ["x.bed", "--fasta", name], [name, "--domain", "text"]):
                (tmp_path / "x.bed").write_bytes(b"a\t0\t1\n")
                code, out, err = check(
                    capsys,
                    *[str(tmp_path / a) if a[0] != "-" and a != "text" else a for a in arguments],
                )
                assert (code, out) == (3, "")
                # A folder is a way to give a text.
                assert (
                    "holds no file of text"
                    if (name, arguments[-1]) == ("folder", "text")
                    else words
                ) in err
    assert check(capsys, str(tmp_path / "link"))[0] == 0
    for device in ("/dev/null", "/dev/zero", "/dev/full", "/dev/random"):
        check_refused(capsys, ["data", "check", device], 3, f"{device}: is a device")
    assert "''" in check(capsys, "")[2]
    assert check(capsys, "a\0b")[0] == 3


def test_a_file_that_may_not_be_read_is_refused(tmp_path, capsys):
    (tmp_path / "in.fa").write_bytes(GOOD)
    assert check(capsys, str(tmp_path / "in.fa"))[0] == 0
    (tmp_path / "in.fa").chmod(0)
    root = os.geteuid() == 0  # root may read everything, so it steps down for a moment
    if root:
        os.seteuid(65534)
    try:
        code, _, err = check(capsys, str(tmp_path / "in.fa"))
    finally:
        if root:
            os.seteuid(0)
    assert code == 3
    assert "permission denied; make it readable" in err


def test_stdin_and_process_substitution_are_read():
    words = ["data", "check", "-"]
    done = SERVER.run([*words, "--json"], input=GOOD, timeout=60)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2)
    done = SERVER.run(words, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "<stdin>: is empty" in done.stderr
    script = f"{shlex.quote(sys.executable)} -m genodiff data check <(printf '>a\\nACGT\\n')"
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert "sound; 1 record, 4 bases" in shell.stdout


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    (tmp_path / "in.fa").write_bytes(b"".join(b">c%d\nA\n" % i for i in range(20_000)))
    script = f"{shlex.quote(sys.executable)} -m genodiff data check in.fa --json | head -n 1"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith('{"name": "c0"')
    assert done.stderr == ""


def test_an_answer_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "in.fa").write_bytes(GOOD)
    for arguments in (["in.fa"], ["in.fa", "--json"]):
        words = ["data", "check", *arguments]
        with open("/dev/full", "w") as full, open(tmp_path / "said", "w") as said:
            done = SERVER.start(words, stdout=full, stderr=said, cwd=tmp_path)
            assert done.wait(60) == 5
        line = (tmp_path / "said").read_text()
        assert re.fullmatch(r"genodiff: error: No space left on device; .*\n", line)


def test_checking_a_fasta_imports_nothing_heavy_and_starts_at_once(tmp_path):
    (tmp_path / "in.fa").write_bytes(GOOD)
    code = (
        "import atexit, sys\n"
        "heavy = ('torch', 'lightning', 'polars', 'numpy', 'pyfaidx', 'matplotlib', 'sklearn')\n"
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules], file=sys.stderr))\n"
        "from genodiff.cli import main; main(['data', 'check', 'in.fa'])"
    )
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stdout.startswith("in.fa: sound; 2 records, 12 bases\n")
        assert done.stderr == "[]\n"
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if spent < 1.5:  # seconds of processor time: torch alone takes more
            return
    raise AssertionError(spent)


def test_check_writes_nothing_beside_the_file_or_in_the_cache(tmp_path, monkeypatch, capsys):
    (tmp_path / "in.fa").write_bytes(GOOD)
    (tmp_path / "in.bed").write_bytes(b"a\t0\t1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert check(capsys, "in.fa")[0] == 0
    assert check(capsys, "in.bed", "--fasta", "in.fa")[0] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.bed", "in.fa"]


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(3))
def test_the_files_of_other_readers_tests_neither_crash_nor_hang(shared, capsys, part):
    folder = shared / "badinput/external"
    files = [
        p
        for p in folder.rglob("*")
        if p.suffix in (".fa", ".fasta", ".pro", ".gz", ".fx", ".bed", ".vcf")
    ]
    assert len(files) > 600
    for path in sorted(p for p in files if p.suffix != ".vcf")[part::3] + sorted(files)[part::36]:
        code, out, err = check(
            capsys, str(path), *(["--domain", "text"] if path.suffix == ".vcf" else [])
        )
        assert code in (0, 3)
        told = (out.count("\n"), err.count("\n"))
        assert told in ([(1, 0), (2, 0)] if code == 0 else [(0, 1)]), path
