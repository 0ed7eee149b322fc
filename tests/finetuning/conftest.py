"""Figures of a sweep's page take longer than its fits; `tests/reports` draws them."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def pages_without_figures():
    """Pages have their words and tables alone."""
    with pytest.MonkeyPatch.context() as patch:
        names = ("dots", "learning", "calibration", "length", "logo")
        patch.setattr("genodiff.reports.benchmark._figures", lambda *_: dict.fromkeys(names, ""))
        yield
