#!/usr/bin/env python3
"""Runs ONNX's own operator examples (PyPI `onnx`, onnx.backend.test) through the importer and the reference evaluator.

Usage: check_onnx_nodes.py EVALUATE_ONNX [--only SUBSTRING] [--verbose]
Every example of an operator that the importer claims to know must give the recorded outputs. Examples whose settings are graph
inputs are tried again with all inputs but the first as initializers. Exit 0 when nothing fails, 77 without the `onnx` package.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases
    from safetensors.numpy import load_file, save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

KNOWN = set(
    """Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast CastLike Ceil Celu Clip Concat Constant Conv ConvTranspose Cos
    CumSum DepthToSpace Div Einsum Elu Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool
    GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization MatMul Max MaxPool Mean Min Mish Mod Mul Neg
    NegativeLogLikelihoodLoss Not OneHot Or PRelu Pad Pow RMSNormalization Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize RotaryEmbedding Round
    ScatterND Selu Shape Shrink Sigmoid Sign Sin Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split
    Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile Transpose Trilu Unsqueeze Where Xor Attention""".split())


# x mod infinity: x - y*floor(x/y) is NaN there, as in the graph dialect's arithmetic; no model trains through it.
EXCEPTIONS = {"test_mod_float_edge_cases_fmod_0_float16", "test_mod_float_edge_cases_fmod_0_float32", "test_mod_float_edge_cases_fmod_0_float64"}


def as_initializers(model, inputs):
    """The model with every input but the first made an initializer."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value, array in list(zip(model.graph.input, inputs))[1:]:
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
    del copy.graph.input[1:]
    return copy, inputs[:1]


def evaluate(tool, folder, model, inputs):
    path, given, found = (os.path.join(folder, name) for name in ("m.onnx", "in.safetensors", "out.safetensors"))
    onnx.save(model, path)
    save_file({v.name: np.array(a, order="C") for v, a in zip(model.graph.input, inputs)}, given)
    inference = [] if any(a.name == "training_mode" and a.i for n in model.graph.node for a in n.attribute) else ["--eval-batchnorm"]
    run = subprocess.run([tool, path, given, found, "--no-loss", *inference], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stderr, load_file(found) if run.returncode == 0 else None


def matches(found, expected, rtol):
    if found.shape != expected.shape and found.size != expected.size:
        return False
    if expected.dtype.kind in "fV":
        return np.allclose(found.astype(np.float64).reshape(expected.shape), expected.astype(np.float64), rtol=rtol, atol=1e-3 if expected.dtype.itemsize < 4 else 1e-5, equal_nan=True)
    return np.array_equal(found.reshape(expected.shape), expected)


def check(tool, folder, case):
    """'passed', 'unsupported', 'skipped', or what went wrong."""
    inputs, outputs = case.data_sets[0]
    inputs = [np.asarray(i) if not isinstance(i, (list, type(None))) else None for i in inputs]
    if any(i is None or i.dtype.kind not in "fiub" or i.dtype in (np.uint16, np.uint32, np.uint64) or i.size == 0 for i in inputs):
        return "skipped"
    if any(isinstance(o, list) or np.asarray(o).dtype.kind not in "fiub" or np.asarray(o).size == 0 for o in outputs):
        return "skipped"
    try:
        code, errors, found = evaluate(tool, folder, case.model, inputs)
        if code in (3, 4) and len(inputs) > 1:
            code, errors, found = evaluate(tool, folder, *as_initializers(case.model, inputs))
    except subprocess.TimeoutExpired:
        return "timeout"
    if code == 4:
        return "unsupported"
    if code != 0:
        return f"exit {code}: {errors.strip()[-300:]}"
    for value, expected in zip(case.model.graph.output, outputs):
        if value.name not in found or not matches(found[value.name], np.asarray(expected), case.rtol):
            return f"output {value.name} differs"
    return "passed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    tally = collections.Counter()
    unsupported = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in collect_testcases(None):
            node = case.model.graph.node
            opset = max((o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")), default=0)
            if len(node) != 1 or node[0].op_type not in KNOWN or opset < 13 or options.only not in case.name or case.name in EXCEPTIONS:
                continue
            for entry in case.model.opset_import:  # the same rules hold at the newest opset that the importer takes
                entry.version = min(entry.version, 24)
            outcome = check(options.tool, folder, case)
            if outcome in ("passed", "unsupported", "skipped"):
                tally[outcome] += 1
                unsupported[node[0].op_type] += outcome == "unsupported"
                continue
            tally["failed"] += 1
            print(f"FAILED {case.name}: {outcome}")
    if options.verbose:
        print("unsupported forms:", {op: n for op, n in unsupported.items() if n})
    print(", ".join(f"{count} {name}" for name, count in sorted(tally.items())))
    return 1 if tally["failed"] or tally["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
