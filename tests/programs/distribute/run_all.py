"""Runs the programs of this folder in one process and writes what they record, as JSON.

`python run_all.py OUTPUT NAME...` runs them with the TensorFlow of the interpreter, on as many
devices of the CPU as REPLICAS says, or in the workers of TF_CONFIG.
"""

import json
import os
import pathlib
import runpy
import sys

FOLDER = pathlib.Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
NAMES = [name for name in NAMES if name not in ("recording", "run_all")]


def main(output, names):
    sys.path.insert(0, str(FOLDER))
    import recording

    if not os.environ.get("TF_CONFIG"):
        recording.make_devices()
    results = {}
    for name in names or NAMES:
        recording.recorded = {}
        runpy.run_path(str(FOLDER / f"{name}.py"))
        results[name] = recording.recorded
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
    if task.get("index"):
        return
    pathlib.Path(output).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
