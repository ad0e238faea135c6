"""The shared helper of test/integration plus what only these cases need."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from plimsoll_test import *  # noqa: F401,F403,E402
import plimsoll_test as _shared  # noqa: E402


def train_weights(suite, artifact, data, steps, *flags):
    """Trains; gives the metrics lines and the exported parameters and buffers."""
    output = suite.scratch / "weights.safetensors"
    lines = _shared.train(artifact, data, steps, *flags, "--export-weights", output, metrics=suite.scratch / "metrics.jsonl")
    return lines, _shared.read_safetensors(output)


def train_state(suite, artifact, data, steps, *flags):
    """Trains with a constant learning rate; gives the metrics lines and the whole state of the last checkpoint, without its metadata."""
    out = suite.scratch / "run"
    _shared.must("plimsoll-run", "train", artifact, *_shared.data_flags(data), "--steps", steps, "--lr", 0.1, "--out", out, "--overwrite", *flags)
    state = _shared.read_safetensors(out / (out / "latest").read_text().strip())
    state.pop(None)
    return _shared.read_metrics(out / "metrics.jsonl"), state


def changed(one, other):
    """Names of tensors that are not bitwise equal."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def gradients(suite, artifact, data, *flags):
    """{parameter: list} from the artifact's `gradients` entry (compile with --gradients-entry)."""
    output = suite.scratch / "gradients.safetensors"
    _shared.must("plimsoll-run", "forward", artifact, *_shared.data_flags(data), "--entry", "gradients", "--output", output, *flags)
    return {name: _shared.values(tensor) for name, tensor in _shared.read_safetensors(output).items() if name is not None}


def variables(artifact):
    """{name: variable} of plimsoll-inspect --json."""
    report = _shared.json.loads(_shared.must("plimsoll-inspect", artifact, "--json"))
    return {variable["name"]: variable for variable in report["variables"]}
