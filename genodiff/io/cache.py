"""Where genodiff keeps what it can make again: `$GENODIFF_CACHE`, else the user's cache folder of
this system.
"""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_dir() -> Path:
    """The cache folder. It is not created here; `atomic.open_atomic` and its kin create parents
    when they write.
    """
    chosen = os.environ.get("GENODIFF_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("genodiff")
