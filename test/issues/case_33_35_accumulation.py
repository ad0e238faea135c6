#!/usr/bin/env python3
"""Cases 33 and 35: micro-batches with different numbers of tokens (transformers#34191, composer#3273, pytorch#70348).

The loss of a window is the mean over all of its tokens that count, not the mean of the micro-batches' means, and its gradient is that
of the unsplit batch. A micro-batch without any token adds nothing; a window without any token has loss 0 and updates nothing.
"""
import math
import sys

import issue_test as t


def inputs(losses):
    """Scores (z, 0) for which the cross entropy of class 0, log(1 + exp(-z)), is each of `losses`."""
    return [[-math.log(math.exp(loss) - 1), 0.0] for loss in losses]


def batch(losses):
    """A micro-batch of four rows: one per loss with label 0, the rest masked (and large, so that using them would show)."""
    rows = inputs(losses) + [[50.0, -50.0]] * (4 - len(losses))
    return rows, [0] * len(losses) + [-100] * (4 - len(losses))


def gradient(tokens):
    """d(mean token loss)/dW at W = identity: the mean over tokens of x^T (softmax(x) - onehot(0)), in double."""
    total = [0.0] * 4
    for x in tokens:
        p = 1 / (1 + math.exp(x[1] - x[0]))
        for row in range(2):
            total[2 * row] += x[row] * (p - 1) / len(tokens)
            total[2 * row + 1] += x[row] * (1 - p) / len(tokens)
    return total


def write_batches(suite, name, batches):
    tensors = {}
    for index, (rows, labels) in enumerate(batches):
        tensors[f"batch{index}.x"] = ("F32", [len(rows), 2], [value for row in rows for value in row])
        tensors[f"batch{index}.y"] = ("I64", [len(rows)], labels)
    path = t.write_safetensors(suite.scratch / f"{name}-data.safetensors", tensors)
    return {port: f"safetensors({path},key=batch{{i}}.{port})" for port in ("x", "y")}


def model(suite, rows):
    return t.write_model(
        suite.scratch / f"head{rows}.onnx",
        [t.node("MatMul", ["x", "w"], ["z"]), t.node("SoftmaxCrossEntropyLoss", ["z", "y"], ["loss"], reduction="mean", ignore_index=-100)],
        [t.port("x", "F32", [rows, 2]), t.port("y", "I64", [rows])], [t.port("loss", "F32", [])], [t.tensor("w", "F32", [2, 2], [1.0, 0.0, 0.0, 1.0])])


def one_step(suite, name, rows, batches, *flags):
    """Plain SGD with lr 1 from W = identity: the metrics line and the gradient, identity - W."""
    artifact = t.compile_model(model(suite, rows), suite.scratch / f"{name}.plim", "--optimizer", "sgd", *flags)
    lines, weights = t.train_weights(suite, artifact, write_batches(suite, name, batches), 1, "--lr", 1)
    return lines[0], [a - b for a, b in zip([1, 0, 0, 1], t.values(weights["w"]))]


def uneven(suite):
    """Case 33. Token losses [4] and [1, 1, 2]: (4 + 1 + 1 + 2) / 4 = 2; the mean of means would be (4 + 4/3) / 2 = 2.6667."""
    split = [batch([4.0]), batch([1.0, 1.0, 2.0])]
    line, found = one_step(suite, "split", 4, split, "--accumulation", 2)
    whole = [(split[0][0] + split[1][0], split[0][1] + split[1][1])]
    line_whole, found_whole = one_step(suite, "whole", 8, whole)
    expected = gradient(inputs([4.0, 1.0, 1.0, 2.0]))
    # f32: four terms of size up to 4, a few roundings of 2^-24 each.
    suite.near([line["loss"], line_whole["loss"]], [2.0, 2.0], 2e-6, "33: the loss is 2, split and unsplit")
    suite.equal((line["counted_tokens"], line_whole["counted_tokens"]), (4, 4), "33: four tokens counted")
    suite.near(found, expected, 1e-6, "33: the gradient of two micro-batches is the token mean's")
    suite.near(found_whole, expected, 1e-6, "33: and so is that of the unsplit batch")
    reverse, found_reverse = one_step(suite, "reverse", 4, split[::-1], "--accumulation", 2)
    suite.near([reverse["loss"], *found_reverse], [2.0, *expected], 2e-6, "33: the order of the micro-batches does not matter")


def masked_micro_batch(suite):
    """Case 35. B is all -100: the window is A alone, (1 + 3) / 2 = 2, wherever B stands."""
    a, b = batch([1.0, 3.0]), batch([])
    for name, batches in (("last", [a, b]), ("first", [b, a])):
        line, found = one_step(suite, f"masked-{name}", 4, batches, "--accumulation", 2)
        suite.near([line["loss"], *found], [2.0, *gradient(inputs([1.0, 3.0]))], 2e-6, f"35: a fully masked micro-batch, {name}, adds nothing")
        suite.check("skipped" not in line and line["counted_tokens"] == 2, f"35: the window with the masked micro-batch {name} is not skipped", line)


def masked_window(suite):
    """Case 35. A window without tokens after one with: loss 0, `skipped` 1, and nothing moves, although momentum, Adam's first moment and
    weight decay would all move the weights. Then training goes on as if it had not been there."""
    a, b, c = batch([1.0, 3.0]), batch([]), batch([0.5, 2.0, 1.5])
    for accumulation in (1, 2):
        for optimizer in (["sgd", "--momentum", 0.9, "--weight-decay", 0.1], ["adam", "--weight-decay", 0.1], ["adamw", "--weight-decay", 0.1, "--clip-norm", 0.5]):
            name = f"{optimizer[0]} accumulation {accumulation}"
            flags = ["--optimizer", *optimizer, "--accumulation", accumulation]
            artifact = t.compile_model(model(suite, 4), suite.scratch / "window.plim", *flags)
            repeat = lambda *windows: write_batches(suite, "window", [part for window in windows for part in [window] * accumulation])
            _, before = t.train_state(suite, artifact, repeat(a), 1)
            lines, after = t.train_state(suite, artifact, repeat(a, b), 2)
            suite.equal((lines[1]["loss"], lines[1].get("skipped"), lines[1]["counted_tokens"]), (0, 1, 0), f"35: {name}: loss 0, skipped, no token counted")
            suite.equal(t.changed(before, after), [], f"35: {name}: every state tensor is bitwise unchanged")
            evaluated = t.must("plimsoll-run", "eval", artifact, *t.data_flags(repeat(b)), "--json")
            suite.equal(t.json.loads(evaluated)["loss"], 0, f"35: {name}: evaluating it gives 0, not NaN")
            _, through = t.train_state(suite, artifact, repeat(a, b, c), 3)
            _, without = t.train_state(suite, artifact, repeat(a, c), 2)
            suite.equal(t.changed(through, without), [], f"35: {name}: training goes on as if the window had not been there")
            suite.check(t.changed(before, through) != [], f"35: {name}: and the next window does update")


def main():
    suite = t.Suite("cases 33 and 35")
    uneven(suite)
    masked_micro_batch(suite)
    masked_window(suite)
    return suite.finish()


sys.exit(main())
