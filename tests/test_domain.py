"""The domains hold what the rest of the package can use: presets, settings and flags that exist."""

import pytest

from genodiff.backbones.backbone import PRESETS
from genodiff.domain import DOMAINS
from genodiff.runs.config import RunConfig
from genodiff.runs.resolve import resolve_config


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))
def test_a_domain_names_a_preset_and_settings_that_make_a_run(domain):
    recipe = "toy" if domain.has_two_strands else "own"
    config = resolve_config({"recipe": recipe, "domain": domain.name})
    assert config.preset == domain.preset
    assert domain.preset in PRESETS
    assert set(domain.inputs) <= set(RunConfig.model_fields)
    for section, values in domain.settings.items():
        found = getattr(config, section)
        assert {name: getattr(found, name) for name in values} == values
    assert domain.has_two_strands or not config.rc_augment
