#!/usr/bin/env python3
"""Case 48: tied and dead parameters counted, decayed or saved twice (Megatron#7577, torchtitan#3225).

The small GPT's head is its embedding: one buffer, one optimizer state, one saved tensor. A matrix that the loss does not need is
reported, not trained and not decayed.
"""
import sys

import issue_test as t


def tied(suite):
    artifact = t.compile_model(t.GPT, suite.scratch / "gpt.plim", "--bind", "batch=2", "--bind", "seq=16", "--threads", 2, "--optimizer", "adamw")
    found = t.variables(artifact)
    vocabulary, width = 64, 128
    matrices = [name for name, variable in found.items() if variable["kind"] == "parameter" and variable["shape"] == [vocabulary, width]]
    suite.equal(len(matrices), 1, "48: one variable of the vocabulary's shape")
    name = matrices[0]
    suite.check(name in ("wte.weight", "lm_head.weight"), f"48: it is the embedding and head, under one of their names ({name})")
    states = sorted(key for key, variable in found.items() if variable["owner"] == name)
    suite.equal(states, [f"{name}.exp_avg", f"{name}.exp_avg_sq"], "48: one pair of moments")
    tokens = t.write_tokens(suite.scratch / "tokens.bin", 2000, vocabulary)
    data = {"ids": f"tokens({tokens},u16)", "labels": f"tokens({tokens},u16,shift=1)"}
    _, state = t.train_state(suite, artifact, data, 2)
    _, exported = t.train_weights(suite, artifact, data, 2)
    for what, tensors in (("the checkpoint", state), ("the exported weights", exported)):
        suite.equal([key for key, value in tensors.items() if key and value[1] == [vocabulary, width] and "exp_avg" not in key], [name], f"48: {what} hold it once")


def dead(suite):
    """AdamW with lr 0.5 and decay 0.5 shrinks a parameter by a quarter a step: the unused one must not move at all."""
    model = t.write_model(
        suite.scratch / "dead.onnx",
        [t.node("MatMul", ["x", "used"], ["z"]), t.node("MatMul", ["x", "unused"], ["nowhere"]), t.node("Mul", ["z", "z"], ["s"]), t.node("ReduceMean", ["s"], ["loss"], keepdims=0)],
        [t.port("x", "F32", [2, 3])], [t.port("loss", "F32", []), t.port("nowhere", "F32", [2, 2])],
        [t.tensor("used", "F32", [3, 2], [1.0] * 6), t.tensor("unused", "F32", [3, 2], [1.0] * 6), t.tensor("orphan", "F32", [5], [1.0] * 5)])
    output = suite.expect(0, ["dead-parameter: 'unused'", "dead-parameter: 'orphan'"], "plimsoll-compile", model, "-o", suite.scratch / "dead.plim", "--optimizer", "adamw", "--weight-decay", 0.5)
    suite.check("'used'" not in output.replace("'unused'", ""), "48: the parameter that is used is not reported")
    found = t.variables(suite.scratch / "dead.plim")
    suite.equal([name for name, variable in found.items() if variable["trainable"]], ["used"], "48: only the used one is trained")
    suite.equal(sorted(variable["owner"] for variable in found.values() if variable["kind"] == "optimizer_state"), ["used", "used"], "48: only it has moments")
    _, weights = t.train_weights(suite, suite.scratch / "dead.plim", {"x": "constant(1)"}, 3, "--lr", 0.5)
    suite.check(t.values(weights["used"]) != [1.0] * 6, "48: it moves")
    for name in ("unused", "orphan"):
        suite.check(name not in weights or set(t.values(weights[name])) == {1.0}, f"48: '{name}' is not decayed")


def main():
    suite = t.Suite("case 48")
    tied(suite)
    dead(suite)
    return suite.finish()


sys.exit(main())
