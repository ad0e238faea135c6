#!/usr/bin/env python3
"""Checks Plimsoll against recorded PyTorch training runs ("oracles").

usage: check_oracles.py DIR [--only NAME]... [--precision fp32] [--budget BYTES|min] [--chunks N] [--target cpu] [--bin BUILD/bin] [--keep DIR]

DIR holds NAME.onnx, NAME.json and NAME.safetensors (test/integration/oracles/README.md describes them). Each model is compiled with
its .onnx unchanged and trained for ten steps with SGD-momentum and with AdamW. Bounds, from the issue that defined them:
  loss of every step       |difference| <= 2e-5*|loss| + 10*loss_noise (how far rounding-size differences grow in that model)
  step-0 gradients         relative L2 <= 2e-5, plus 5e-7 of the global gradient norm (some gradients are exactly zero)
  norms after ten SGD steps  parameters and BatchNorm buffers within 1e-4 relative (resnet10: 1e-2)
  eval-mode loss           within 2e-5 relative
Prints a line per model, closes with "N passed, N failed", exits 0 only if all pass. Needs no package beyond Python itself.
"""
import argparse
import array
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOSS_TOLERANCE = 2e-5
GRADIENT_TOLERANCE = 2e-5
ZERO_GRADIENT_TOLERANCE = 5e-7
NORM_TOLERANCE = {"resnet10": 1e-2}


class Tensors:
    """A safetensors file, read lazily as flat arrays of floats."""

    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        (length,) = struct.unpack("<Q", self.data[:8])
        self.start = 8 + length
        self.header = {k: v for k, v in json.loads(self.data[8:8 + length]).items() if k != "__metadata__"}

    def names(self):
        return list(self.header)

    def floats(self, name):
        entry = self.header[name]
        values = array.array({"F32": "f", "F64": "d"}[entry["dtype"]])
        begin, end = entry["data_offsets"]
        values.frombytes(self.data[self.start + begin:self.start + end])
        return values


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


