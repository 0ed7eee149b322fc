"""Whether transformers is there, asked before anything of it is imported.

Raises `ImportError` with one line that says what to install.
"""

_WANTED = "genodiff.hf needs transformers 5 or newer"
_REMEDY = "install it: pip install 'genodiff[hf]'"

try:
    from transformers import __version__ as TRANSFORMERS
except ImportError:
    raise ImportError(f"{_WANTED}; {_REMEDY}", name="transformers") from None
if int(TRANSFORMERS.split(".")[0]) < 5:
    raise ImportError(f"{_WANTED}, found {TRANSFORMERS}; {_REMEDY}", name="transformers")
