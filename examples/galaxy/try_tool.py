"""Run the tests of a Galaxy tool without Galaxy: its command is rendered by Cheetah, and run.

    pip install galaxy-tool-util ct3        # in an environment of its own; genodiff on the PATH
    genodiff data get example --out examples/galaxy/test-data
    python examples/galaxy/try_tool.py examples/galaxy/genodiff_constraint.xml

`planemo test` does more, with a Galaxy server. This reads the tool as Galaxy does, so a command
that does not render, a wrong path of an output or a failed assertion is found.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from Cheetah.Template import Template
from galaxy.tool_util.parser import get_tool_source
from galaxy.tool_util.verify.asserts import verify_assertions


class Dataset(str):
    """A path, as a data parameter prints it, with the name that the user sees."""

    element_identifier = ""


def open_dataset(folder: Path, name: str) -> Dataset:
    found = Dataset((folder / name).resolve())
    found.element_identifier = Path(name).stem
    return found


def fill_parameters(source: Any, given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The value of each input, as the command sees it."""
    values: dict[str, Any] = {}
    for one in source.parse_input_pages().page_sources[0].parse_input_sources():
        name, kind = one.parse_name(), one.get("type")
        value = given.get(name, one.get("value", ""))
        if kind == "data":
            some = [open_dataset(folder, file) for file in str(value).split(",") if file]
            values[name] = some if one.get_bool("multiple", False) else (some or [None])[0]
        elif kind == "boolean":
            is_on = str(value).lower() == "true"
            values[name] = one.get("truevalue" if is_on else "falsevalue", "") if is_on else ""
        else:
            values[name] = value
    return values


def main() -> int:
    tool = Path(sys.argv[1])
    source = get_tool_source(str(tool))
    failed = 0
    for number, test in enumerate(source.parse_tests_to_dict()["tests"], 1):
        given = {one["name"]: one["value"] for one in test["inputs"]}
        values = fill_parameters(source, given, tool.parent / "test-data")
        text = str(Template(source.parse_command(), searchList=[values]))
        command = " ".join(re.sub(r"\\\$", "$", text).split())
        print(f"test {number}: {command}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            done = subprocess.run(["bash", "-c", command], cwd=folder)
            print(f"  exit code {done.returncode}, {time.monotonic() - began:.0f} s")
            outputs, _ = source.parse_outputs(SimpleNamespace(profile=source.parse_profile()))
            paths = {name: Path(folder, one.from_work_dir) for name, one in outputs.items()}
            missing = [one["name"] for one in test["outputs"] if not paths[one["name"]].is_file()]
            failed += bool(done.returncode or missing)
            print(f"  missing: {', '.join(missing) or 'nothing'}")
            for one in test["outputs"]:
                asserts = one["attributes"].get("assert_list") or []
                if one["name"] in missing or not asserts:
                    continue
                try:
                    verify_assertions(paths[one["name"]].read_bytes(), asserts)
                    print(f"  {one['name']}: assertions met, {len(asserts)}")
                except AssertionError as fault:
                    failed += 1
                    print(f"  {one['name']}: {fault}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
