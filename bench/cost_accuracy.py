#!/usr/bin/env python3
"""Compares what the cost model predicts with what commands take here.

usage: cost_accuracy.py BUILD MODEL.onnx [MODEL.onnx ...] [--threads N] [--runs N] [--kinds]

Compiles each model (AdamW, no budget), runs its training step with bench-step-times and prints predicted and measured seconds of the
step; with --kinds also by kind of command. The numbers are a report: a loaded machine makes them worse, and no test depends on them.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile


def predicted_costs(build, model, threads, folder):
    """(name, seconds) of every step of the training step, in order."""
    subprocess.run([build / "bin/plimsoll-compile", model, "-q", "--optimizer=adamw", f"--threads={threads}",
                    f"--emit-problem={folder}"], check=True)
    steps = []
    for line in (folder / "train_step.problem").read_text().splitlines():
        if match := re.match(r'step "(?:\d+\.)?([^"]*)".* cost ([^ ]+)', line):
            steps.append((match[1], float(match[2])))
    return steps


def measured_times(build, model, threads, folder, runs):
    artifact = folder / "step.plim"
    subprocess.run([build / "bin/plimsoll-compile", model, "-q", "--optimizer=adamw", f"--threads={threads}", "-o", artifact], check=True)
    lines = subprocess.run([build / "bin/bench-step-times", artifact, "train_step", str(runs)], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    return [(name, float(seconds)) for _, name, seconds in (line.split("\t") for line in lines)]


def report(model, predicted, measured, kinds):
    if [name for name, _ in predicted] != [name for name, _ in measured]:
        sys.exit(f"{model}: the problem's steps are not the artifact's commands")
    promise, truth = (sum(seconds for _, seconds in part) for part in (predicted, measured))
    misplaced = sum(abs(p - m) for (_, p), (_, m) in zip(predicted, measured))
    print(f"{pathlib.Path(model).stem:14} {len(predicted):5} commands  predicted {promise * 1e3:10.2f} ms  measured {truth * 1e3:10.2f} ms"
          f"  ratio {promise / truth:5.2f}  sum of |differences| {100 * misplaced / truth:4.0f} %")
    if not kinds:
        return
    table = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for (name, p), (_, m) in zip(predicted, measured):
        row = table[name]
        row[0], row[1], row[2] = row[0] + 1, row[1] + p, row[2] + m
    for name, (count, p, m) in sorted(table.items(), key=lambda item: -item[1][2])[:kinds]:
        print(f"    {name:22} {count:5} x  predicted {p * 1e3:10.3f} ms  measured {m * 1e3:10.3f} ms  ratio {p / max(m, 1e-12):5.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kinds", type=int, nargs="?", const=20, default=0, metavar="ROWS")
    options = parser.parse_args()
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            predicted = predicted_costs(options.build, model, options.threads, folder)
            report(model, predicted, measured_times(options.build, model, options.threads, folder, options.runs), options.kinds)


if __name__ == "__main__":
    main()
