"""The same numbers, fast: scan, convolution, norm, products and their gradients.

    provider       `dispatch.py`: triton, native, torch or naive, chosen for the device
    operation      `scan.py`, `conv.py`, `norm.py`, `linear.py`, `mixer.py`: chooser and C call in
                   one file
    direction      `direction.py`: the weights, inputs and state of one direction of a mixer
    definition     `naive.py`: the selective scan step by step, which all others are compared with
    library        `library.py`: the C of `native/`, loaded once for this processor

Read `naive.py`, `dispatch.py`, `norm.py`, then `mixer.py`. The room may stay a black box.
"""
