"""DiMamba: one-hot input, and its relation to Caduceus."""

import pytest
import torch
from tiny_networks import DIMAMBA_FORMS, bases, dimamba, network
from tiny_networks import DIMAMBA_VOCABULARY as V

from genodiff.backbones.dimamba import DiMambaSettings


@pytest.mark.parametrize("form", DIMAMBA_FORMS, ids=str)
def test_one_hot_ids_are_ids_and_carry_a_gradient(form):
    model, x = dimamba(**form), bases(2, 5)
    soft = torch.nn.functional.one_hot(x, V).double().requires_grad_()
    logits = model(soft)
    torch.testing.assert_close(logits, model(x), rtol=0, atol=1e-10)
    assert torch.autograd.grad(logits.sum(), soft)[0].abs().sum() > 0


def test_without_a_condition_the_clean_form_is_caduceus_on_one_strand():
    caduceus = network(strands="single", tie_head=False).double()
    how = {"d_model": 12, "n_layer": 2, "d_state": 4, "conditioning": "none"}
    clean = DiMambaSettings.parse(how | {"time_conditioning": False})
    model = clean.build(16, None).double()
    model.load_state_dict(caduceus.state_dict())
    x = bases(2, 9)
    with torch.no_grad():
        torch.testing.assert_close(model(x), caduceus(x), rtol=0, atol=1e-12)
        published = clean.model_copy(update={"residual": False}).build(16, None).double()
        published.load_state_dict(caduceus.state_dict())
        assert not torch.allclose(published(x), caduceus(x))


def test_a_fresh_adaln_block_is_the_identity():
    model = DiMambaSettings(d_model=12, n_layer=3, d_cond=6).build(V)
    x = bases(2, 6)
    with torch.no_grad():
        states = model.hidden_states(x, torch.tensor([0.1, 3.0]))
    assert all(torch.equal(states[0], state) for state in states[1:3])
