#!/usr/bin/env python3
"""Case 47: a resumed run differs from one that was never stopped (llm.c#522, OpenTau#185, torchtitan#1213): random state, Adam's t, an
off-by-one step, the data cursor. Ten steps straight against four, a new process, and six more, with dropout, Adam, two micro-batches a
step, shuffled data and a schedule: everything is equal bit by bit.
"""
import sys

import issue_test as t
from training_step import resumes, run_to


def with_dropout(suite, ratio):
    """A two-layer classifier with dropout: x [4, 8] -> 16 -> dropout -> 4."""
    noise = lambda seed, count: [((i * 2654435761 + seed * 97) % 1000) / 1000 - 0.5 for i in range(count)]
    return t.write_model(
        suite.scratch / "dropout.onnx",
        [t.node("Gemm", ["x", "w1", "b1"], ["h"]), t.node("Relu", ["h"], ["r"]), t.node("Dropout", ["r", "ratio", "training"], ["d"]),
         t.node("Gemm", ["d", "w2", "b2"], ["z"]), t.node("SoftmaxCrossEntropyLoss", ["z", "y"], ["loss"], reduction="mean")],
        [t.port("x", "F32", [4, 8]), t.port("y", "I64", [4])], [t.port("loss", "F32", [])],
        [t.tensor("w1", "F32", [8, 16], noise(1, 128)), t.tensor("b1", "F32", [16], [0.1] * 16), t.tensor("w2", "F32", [16, 4], noise(2, 64)),
         t.tensor("b2", "F32", [4], [0.0] * 4), t.tensor("ratio", "F32", [], [ratio]), t.tensor("training", "BOOL", [], [1])])


def main():
    suite = t.Suite("case 47")
    x = [((i * 48271) % 1009) / 1009 for i in range(24 * 8)]
    samples = t.write_safetensors(suite.scratch / "samples.safetensors", {"x": ("F32", [24, 8], x), "y": ("I64", [24], [i * 7 % 4 for i in range(24)])})
    data = {name: f"safetensors({samples},key={name})" for name in ("x", "y")}
    flags = ["--optimizer", "adam", "--accumulation", 2]
    artifact = t.compile_model(with_dropout(suite, 0.5), suite.scratch / "dropout.plim", *flags)
    whole, state = resumes(suite, "dropout", artifact, data)
    # Ten updates of two batches each: Adam counts updates, not batches, and the cursor stands at 80 samples = 3 epochs of 24 and 8.
    suite.equal(t.values(state["optimizer.step"]), [10], "47: Adam's t is 10 after 20 micro-batches")
    cursor = t.json.loads(state[None]["plimsoll.checkpoint"])
    suite.equal((cursor["step"], cursor["epoch"], cursor["position"]), (10, 3, 8), "47: the data cursor")
    off = t.compile_model(with_dropout(suite, 0.0), suite.scratch / "nodropout.plim", *flags)
    plain, _, _ = run_to(suite, off, data, 10, "nodropout")
    suite.check(plain[0]["loss"] != whole[0]["loss"], "47: it does drop (the loss differs from the model without it)")
    other, _, _ = run_to(suite, artifact, data, 2, "dropout-reseeded", "--no-shuffle", seed=6)
    same, _, _ = run_to(suite, artifact, data, 2, "dropout-unshuffled", "--no-shuffle")
    suite.check(other[0]["loss"] != same[0]["loss"], "47: another seed draws other masks")
    return suite.finish()


sys.exit(main())
