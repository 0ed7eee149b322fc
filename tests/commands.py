"""Commands run in the process of the test: a process of their own would start for a second each
time.
"""

import pytest

from genodiff.cli import main


def exit_code(*words: object) -> int:
    """That of `genodiff WORDS`."""
    try:
        main([str(word) for word in words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `genodiff WORDS`, which never shows a traceback."""
    capsys.readouterr()
    code = exit_code(*words)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err
