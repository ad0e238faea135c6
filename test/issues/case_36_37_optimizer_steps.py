#!/usr/bin/env python3
"""Cases 36 and 37: what moves once per window, not once per micro-batch (GaLore#78, verl#1295, accelerate#963).

36: Adam over four micro-batches takes one step, t = 1, with the moments of the unsplit batch. (Plimsoll never runs an optimizer inside
`accumulate`; the update is a part of `apply` alone.) 37: the learning-rate schedule and the data move accordingly.
"""
import sys

import issue_test as t


def classifier(suite, rows):
    weights = [((i * 37) % 41) / 41 - 0.5 for i in range(12)]
    return t.write_model(
        suite.scratch / f"classifier{rows}.onnx",
        [t.node("Gemm", ["x", "w", "b"], ["z"]), t.node("SoftmaxCrossEntropyLoss", ["z", "y"], ["loss"], reduction="mean")],
        [t.port("x", "F32", [rows, 4]), t.port("y", "I64", [rows])], [t.port("loss", "F32", [])],
        [t.tensor("w", "F32", [4, 3], weights), t.tensor("b", "F32", [3], [0.1, 0.0, -0.1])])


def samples(suite, count):
    x = [((i * 71) % 53) / 53 - 0.4 for i in range(count * 4)]
    path = t.write_safetensors(suite.scratch / "samples.safetensors", {"x": ("F32", [count, 4], x), "y": ("I64", [count], [i % 3 for i in range(count)])})
    return {name: f"safetensors({path},key={name})" for name in ("x", "y")}


def adam(suite, data):
    """Eight samples at once, and as four micro-batches of two: equal up to the rounding of sums of a few f32 terms, 1e-5 of
    the largest moment; quarter losses would be off by 75 %."""
    whole = t.compile_model(classifier(suite, 8), suite.scratch / "whole.plim", "--optimizer", "adam")
    parts = t.compile_model(classifier(suite, 2), suite.scratch / "parts.plim", "--optimizer", "adam", "--accumulation", 4)
    lines, state = t.train_state(suite, whole, data, 1, "--no-shuffle")
    lines_parts, state_parts = t.train_state(suite, parts, data, 1, "--no-shuffle")
    suite.equal((t.values(state["optimizer.step"]), t.values(state_parts["optimizer.step"])), ([1], [1]), "36: Adam's t is 1 after one window of four")
    suite.near([lines_parts[0]["loss"]], [lines[0]["loss"]], 1e-6, "36: the loss is that of the unsplit batch")
    for name in ("w.exp_avg", "b.exp_avg", "w.exp_avg_sq", "b.exp_avg_sq"):
        expected = t.values(state[name])
        suite.check(any(expected), f"36: {name} is not all zero")
        suite.near(t.values(state_parts[name]), expected, 1e-5 * max(map(abs, expected)), f"36: {name} is that of the unsplit batch")
    # The first update is lr * g / (|g| + eps) = 0.1 in size whatever g is, so quarter losses would not show here; the moments above do.
    suite.near(t.values(state_parts["w"]), t.values(state["w"]), 1e-5, "36: the update is that of the unsplit batch")


def schedule(suite, data):
    """Accumulation 4, eight micro-steps: two optimizer steps, so schedule indices 0 and 1 (next 2): warm-up over 4 steps to 0.4 gives
    0.1 and 0.2; moving on every micro-step would be past the warm-up at 0.4."""
    artifact = t.compile_model(classifier(suite, 2), suite.scratch / "schedule.plim", "--optimizer", "sgd", "--accumulation", 4)
    out = suite.scratch / "schedule"
    t.must("plimsoll-run", "train", artifact, *t.data_flags(data), "--steps", 2, "--lr", 0.4, "--warmup", 4, "--schedule", "linear", "--decay-steps", 100,
           "--no-shuffle", "--out", out)
    lines = t.read_metrics(out / "metrics.jsonl")
    suite.near([line["lr"] for line in lines], [0.1, 0.2], 1e-7, "37: two steps of the schedule after eight micro-batches")
    state = t.read_safetensors(out / "step-00000002.safetensors")
    cursor = t.json.loads(state[None]["plimsoll.checkpoint"])
    # Eight micro-batches of two samples out of eight: two epochs.
    suite.equal((cursor["step"], cursor["epoch"], cursor["position"]), (2, 2, 0), "37: step 2, two epochs of data read")
    suite.equal(t.values(state["optimizer.step"]), [2], "37: the step counter is 2")


def main():
    suite = t.Suite("cases 36 and 37")
    data = samples(suite, 8)
    adam(suite, data)
    schedule(suite, data)
    return suite.finish()


sys.exit(main())
