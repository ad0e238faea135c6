#!/usr/bin/env python3
"""Cases 10 and 11: memory that is reused or written twice (tinygrad#16571, xla#38597).

10: a planner gave away a buffer that a later read still needed, so that replays of one step differed or gradients were zero. 11: the two
contributions to a tied embedding's gradient, one scattered and one from a matmul, were written over each other.
"""
import math
import sys

import issue_test as t


def convolution(suite):
    """NHWC pixels -> NCHW copy -> convolution -> pooled scores -> a loss per example, then their mean."""
    weights = [math.sin(i) / 3 for i in range(4 * 3 * 9)]
    return t.write_model(
        suite.scratch / "conv.onnx",
        [t.node("Transpose", ["x"], ["nchw"], perm=[0, 3, 1, 2]), t.node("Conv", ["nchw", "k"], ["c"], pads=[1, 1, 1, 1]), t.node("Relu", ["c"], ["r"]),
         t.node("GlobalAveragePool", ["r"], ["p"]), t.node("Flatten", ["p"], ["z"]),
         t.node("SoftmaxCrossEntropyLoss", ["z", "y"], ["each"], reduction="none"), t.node("ReduceMean", ["each"], ["loss"], keepdims=0)],
        [t.port("x", "F32", [2, 5, 5, 3]), t.port("y", "I64", [2])], [t.port("loss", "F32", []), t.port("each", "F32", [2])],
        [t.tensor("k", "F32", [4, 3, 3, 3], weights)])


def replays(suite):
    x = [math.cos(i) for i in range(4 * 75)]
    path = t.write_safetensors(suite.scratch / "images.safetensors", {
        "batch0.x": ("F32", [2, 5, 5, 3], x[:150]), "batch1.x": ("F32", [2, 5, 5, 3], x[150:]), "batch0.y": ("I64", [2], [1, 3]), "batch1.y": ("I64", [2], [0, 2])})
    data = {name: f"safetensors({path},key=batch{{i}}.{name})" for name in ("x", "y")}
    artifact = t.compile_model(convolution(suite), suite.scratch / "conv.plim", "--optimizer", "sgd", "--gradients-entry")
    found = t.gradients(suite, artifact, data, "--batches", 6)
    for batch in (0, 1):
        first = found[f"grad.k.batch{batch}"]
        suite.check(any(first) and all(map(math.isfinite, first)), f"10: the gradient of batch {batch} is finite and not zero")
        suite.check(found[f"grad.k.batch{batch + 2}"] == first and found[f"grad.k.batch{batch + 4}"] == first, f"10: replays of batch {batch} are bitwise equal to its first run")
    # Two backward passes in one step, many times over; with lr 0 nothing may change.
    accumulating = t.compile_model(convolution(suite), suite.scratch / "two.plim", "--optimizer", "sgd", "--accumulation", 2)
    lines = t.train(accumulating, data, 6, "--lr", 0, metrics=suite.scratch / "metrics.jsonl")
    suite.equal(len({line["loss"] for line in lines}), 1, "10: six windows of two backward passes give one and the same loss")
    _, weights = t.train_weights(suite, accumulating, data, 1, "--lr", 1)
    mean = [(a + b) / 2 for a, b in zip(found["grad.k.batch0"], found["grad.k.batch1"])]
    start = t.values(t.read_safetensors(suite.scratch / "two.safetensors")["k"])
    # One f32 subtraction of numbers below 1/2 and a mean of two: a few 2^-25.
    suite.near([a - b for a, b in zip(start, t.values(weights["k"]))], mean, 2e-7, "10: their update is the mean of both gradients")
    reference = t.gradients(suite, artifact, data, "--reference")
    suite.near(found["grad.k.batch0"], reference["grad.k"], 1e-6, "10: and it is the reference kernels' gradient")


W = [[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]]


def tied(suite, variant):
    """L = W[i] . W[j] for one i and j: with a matmul by the whole of W transposed, or with a second look-up."""
    if variant == "scatter and matmul":
        nodes = [t.node("Gather", ["W", "i"], ["wi"]), t.node("Transpose", ["W"], ["wt"], perm=[1, 0]), t.node("MatMul", ["wi", "wt"], ["scores"]),
                 t.node("Unsqueeze", ["j", "axes"], ["column"]), t.node("GatherElements", ["scores", "column"], ["picked"], axis=1)]
    else:
        nodes = [t.node("Gather", ["W", "i"], ["wi"]), t.node("Gather", ["W", "j"], ["wj"]), t.node("Mul", ["wi", "wj"], ["picked"])]
    nodes.append(t.node("ReduceSum", ["picked"], ["loss"], keepdims=0))
    initializers = [t.tensor("W", "F32", [3, 2], [value for row in W for value in row]), t.tensor("axes", "I64", [1], [1])]
    return t.write_model(suite.scratch / "tied.onnx", nodes, [t.port("i", "I64", [1]), t.port("j", "I64", [1])], [t.port("loss", "F32", [])], initializers)


def tied_gradient(suite):
    """Whole numbers: every product and sum is exact in f32. i=0, j=2: dW0 = W2, dW2 = W0, dW1 = 0; i=j=1: dW1 = 2 W1 (wrong there: W1)."""
    expected = {(0, 2): W[2] + [0, 0] + W[0], (1, 1): [0, 0, 2 * W[1][0], 2 * W[1][1], 0, 0]}
    for variant in ("scatter and matmul", "two look-ups"):
        model = tied(suite, variant)
        artifact = t.compile_model(model, suite.scratch / "tied.plim", "--optimizer", "sgd", "--gradients-entry")
        for (i, j), gradient in expected.items():
            data = {"i": f"constant({i})", "j": f"constant({j})"}
            suite.equal(t.gradients(suite, artifact, data)["grad.W"], gradient, f"11: {variant}, i={i} j={j}: the gradient is exact")
            # The same inside the step: one update with lr 1/4, exact again.
            _, weights = t.train_weights(suite, artifact, data, 1, "--lr", 0.25)
            flat = [value for row in W for value in row]
            suite.equal(t.values(weights["W"]), [w - g / 4 for w, g in zip(flat, gradient)], f"11: {variant}, i={i} j={j}: and so is the update")


def main():
    suite = t.Suite("cases 10 and 11")
    replays(suite)
    tied_gradient(suite)
    return suite.finish()


sys.exit(main())
