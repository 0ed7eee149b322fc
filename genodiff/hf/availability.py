"""Whether transformers is there, asked before anything of it is imported.

Raises `ImportError` with one line that says what to install.
"""

_OLDEST = (5, 10)  # older ones prefer remote code to registered classes
_WANTED = f"genodiff.hf needs transformers {_OLDEST[0]}.{_OLDEST[1]} or newer"
_REMEDY = "install it: pip install 'genodiff[hf]'"

try:
    from transformers import __version__ as TRANSFORMERS
except ImportError:
    raise ImportError(f"{_WANTED}; {_REMEDY}", name="transformers") from None
if tuple(map(int, TRANSFORMERS.split(".")[:2])) < _OLDEST:
    raise ImportError(f"{_WANTED}, found {TRANSFORMERS}; {_REMEDY}", name="transformers")
