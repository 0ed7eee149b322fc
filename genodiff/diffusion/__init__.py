"""How bases are masked, predicted and sampled: no network, no DNA, no file, no random state.

    schedule       `schedule.py`: how much is masked at time t
    clean          `masked.py`: tokens, and which of them count
    inputs         `masked.py`: masked tokens, made of uniforms
    loss           `loss.py`, `objectives/mdlm.py`: nats of the bound
    sample         `sampler.py`, `samplers/`: masks filled in an order

Read `masked.py`, `objectives/mdlm.py`, `sampler.py`, `samplers/ancestral.py`.
"""
