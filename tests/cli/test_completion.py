"""Completion scripts of the shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from genodiff.cli.verbs import VERBS
from tests.commands import command


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_names_every_verb(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capsys, "--show-completion", shell)
    assert (code, err) == (0, "")
    for verb in VERBS:
        assert verb in out
    assert "soft-masked" in out  # a flag of one verb
    assert "chrom-holdout" in out or shell == "fish"  # a choice


def test_bash_completes_a_verb_and_the_choices_of_a_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    (tmp_path / "script").write_text(command(capsys, "--show-completion", "bash")[1])
    for words, found in (("sam", "sample"), ("eval --split val", "valid"), ("--ver", "--version")):
        code = (
            f"source {tmp_path / 'script'}; COMP_WORDS=(genodiff {words}); "
            f'COMP_CWORD={len(words.split())}; _genodiff; echo "${{COMPREPLY[@]}}"'
        )
        done = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [found], words


def test_it_is_installed_where_the_shell_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    code, out, _ = command(capsys, "--install-completion", "bash")
    assert code == 0
    path = Path(out.partition(": written")[0])
    assert path.is_relative_to(tmp_path)
    assert "complete -o bashdefault -o default -F _genodiff genodiff" in path.read_text()
    assert str(path) in (tmp_path / ".bashrc").read_text()


def test_a_shell_that_is_not_known_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "--show-completion", "tcsh")
    assert (code, out, err.count("\n")) == (2, "", 1)
