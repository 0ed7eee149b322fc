"""The commands of the command line, made of the registry's verbs when they are used."""

from collections.abc import Callable
from typing import Any

from cyclopts import App, Group

from genodiff.jobs.verbs import list_verbs

GROUPS = {
    "cache": """List and clean the cache.

All of it can be recreated. The folder is the user's cache folder, or GENODIFF_CACHE. Runs, fits and
results are never stored there.""",
    "checkpoint": "Check a run folder or checkpoint; read and write published weights.",
    "config": "Show, check and document settings.",
    "data": "Check, get, build and list data.",
    "finetune": "Fine-tune on benchmarks or your own labelled sequences; check and audit their "
    "data.",
    "models": """List and show pretrained models, for `--model NAME`.

They are included in genodiff, or in a folder listed in GENODIFF_MODELS, one folder each, as written
by `genodiff checkpoint export RUN --format safetensors`.""",
}
"""Help of the verb groups."""
_ALONE = {"models": "models list"}
"""The verb of a group when no word follows."""


def add_verbs(app: App, group: str = "") -> None:
    """Make the verbs of the registry commands of `app`; of a `group`, those below it.

    A command is an attribute of this module, so that cyclopts imports what it needs at its turn.
    """
    verbs, seen = list_verbs(), set()
    for name in verbs:
        word, _, below = name.removeprefix(f"{group} " if group else "").partition(" ")
        if word in seen or (group and not name.startswith(f"{group} ")):
            continue
        seen.add(word)
        if word == "*":
            for variant, about in verbs[name].open().list_variants().items():
                app.command(_make(name, variant), name=variant, help=about)
            continue
        about = GROUPS.get(word, "") if below else verbs[name].help
        app.command(f"{__name__}:{group} {word}".replace(": ", ":"), name=word, help=about)


def __getattr__(name: str) -> App | Callable[..., None]:
    """A command by its words: a function, or the `App` of a group."""
    verbs = {} if name.startswith("__") else list_verbs()
    if name in verbs:
        return _make(name)
    if not any(one.startswith(f"{name} ") for one in verbs):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    app = App(name=name, group_parameters=Group.create_default_parameters())
    if name in _ALONE:
        app.default(_make(_ALONE[name]))
    add_verbs(app, name)
    return app


def _make(name: str, *variant: str) -> Callable[..., Any]:
    from genodiff.cli.request_flags import make_command  # what a list of verbs does not need

    return make_command(name, list_verbs()[name].open(), *variant)
