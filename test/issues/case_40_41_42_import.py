#!/usr/bin/env python3
"""Cases 40, 41 and 42: import problems that stopped others at the first node or passed silently (onnxruntime#16866, #10517, #22465,
#18344, #16597).

A model trains, or one report lists everything that stands in the way, and nothing is written. Only float initializers that the loss
depends on are trained: no running statistics, no shapes.
"""
import math
import sys

import issue_test as t


def numbers(count, scale=0.5):
    return [scale * math.sin(1 + i) for i in range(count)]


def pooled_head(at, channels):
    return [t.node("GlobalAveragePool", [at], ["pooled"]), t.node("Flatten", ["pooled"], ["flat"]), t.node("MatMul", ["flat", "head"], ["z"]),
            t.node("SoftmaxCrossEntropyLoss", ["z", "y"], ["loss"], reduction="mean")], [t.tensor("head", "F32", [channels, 3], numbers(channels * 3))]


def image_model(suite, name, nodes, initializers, channels=2, opset=20):
    head, weights = pooled_head("features", channels)
    return t.write_model(suite.scratch / name, [*nodes, *head], [t.port("x", "F32", [3, 2, 4, 4]), t.port("y", "I64", [3])], [t.port("loss", "F32", [])],
                         [*initializers, *weights], opset=opset)


def image_data(suite):
    path = t.write_safetensors(suite.scratch / "images-data.safetensors", {"batch0.x": ("F32", [3, 2, 4, 4], numbers(96, 2.0)), "batch0.y": ("I64", [3], [0, 1, 2])})
    return {name: f"safetensors({path},key=batch{{i}}.{name})" for name in ("x", "y")}


def trains(suite, model, what, *flags):
    artifact = t.compile_model(model, suite.scratch / "trains.plim", "--optimizer", "adam", *flags)
    lines = t.train(artifact, image_data(suite), 60, "--lr", 0.02, metrics=suite.scratch / "metrics.jsonl")
    suite.check(lines[-1]["loss"] < 0.9 * lines[0]["loss"], f"{what} trains: loss {lines[0]['loss']:.3f} -> {lines[-1]['loss']:.3f}")
    return artifact


def gradients_that_were_missing(suite):
    """Case 40: Resize upwards (every mode), LayerNormalization that gives only Y."""
    conv = lambda source: t.node("Conv", [source, "k"], ["features"], pads=[1, 1, 1, 1])
    kernel = t.tensor("k", "F32", [2, 2, 3, 3], numbers(36))
    scales = t.tensor("scales", "F32", [4], [1.0, 1.0, 2.0, 2.0])
    for mode in ("nearest", "linear"):
        trains(suite, image_model(suite, "resize.onnx", [t.node("Resize", ["x", "", "scales"], ["up"], mode=mode), conv("up")], [kernel, scales]), f"40: Resize ({mode})")
    norm = t.node("LayerNormalization", ["x", "g", "b"], ["n"], axis=-1)
    trains(suite, image_model(suite, "norm.onnx", [norm, conv("n")], [kernel, t.tensor("g", "F32", [4], [1.0] * 4), t.tensor("b", "F32", [4], [0.0] * 4)]),
           "40: LayerNormalization with only Y")


def one_report(suite):
    """Case 40: two Ifs, a Loop and a foreign operator are all named at once, exit 4, nothing written; --lint says the same."""
    branch = t.subgraph([t.node("Identity", ["x"], ["inner"])], [t.port("inner", "F32", [3, 2, 4, 4])])
    conditional = lambda name, result: t.node("If", ["flag"], [result], name, then_branch=branch, else_branch=branch)
    nodes = [conditional("choose_a", "a"), t.node("Relu", ["a"], ["r"], "fine"), conditional("choose_b", "features"),
             t.node("Unique", ["x"], ["u"], "distinct", sorted=1), t.node("NonZero", ["x"], ["nz"], "where_not_zero")]
    model = image_model(suite, "report.onnx", nodes, [t.tensor("flag", "BOOL", [], [1])])
    named = ["'choose_a' (If)", "'choose_b' (If)", "'distinct' (Unique)", "'where_not_zero' (NonZero)"]
    output = suite.expect(4, named, "plimsoll-compile", model, "-o", suite.scratch / "report.plim")
    suite.check("'fine'" not in output, "40: a node that is supported is not in the report")
    suite.check(not (suite.scratch / "report.plim").exists() and not (suite.scratch / "report.safetensors").exists(), "40: and nothing is written")
    suite.expect(4, named, "plimsoll-compile", model, "--lint")