def run(command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        tail = (result.stderr or result.stdout).strip().splitlines()[-6:]
        raise RuntimeError(f"{pathlib.Path(command[0]).name} {command[1]} exited {result.returncode}: " + " | ".join(tail))
    return result.stdout


class Check:
    """One model: compiles, runs, compares; `worst` collects each quantity's largest fraction of its bound."""

    def __init__(self, folder, name, options, scratch):
        self.folder, self.name, self.options, self.scratch = folder, name, options, scratch
        self.record = json.loads((folder / f"{name}.json").read_text())
        self.batches = Tensors(folder / f"{name}.safetensors")
        self.worst, self.failures = {}, []

    def bound(self, quantity, label, difference, allowed):
        fraction = difference / allowed if allowed > 0 else (0.0 if difference == 0 else math.inf)
        if not math.isfinite(difference):
            fraction = math.inf
        self.worst[quantity] = max(self.worst.get(quantity, 0.0), fraction)
        if not fraction <= 1:
            self.failures.append(f"{quantity} {label}: off by {difference:.3g}, allowed {allowed:.3g}")

    def tool(self, name):
        return pathlib.Path(self.options.bin) / name

    def compile(self, kind, flags):
        artifact = self.scratch / f"{self.name}.{kind}.plim"
        command = [self.tool("plimsoll-compile"), self.folder / f"{self.name}.onnx", "-q", "-o", artifact, "--precision", self.options.precision, *flags]
        for dim, size in self.record.get("bind", {}).items():
            command += ["--bind", f"{dim}={size}"]
        if self.options.budget:
            command += ["--budget", self.options.budget]
        if self.options.chunks:
            command += ["--chunks", self.options.chunks]
        run(command)
        return artifact

    def data(self, rotate=True):
        source = self.folder / f"{self.name}.safetensors"
        flags = []
        for port in self.record["inputs"]:
            flags += ["--data", f"{port}=safetensors({source},key=batch{'{i}' if rotate else '0'}.{port})"]
        return flags

    def train(self, kind, artifact):
        metrics = self.scratch / f"{self.name}.{kind}.jsonl"
        weights = self.scratch / f"{self.name}.{kind}.safetensors"
        metrics.unlink(missing_ok=True)
        run([self.tool("plimsoll-run"), "train", artifact, *self.data(), "--no-shuffle", "--steps", self.record["steps"], "--lr", self.record[kind]["lr"],
             "--log-every", 1, "--metrics", metrics, "--export-weights", weights])
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        losses = [line["loss"] for line in lines if "loss" in line and "step" in line]
        expected, noise = self.record[kind]["loss"], self.record[kind].get("loss_noise") or self.record["sgd"]["loss_noise"]
        if len(losses) != len(expected):
            self.failures.append(f"{kind}: {len(losses)} losses in {metrics.name}, expected {len(expected)}")
        for step, (got, want, wobble) in enumerate(zip(losses, expected, noise)):
            self.bound(f"{kind} loss", f"step {step}", abs(got - want), LOSS_TOLERANCE * abs(want) + 10 * wobble)
        return weights

    @staticmethod
    def match(expected, found, prefix=""):
        """Pairs recorded names with tensors. A tied weight is stored once, under whichever of its names the export kept: names
        without a tensor go to the unclaimed tensor whose norm is nearest (the bound then decides)."""
        pairs = {name: prefix + name for name in expected if prefix + name in found.header}
        spare = {key: norm(found.floats(key)) for key in found.names()
                 if key.startswith(prefix) and key not in pairs.values() and found.header[key]["dtype"] in ("F32", "F64")}
        for name in expected:
            if name not in pairs and spare:
                pairs[name] = min(spare, key=lambda key: abs(spare[key] - expected[name]))
                del spare[pairs[name]]
        return pairs

    def gradients(self, artifact):
        output = self.scratch / f"{self.name}.gradients.safetensors"
        run([self.tool("plimsoll-run"), "forward", artifact, *self.data(rotate=False), "--entry", "gradients", "--output", output])
        found = Tensors(output)
        expected = self.record["grad_l2"]
        overall = math.sqrt(math.fsum(value * value for value in expected.values()))
        pairs = self.match(expected, found, "grad.")
        for name, want in expected.items():
            if name not in pairs:
                self.failures.append(f"gradient {name}: missing")
                continue
            got = found.floats(pairs[name])
            allowed = GRADIENT_TOLERANCE * want + ZERO_GRADIENT_TOLERANCE * overall
            self.bound("gradient", f"norm of {name}", abs(norm(got) - want), allowed)
            if f"grad0.{name}" in self.batches.header:
                exact = self.batches.floats(f"grad0.{name}")
                self.bound("gradient", name, norm(a - b for a, b in zip(got, exact)) if len(got) == len(exact) else math.inf, allowed)

    def norms(self, weights):
        found = Tensors(weights)
        tolerance = NORM_TOLERANCE.get(self.name, 1e-4)
        parameters = self.record["sgd"]["param_l2"]
        buffers = {name: want for name, want in self.record["sgd"]["buffer_l2"].items() if name.endswith(("running_mean", "running_var"))}
        pairs = self.match({**buffers, **parameters}, found)
        for name, want in {**buffers, **parameters}.items():
            if name not in pairs:
                self.failures.append(f"norm of {name}: missing from the exported weights")
                continue
            self.bound("norms", name, abs(norm(found.floats(pairs[name])) - want), tolerance * max(want, 1e-3))

    def evaluate(self, artifact):
        report = json.loads(run([self.tool("plimsoll-run"), "eval", artifact, *self.data(rotate=False), "--batches", 1, "--json"]))
        want = self.record["eval_loss_step0"]
        self.bound("eval loss", "", abs(report["loss"] - want), LOSS_TOLERANCE * abs(want))

    def all(self):
        adam = self.record["adamw"]
        sgd = self.compile("sgd", ["--optimizer", "sgd", "--momentum", self.record["sgd"]["momentum"], "--gradients-entry"])
        self.gradients(sgd)
        self.evaluate(sgd)
        self.norms(self.train("sgd", sgd))
        flags = ["--optimizer", "adamw", "--beta1", adam["betas"][0], "--beta2", adam["betas"][1], "--eps", adam["eps"], "--weight-decay", adam["weight_decay"]]
        self.train("adamw", self.compile("adamw", flags))


def check(folder, name, options, scratch):
    """One line for the model; True when everything is within its bound."""
    try:
        model = Check(folder, name, options, scratch)
        model.all()
        failures, worst = model.failures, model.worst
    except (RuntimeError, KeyError, OSError, ValueError) as error:
        failures, worst = [f"{type(error).__name__}: {error}"], {}
    summary = ", ".join(f"{quantity} {fraction:.2f}" for quantity, fraction in worst.items())
    print(f"{'ok  ' if not failures else 'FAIL'} {name:<12} fractions of the bounds: {summary}", flush=True)
    for failure in failures[:8]:
        print(f"       {failure}")
    if len(failures) > 8:
        print(f"       and {len(failures) - 8} more")
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--budget")
    parser.add_argument("--chunks", help="pieces in which losses over a vocabulary are computed")
    parser.add_argument("--target", default="cpu", choices=["cpu"])
    parser.add_argument("--bin", default=str(HERE.parent.parent / "build" / "bin"))
    parser.add_argument("--keep", type=pathlib.Path, help="folder for artifacts and outputs (default: temporary)")
    options = parser.parse_args()
    names = sorted(path.stem for path in options.folder.glob("*.onnx") if path.with_suffix(".json").exists())
    names = [name for name in names if not options.only or name in options.only]
    if not names:
        print(f"no oracles in {options.folder}; expected NAME.onnx, NAME.json and NAME.safetensors", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.keep or pathlib.Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        passed = sum(check(options.folder, name, options, scratch) for name in names)
    print(f"{passed} passed, {len(names) - passed} failed")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
