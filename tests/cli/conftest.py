"""`genodiff sample` in the test's process."""

import pytest

from tests.commands import exit_code

SMALL = (
    "--d-model 16 --n-layer 1 --n-head 2 --batch-size 4 --validate-windows 4 --threads 1 -q"
).split()


@pytest.fixture
def sample(capfdbinary, here):
    """(exit code, stdout, stderr) of `genodiff sample WORDS`."""

    def called(*words: object) -> tuple[int, str, str]:
        arguments = ["sample", *map(str, words)]
        code = exit_code(*arguments if "--threads" in arguments else [*arguments, "--threads", "1"])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return called