def old_opset(suite):
    """Case 41: a three-layer perceptron of Gemms trains at opset 13 and is refused by name at opset 10."""
    def model(opset):
        nodes, at = [t.node("Flatten", ["x"], ["h0"])], "h0"
        for layer, (rows, columns) in enumerate([(32, 8), (8, 8), (8, 3)]):
            nodes.append(t.node("Gemm", [at, f"w{layer}", f"b{layer}"], [f"g{layer}"]))
            at = f"g{layer}"
            if layer < 2:
                nodes.append(t.node("Relu", [at], [f"r{layer}"]))
                at = f"r{layer}"
        initializers = [t.tensor(f"w{i}", "F32", [rows, columns], numbers(rows * columns)) for i, (rows, columns) in enumerate([(32, 8), (8, 8), (8, 3)])]
        initializers += [t.tensor(f"b{i}", "F32", [columns], numbers(columns)) for i, columns in enumerate([8, 8, 3])]
        return t.write_model(suite.scratch / f"mlp{opset}.onnx", nodes, [t.port("x", "F32", [3, 2, 4, 4])], [t.port(at, "F32", [3, 3])], initializers, opset=opset)
    artifact = t.compile_model(model(13), suite.scratch / "mlp.plim", "--loss", "cross_entropy", "--optimizer", "adam")
    data = image_data(suite)
    lines = t.train(artifact, {"x": data["x"], "labels": data["y"]}, 40, "--lr", 0.01, metrics=suite.scratch / "metrics.jsonl")
    suite.check(lines[-1]["loss"] < 0.5 * lines[0]["loss"], "41: at opset 13, with the loss added, it trains")
    suite.expect(3, "the model has opset 10, opset >= 13 needed", "plimsoll-compile", model(10), "--loss", "cross_entropy", "-o", suite.scratch / "old.plim")


def residual_block(suite):
    """Case 42: Conv, BatchNorm, a shortcut and an int64 shape among the initializers."""
    statistics = [t.tensor(f"bn.{part}", "F32", [2], [value] * 2) for part, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0))]
    nodes = [t.node("Conv", ["x", "conv.weight"], ["c"], pads=[1, 1, 1, 1]),
             t.node("BatchNormalization", ["c", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["n"], "bn", momentum=0.9),
             t.node("Relu", ["n"], ["r"]), t.node("Add", ["r", "x"], ["sum"]), t.node("Reshape", ["sum", "shape"], ["features"])]
    initializers = [t.tensor("conv.weight", "F32", [2, 2, 3, 3], numbers(36)), *statistics, t.tensor("shape", "I64", [4], [0, 2, 4, 4]),
                    t.tensor("bn.num_batches_tracked", "I64", [], [0])]
    artifact = trains(suite, image_model(suite, "block.onnx", nodes, initializers), "42: a residual block")
    found = t.variables(artifact)
    parameters = sorted(name for name, variable in found.items() if variable["trainable"])
    suite.equal(parameters, ["bn.bias", "bn.weight", "conv.weight", "head"], "42: the trained parameters")
    suite.equal([found[f"bn.running_{part}"]["kind"] for part in ("mean", "var")], ["model_state"] * 2, "42: statistics are state, not parameters")
    owners = sorted({variable["owner"] for variable in found.values() if variable["kind"] == "optimizer_state"})
    suite.equal(owners, parameters, "42: and have no optimizer state")


def main():
    suite = t.Suite("cases 40, 41 and 42")
    gradients_that_were_missing(suite)
    one_report(suite)
    old_opset(suite)
    residual_block(suite)
    return suite.finish()


sys.exit(main())
