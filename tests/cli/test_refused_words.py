"""What a command line cannot mean is one line on stderr with its exit code, and changes no file."""

import pytest

from genodiff.design.design_drawing import DesignDrawing
from tests.cli.refused_words import REFUSED
from tests.commands import check_refused
from tests.tiny_run import write_run


@pytest.fixture(scope="module")
def uniform_run(tmp_path_factory):
    """An untrained network of uniform noise."""
    return write_run(tmp_path_factory.mktemp("uniform"), diffusion={"objective": "uniform"})


CASES = [(name, *row) for name, table in REFUSED.items() for row in table.list_rows()]


@pytest.mark.parametrize(
    ("name", "words", "code", "said"), CASES, ids=[" ".join(case[1])[:90] for case in CASES]
)
def test_what_cannot_be_meant_is_one_line_and_changes_nothing(
    name, words, code, said, run, text_run, uniform_run, here, monkeypatch, capsys
):
    monkeypatch.setattr(DesignDrawing, "draw", lambda *_, **__: pytest.fail("evaluated"))
    for file, text in REFUSED[name].files.items():
        path = here / file
        (path if file.endswith("/") else path.parent).mkdir(exist_ok=True)
        if not file.endswith("/"):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    places = {"RUN": run, "TEXT": text_run, "UNIFORM": uniform_run}
    check_refused(capsys, [places.get(word, word) for word in words], code, said)
