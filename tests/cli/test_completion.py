"""Completion scripts of the shells."""

import shutil
import subprocess
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from cyclopts import App

from genodiff.jobs.verbs import list_verbs
from tests.commands import exit_code, succeed


@cache
def completion(shell: str) -> str:
    """The script of a shell, made once."""
    with redirect_stdout(StringIO()) as out:
        assert exit_code("--show-completion", shell) == 0
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_names_every_verb(shell):
    script = completion(shell)
    for verb in list_verbs():
        assert verb.split()[0] in script
    assert "soft-masked" in script  # a flag of one verb
    assert "chrom-holdout" in script or shell == "fish"  # a choice


def test_bash_completes_a_verb_and_the_choices_of_a_flag(tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    (tmp_path / "script").write_text(completion("bash"))
    for words, found in (("sam", "sample"), ("eval --split val", "valid"), ("--ver", "--version")):
        code = (
            f"source {tmp_path / 'script'}; COMP_WORDS=(genodiff {words}); "
            f'COMP_CWORD={len(words.split())}; _genodiff; echo "${{COMPREPLY[@]}}"'
        )
        done = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [found], words


def test_it_is_installed_where_the_shell_looks(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    words = "complete -o bashdefault -o default -F _genodiff genodiff"
    script = completion("bash")
    assert words in script
    plain = script.replace(words, "complete -F _genodiff genodiff")
    monkeypatch.setattr(App, "generate_completion", lambda *_, **__: plain)
    out = succeed(capsys, "--install-completion", "bash")
    path = Path(out.partition(": written")[0])
    assert path.is_relative_to(tmp_path)
    assert path.read_text() == script
    assert str(path) in (tmp_path / ".bashrc").read_text()
