"""A small run of text, a folder to work in, and `genodiff sample` in the test's process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.commands import exit_code
from tests.texts import write_song

Command = Callable[..., tuple[int, str, str]]
SMALL = (
    "--d-model 16 --n-layer 1 --n-head 2 --batch-size 4 --validate-windows 4 --threads 1 -q"
).split()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; the number of threads is put back."""
    threads = torch.get_num_threads()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    torch.set_num_threads(threads)


@pytest.fixture
def sample(capfdbinary: pytest.CaptureFixture[bytes], here: Path) -> Command:
    """(exit code, stdout, stderr) of `genodiff sample WORDS`."""

    def called(*words: object) -> tuple[int, str, str]:
        arguments = ["sample", *map(str, words)]
        code = exit_code(*arguments if "--threads" in arguments else [*arguments, "--threads", "1"])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return called


@pytest.fixture(scope="session")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 6 steps on a song, in a folder with the song."""
    folder = tmp_path_factory.mktemp("text")
    song = write_song(folder)
    out = folder / "run"
    assert (
        exit_code(
            "train",
            song,
            "--domain",
            "text",
            "--seq-len",
            32,
            "--max-steps",
            6,
            "--out",
            out,
            *SMALL,
        )
        == 0
    )
    return out
