#!/usr/bin/env python3
"""Records what PyTorch gets for every differentiable graph op, in double, as TorchCases.json.

Each case is a graph function in text, its inputs, one cotangent per result, and PyTorch's results and gradients. The unit test
replays them through the reference evaluator and the adjoint rules, and checks the same gradients by finite differences.
Run in a Python environment with torch and numpy: python3 make_torch_cases.py TorchCases.json
"""

import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
CASES = []
RNG = np.random.default_rng(20261201)


def rand(*shape, low=-2.0, high=2.0):
    """Uniform numbers of three decimals, so that the recorded text is exact and short."""
    return torch.tensor(np.round(RNG.uniform(low, high, shape), 3))


def positive(*shape):
    return rand(*shape, low=0.5, high=2.5)


def ints(values):
    return torch.tensor(values, dtype=torch.int64)


def type_of(tensor):
    element = {torch.float64: "f64", torch.float32: "f32", torch.int64: "i64", torch.bool: "i1"}[tensor.dtype]
    return "tensor<" + "".join(f"{size}x" for size in tensor.shape) + element + ">"


def number(value):
    value = float(value)
    return value if math.isfinite(value) else str(value)


def flat(tensor):
    if tensor.is_floating_point():
        return [number(v) for v in tensor.detach().reshape(-1).tolist()]
    return [int(v) for v in tensor.reshape(-1).tolist()]


def case(name, inputs, template, function, differences=True):
    """`template` is the function body; {a}, {b}, ... are the inputs' types and {r0}, {r1}, ... the results'."""
    leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    results = function(*leaves)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    letters = "abcdefgh"[: len(inputs)]
    types = {letter: type_of(t) for letter, t in zip(letters, inputs)}
    types.update({f"r{i}": type_of(r) for i, r in enumerate(results)})
    arguments = ", ".join(f"%{letter}: {types[letter]}" for letter in letters)
    names, result_types = ", ".join(f"%r{i}" for i in range(len(results))), ", ".join(types[f"r{i}"] for i in range(len(results)))
    body = "\n".join("  " + line.strip() for line in template.strip().splitlines()).format(**types)
    ir = f"func.func @f({arguments}) -> ({result_types}) {{\n{body}\n  return {names} : {result_types}\n}}"
    cotangents = [rand(*r.shape, low=-1, high=1) for r in results]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    gradients = iter(torch.autograd.grad(results, wanted, cotangents, allow_unused=True))
    expected = []
    for leaf in leaves:
        gradient = next(gradients) if leaf.requires_grad else None
        expected.append(flat(torch.zeros_like(leaf) if gradient is None else gradient) if leaf.requires_grad else None)
    CASES.append({"name": name, "ir": ir, "inputs": [flat(t) for t in inputs], "results": [flat(r) for r in results],
                  "cotangents": [flat(c) for c in cotangents], "gradients": expected, "differences": differences})


def unary(name, function, x, op=None, differences=True):
    case(name, [x], f"%r0 = graph.{op or name} %a : {{r0}}", function, differences)


def elementwise():
    unary("neg", torch.neg, rand(2, 3))
    unary("abs", torch.abs, rand(2, 3))
    unary("abs_zero", torch.abs, torch.tensor([0.0, -1.0, 2.0]), "abs", False)
    unary("sign", torch.sign, rand(2, 3))
    unary("floor", torch.floor, rand(2, 3))
    unary("exp", torch.exp, rand(2, 3))
    unary("log", torch.log, positive(2, 3))
    unary("log1p", torch.log1p, positive(2, 3))
    unary("sqrt", torch.sqrt, positive(2, 3))
    unary("sqrt_zero", torch.sqrt, torch.tensor([0.0, 4.0]), "sqrt", False)
    unary("rsqrt", torch.rsqrt, positive(2, 3))
    unary("reciprocal", torch.reciprocal, positive(2, 3))
    unary("sin", torch.sin, rand(2, 3))
    unary("cos", torch.cos, rand(2, 3))
    unary("tanh", torch.tanh, rand(2, 3))
    unary("erf", torch.erf, rand(2, 3))
    unary("sigmoid", torch.sigmoid, rand(2, 3))
    unary("relu", torch.relu, rand(2, 3))
    unary("relu_zero", torch.relu, torch.tensor([0.0, -0.0, 1.0, -1.0]), "relu", False)
    unary("silu", F.silu, rand(2, 3))
    unary("silu_tail", F.silu, torch.tensor([-30.0, -12.0, 12.0, 30.0]), "silu")
    unary("gelu", F.gelu, rand(2, 3))
    unary("gelu_tail", F.gelu, torch.tensor([-6.0, -4.0, 4.0, 8.0]), "gelu")
    case("gelu_tanh", [rand(2, 3)], "%r0 = graph.gelu %a {{approximate = true}} : {r0}", lambda x: F.gelu(x, approximate="tanh"))
    case("gelu_tanh_tail", [torch.tensor([-6.0, -4.0, 4.0, 8.0])], "%r0 = graph.gelu %a {{approximate = true}} : {r0}",
         lambda x: F.gelu(x, approximate="tanh"))


def binary(name, function, x, y, op=None, differences=True):
    case(name, [x, y], f"%r0 = graph.{op or name} %a, %b : {{r0}}", function, differences)


def power_by(exponent, x, name, differences=True):
    body = f"""%p = graph.constant dense<{exponent!r}> : tensor<f64>
               %q = graph.broadcast %p [] : tensor<f64> -> {{a}}
               %r0 = graph.pow %a, %q : {{r0}}"""
    case(name, [x], body, lambda v: torch.pow(v, exponent), differences)


def elementwise_pairs():
    for name, function in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul)]:
        binary(name, function, rand(2, 3), rand(2, 3))
    binary("div", torch.div, rand(2, 3), positive(2, 3))
    binary("pow", torch.pow, positive(2, 3), rand(2, 3))
    binary("pow_zero", torch.pow, torch.tensor([0.0, 0.0, 0.0, 2.0]), torch.tensor([2.0, 1.0, 0.0, 0.0]), "pow", False)
    for exponent, x in [(0.0, rand(4)), (1.0, rand(4)), (2.0, rand(4)), (3.0, rand(4)), (0.5, positive(4)), (-1.0, positive(4)), (2.5, positive(4)),
                        (-0.5, positive(4))]:
        power_by(exponent, x, f"pow_by_{exponent}")
    power_by(0.0, torch.tensor([0.0, 1.0]), "pow_zero_by_0", False)
    power_by(2.0, torch.tensor([0.0, -1.0]), "pow_zero_by_2", False)
    power_by(0.5, torch.tensor([0.0, 4.0]), "pow_zero_by_half", False)
    binary("maximum", torch.maximum, rand(2, 3), rand(2, 3))
    binary("minimum", torch.minimum, rand(2, 3), rand(2, 3))
    ties = torch.tensor([1.0, 2.0, -1.0])
    binary("maximum_tie", torch.maximum, ties, torch.tensor([1.0, 1.0, -1.0]), "maximum", False)
    binary("minimum_tie", torch.minimum, ties, torch.tensor([1.0, 1.0, -1.0]), "minimum", False)
    case("select", [torch.tensor([[True, False, True]]), rand(1, 3), rand(1, 3)], "%r0 = graph.select %a, %b, %c : {a}, {r0}", torch.where)
    body = """%z = graph.constant dense<0.0> : {a}
              %p = graph.compare <gt> %a, %z : {a} -> tensor<3xi1>
              %l = graph.log %a : {a}
              %r0 = graph.select %p, %l, %z : tensor<3xi1>, {r0}"""
    case("select_guards_nan", [torch.tensor([-1.0, 2.0, -3.0])], body,
         lambda x: torch.where(x > 0, torch.log(torch.where(x > 0, x, 1.0)), 0.0))
    eighths = torch.tensor(np.round(RNG.uniform(-2, 2, (4,)) * 8) / 8)
    case("convert", [eighths], """%h = graph.convert %a : {a} -> tensor<4xf32>
                                  %r0 = graph.convert %h : tensor<4xf32> -> {r0}""", lambda x: x * 1.0)
    body = """%i = graph.convert %a : {a} -> tensor<4xi64>
              %g = graph.convert %i : tensor<4xi64> -> {r0}
              %r0 = graph.mul %g, %a : {r0}"""
    case("convert_integer", [positive(4)], body, lambda x: x.detach().trunc() * x)


def views():
    case("broadcast_new", [rand(3)], "%r0 = graph.broadcast %a [1] : {a} -> {r0}", lambda x: x.reshape(1, 3, 1).expand(2, 3, 2))
    case("broadcast_ones", [rand(1, 3, 1)], "%r0 = graph.broadcast %a [0, 1, 2] : {a} -> {r0}", lambda x: x.expand(2, 3, 2))
    case("broadcast_keeps_one", [rand(3, 1)], "%r0 = graph.broadcast %a [1, 2] : {a} -> {r0}", lambda x: x.reshape(1, 3, 1).expand(2, 3, 1))
    case("broadcast_scalar", [rand()], "%r0 = graph.broadcast %a [] : {a} -> {r0}", lambda x: x.expand(2, 2))
    case("reshape", [rand(2, 6)], "%r0 = graph.reshape %a : {a} -> {r0}", lambda x: x.reshape(3, 4))
    case("transpose", [rand(2, 3, 2)], "%r0 = graph.transpose %a [2, 0, 1] : {a} -> {r0}", lambda x: x.permute(2, 0, 1))
    case("slice", [rand(3, 5)], "%r0 = graph.slice %a [1, 0] [1, 1] : {a} -> {r0}", lambda x: x[1:3, 0:4])
    case("slice_strided", [rand(4, 7)], "%r0 = graph.slice %a [1, 1] [2, 3] : {a} -> {r0}", lambda x: x[1:4:2, 1:6:3])
    case("slice_empty", [rand(3)], "%r0 = graph.slice %a [1] [1] : {a} -> {r0}", lambda x: x[1:1])


def movement():
    unary("copy", torch.clone, rand(2, 3))
    case("concat", [rand(2, 1), rand(2, 3), rand(2, 2)], "%r0 = graph.concat %a, %b, %c axis 1 : ({a}, {b}, {c}) -> {r0}",
         lambda *parts: torch.cat(parts, 1))
    case("concat_twice", [rand(2, 2)], "%r0 = graph.concat %a, %a axis 0 : ({a}, {a}) -> {r0}", lambda x: torch.cat([x, x], 0))
    case("pad", [rand(2, 3)], "%r0 = graph.pad %a low [1, 0] high [0, 2] interior [0, 0] {{value = 1.5 : f64}} : {a} -> {r0}",
         lambda x: F.pad(x, (0, 2, 1, 0), value=1.5))

    def pad_interior(x):
        out = torch.zeros(8)
        out[1:8:2] = torch.cat([x, torch.zeros(1)])
        return out[:8]
    case("pad_interior", [rand(3)], "%r0 = graph.pad %a low [1] high [2] interior [1] : {a} -> {r0}", pad_interior)
    rows = ints([[2, 0], [2, -1]])
    case("gather", [rand(4, 3), rows], "%r0 = graph.gather %a, %b axis 0 : ({a}, {b}) -> {r0}", lambda x, i: x[i])
    case("gather_axis1", [rand(2, 4, 2), ints([1, 3, 1])], "%r0 = graph.gather %a, %b axis 1 : ({a}, {b}) -> {r0}", lambda x, i: x[:, i])
    case("scatter_add", [ints([2, 0, 2]), rand(3, 2)], "%r0 = graph.scatter_add %a, %b axis 0 : ({a}, {b}) -> {r0}",
         lambda i, u: torch.zeros(4, 2).index_add(0, i, u))
    case("scatter_add_axis1", [ints([1, -1]), rand(2, 2, 3)], "%r0 = graph.scatter_add %a, %b axis 1 : ({a}, {b}) -> {r0}",
         lambda i, u: torch.zeros(2, 5, 3).index_add(1, i % 5, u))
    cells = ints([[0, 2, 0], [1, 1, 2]])
    case("gather_elements", [rand(3, 3), cells], "%r0 = graph.gather_elements %a, %b axis 0 : ({a}, {b}) -> {r0}",
         lambda x, i: torch.gather(x, 0, i))
    case("gather_elements_axis1", [rand(2, 4), cells], "%r0 = graph.gather_elements %a, %b axis 1 : ({a}, {b}) -> {r0}",
         lambda x, i: torch.gather(x, 1, i))
    case("scatter_add_elements", [cells, rand(2, 3)], "%r0 = graph.scatter_add_elements %a, %b axis 1 : ({a}, {b}) -> {r0}",
         lambda i, u: torch.zeros(2, 4).scatter_add(1, i, u))
    exclusive = lambda x, d: torch.cumsum(x, d) - x
    flipped = lambda f: (lambda x: f(x.flip(1), 1).flip(1))
    case("cumsum", [rand(2, 4)], "%r0 = graph.cumsum %a axis 1 : {r0}", lambda x: torch.cumsum(x, 1))
    case("cumsum_axis0", [rand(3, 2)], "%r0 = graph.cumsum %a axis 0 : {r0}", lambda x: torch.cumsum(x, 0))
    case("cumsum_exclusive", [rand(2, 4)], "%r0 = graph.cumsum %a axis 1 {{exclusive = true}} : {r0}", lambda x: exclusive(x, 1))
    case("cumsum_reverse", [rand(2, 4)], "%r0 = graph.cumsum %a axis 1 {{reverse = true}} : {r0}", flipped(torch.cumsum))
    case("cumsum_both", [rand(2, 4)], "%r0 = graph.cumsum %a axis 1 {{exclusive = true, reverse = true}} : {r0}", flipped(exclusive))


def reductions():
    case("reduce_sum", [rand(2, 3, 2)], "%r0 = graph.reduce_sum %a [0, 2] : {a} -> {r0}", lambda x: x.sum((0, 2)))
    case("reduce_sum_all", [rand(2, 3)], "%r0 = graph.reduce_sum %a [0, 1] : {a} -> {r0}", lambda x: x.sum())
    case("reduce_max", [rand(3, 4)], "%r0 = graph.reduce_max %a [1] : {a} -> {r0}", lambda x: x.amax(1))
    case("reduce_max_outer", [rand(3, 2, 2)], "%r0 = graph.reduce_max %a [0, 2] : {a} -> {r0}", lambda x: x.amax((0, 2)))
    tied = torch.tensor([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, -1.0, 0.0]])
    case("reduce_max_tie", [tied], "%r0 = graph.reduce_max %a [1] : {a} -> {r0}", lambda x: x.amax(1), False)


def linear():
    flags = lambda a, b: "{{trans_a = %s, trans_b = %s}}" % (str(a).lower(), str(b).lower())
    for batch in [(), (2,), (2, 2)]:
        for a in (False, True):
            for b in (False, True):
                left = rand(*batch, *((4, 3) if a else (3, 4)))
                right = rand(*batch, *((2, 4) if b else (4, 2)))
                turn = lambda x, t: x.mT if t else x
                case(f"dot_{len(batch)}{'t' if a else 'n'}{'t' if b else 'n'}", [left, right],
                     "%r0 = graph.dot %a, %b " + flags(a, b) + " : ({a}, {b}) -> {r0}",
                     lambda x, y, ta=a, tb=b: turn(x, ta) @ turn(y, tb))


CONVS = [
    ("1d", (2, 2, 6), (3, 2, 3), [1], [0, 0], [1], 1),
    ("1d_stride_floor", (1, 2, 7), (2, 2, 2), [3], [1, 1], [1], 1),
    ("2d", (1, 2, 4, 5), (3, 2, 3, 2), [1, 1], [1, 0, 1, 0], [1, 1], 1),
    ("2d_strided_dilated", (1, 2, 6, 6), (2, 2, 2, 3), [2, 1], [1, 2, 1, 2], [1, 2], 1),
    ("2d_groups", (2, 4, 3, 3), (4, 2, 2, 2), [1, 1], [0, 0, 0, 0], [1, 1], 2),
    ("2d_depthwise_uneven_pads", (1, 3, 4, 4), (3, 1, 3, 3), [2, 2], [0, 0, 1, 1], [1, 1], 3),
    ("3d", (1, 1, 3, 3, 3), (2, 1, 2, 2, 2), [1, 2, 1], [0, 1, 0, 0, 1, 0], [1, 1, 1], 1),
]


def torch_conv(x, w, strides, pads, dilations, groups):
    spatial = len(strides)
    padding = [p for d in reversed(range(spatial)) for p in (pads[d], pads[d + spatial])]
    function = [F.conv1d, F.conv2d, F.conv3d][spatial - 1]
    return function(F.pad(x, padding), w, None, strides, 0, dilations, groups)


def bracket(values):
    return "array<i64: " + ", ".join(map(str, values)) + ">"


def convolutions():
    for name, x, w, strides, pads, dilations, groups in CONVS:
        attributes = (f"{{{{strides = {bracket(strides)}, pads = {bracket(pads)}, dilations = {bracket(dilations)}, groups = {groups} : i64}}}}")
        conv = lambda a, b, s=strides, p=pads, d=dilations, g=groups: torch_conv(a, b, s, p, d, g)
        out = conv(torch.zeros(x), torch.zeros(w)).shape
        case(f"conv_{name}", [rand(*x), rand(*w)], f"%r0 = graph.conv %a, %b {attributes} : ({{a}}, {{b}}) -> {{r0}}", conv)

        def input_grad(c, f, shape=x, forward=conv):
            leaf = torch.zeros(shape, requires_grad=True)
            return torch.autograd.grad(forward(leaf, f), leaf, c, create_graph=True)[0]

        def weight_grad(v, c, shape=w, forward=conv):
            leaf = torch.zeros(shape, requires_grad=True)
            return torch.autograd.grad(forward(v, leaf), leaf, c, create_graph=True)[0]
        case(f"conv_input_grad_{name}", [rand(*out), rand(*w)], f"%r0 = graph.conv_input_grad %a, %b {attributes} : ({{a}}, {{b}}) -> {{r0}}", input_grad)
        case(f"conv_weight_grad_{name}", [rand(*x), rand(*out)], f"%r0 = graph.conv_weight_grad %a, %b {attributes} : ({{a}}, {{b}}) -> {{r0}}",
             weight_grad)


POOLS = [
    # name, input, kernel, strides, pad, dilation, ceil
    ("1d", (1, 2, 6), [2], [2], [0], [1], False),
    ("2d_overlap_pad", (1, 2, 4, 4), [3, 3], [1, 2], [1, 1], [1, 1], False),
    ("2d_ceil", (1, 1, 5, 5), [2, 2], [2, 2], [0, 0], [1, 1], True),
    ("2d_ceil_pad", (1, 1, 6, 6), [3, 3], [2, 2], [1, 1], [1, 1], True),
    ("3d", (1, 1, 2, 4, 3), [2, 2, 2], [1, 2, 1], [0, 0, 0], [1, 1, 1], False),
]


def pools():
    for name, shape, kernel, strides, pad, dilation, ceil in POOLS:
        spatial = len(kernel)
        common = f"kernel = {bracket(kernel)}, strides = {bracket(strides)}, pads = {bracket(pad + pad)}, dilations = {bracket(dilation)}"
        maximum = [F.max_pool1d, F.max_pool2d, F.max_pool3d][spatial - 1]
        average = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][spatial - 1]
        pool = lambda x: maximum(x, kernel, strides, pad, dilation, ceil)
        count = type_of(pool(torch.zeros(shape))).replace("f64", "i32")
        case(f"max_pool_{name}", [rand(*shape)], f"%r0, %i = graph.max_pool %a {{{{{common}}}}} : ({{a}}) -> ({{r0}}, {count})", pool)
        for included in (False, True):
            attributes = f"{{{{{common}, count_include_pad = {str(included).lower()}}}}}"
            mean = lambda x, flag=included: average(x, kernel, strides, pad, ceil, flag)
            suffix = name + ("_pads" if included else "")
            case(f"avg_pool_{suffix}", [rand(*shape)], f"%r0 = graph.avg_pool %a {attributes} : ({{a}}) -> {{r0}}", mean)

            def adjoint(c, forward=mean):
                leaf = torch.zeros(shape, requires_grad=True)
                return torch.autograd.grad(forward(leaf), leaf, c, create_graph=True)[0]
            out = mean(torch.zeros(shape)).shape
            case(f"avg_pool_grad_{suffix}", [rand(*out)], f"%r0 = graph.avg_pool_grad %a {attributes} : ({{a}}) -> {{r0}}", adjoint)
    dilated = "kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 1>"
    case("max_pool_dilated", [rand(1, 1, 4, 3)], f"%r0, %i = graph.max_pool %a {{{{{dilated}}}}} : ({{a}}) -> ({{r0}}, tensor<1x1x2x2xi32>)",
         lambda x: F.max_pool2d(x, 2, 1, 0, (2, 1)))
    tied = torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]]])
    whole = "kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>"
    case("max_pool_tie", [tied], f"%r0, %i = graph.max_pool %a {{{{{whole}}}}} : ({{a}}) -> ({{r0}}, tensor<1x1x1x1xi32>)",
         lambda x: F.max_pool2d(x, 2), False)


def normalised(x, dims):
    mean = x.mean(dims)
    variance = x.var(dims, unbiased=False)
    return mean, variance


def norms():
    for axis in (0, 1):
        case(f"softmax_{axis}", [rand(3, 4)], f"%r0 = graph.softmax %a axis {axis} : {{r0}}", lambda x, d=axis: torch.softmax(x, d))
        case(f"log_softmax_{axis}", [rand(3, 4)], f"%r0 = graph.log_softmax %a axis {axis} : {{r0}}", lambda x, d=axis: torch.log_softmax(x, d))
    case("softmax_masked", [torch.tensor([[0.5, -math.inf, 1.0], [2.0, 1.0, -math.inf]])], "%r0 = graph.softmax %a axis 1 : {r0}",
         lambda x: torch.softmax(x, 1), False)

    def layer(x, axis):
        return torch.native_layer_norm(x, x.shape[axis:], None, None, 1e-5)
    for axis in (0, 1, 2):
        statistics = "tensor<" + "".join(f"{s}x" for s in (2, 3, 4)[:axis]) + "f64>"
        case(f"layer_norm_{axis}", [rand(2, 3, 4)],
             f"%r0, %m, %s = graph.layer_norm %a axis {axis} eps 1.0e-5 : ({{a}}) -> ({{r0}}, {statistics}, {statistics})",
             lambda x, d=axis: layer(x, d)[0])
    case("layer_norm_statistics", [rand(3, 4)], "%r0, %r1, %r2 = graph.layer_norm %a axis 1 eps 1.0e-2 : ({a}) -> ({r0}, {r1}, {r2})",
         lambda x: ((x - x.mean(1, True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-2).sqrt(), x.mean(1),
                    (x.var(1, unbiased=False) + 1e-2).rsqrt()))
    case("layer_norm_rstd_only", [rand(3, 4)], "%n, %m, %r0 = graph.layer_norm %a axis 1 eps 1.0e-2 : ({a}) -> ({a}, {r0}, {r0})",
         lambda x: (x.var(1, unbiased=False) + 1e-2).rsqrt())
    rms = lambda x, dims: (x.square().mean(dims, keepdim=True) + 1e-5).rsqrt()
    case("rms_norm", [rand(3, 4)], "%r0, %s = graph.rms_norm %a axis 1 eps 1.0e-5 : ({a}) -> ({r0}, tensor<3xf64>)",
         lambda x: F.rms_norm(x, (4,), eps=1e-5))
    case("rms_norm_rstd", [rand(2, 3, 2)], "%r0, %r1 = graph.rms_norm %a axis 1 eps 1.0e-5 : ({a}) -> ({r0}, {r1})",
         lambda x: (x * rms(x, (1, 2)), rms(x, (1, 2)).reshape(2)))
    case("batch_norm_2", [rand(5, 3)], "%r0, %m, %v = graph.batch_norm %a eps 1.0e-5 : ({a}) -> ({r0}, tensor<3xf64>, tensor<3xf64>)",
         lambda x: F.batch_norm(x, None, None, training=True))
    case("batch_norm_4", [rand(2, 2, 3, 2)], "%r0, %m, %v = graph.batch_norm %a eps 1.0e-5 : ({a}) -> ({r0}, tensor<2xf64>, tensor<2xf64>)",
         lambda x: F.batch_norm(x, None, None, training=True))
    case("batch_norm_statistics", [rand(3, 2, 2)], "%r0, %r1, %r2 = graph.batch_norm %a eps 1.0e-5 : ({a}) -> ({r0}, {r1}, {r2})",
         lambda x: (F.batch_norm(x, None, None, training=True), *normalised(x, (0, 2))))
    case("batch_norm_variance_only", [rand(4, 2)], "%n, %m, %r0 = graph.batch_norm %a eps 1.0e-5 : ({a}) -> ({a}, {r0}, {r0})",
         lambda x: x.var(0, unbiased=False))


def philox_uniform(seed, step, op_id, count):
    """Philox4x32-10 (Salmon et al., SC'11), word element % 4 of counter (element / 4, op_id, step)."""
    out = []
    for element in range(count):
        counter = [element // 4, op_id, step & 0xFFFFFFFF, step >> 32]
        key = [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter = [(second >> 32) ^ counter[1] ^ key[0], second & 0xFFFFFFFF, (first >> 32) ^ counter[3] ^ key[1], first & 0xFFFFFFFF]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        out.append((counter[element % 4] >> 8) / 2**24)
    return torch.tensor(out)


def losses():
    seed = ints([123456789012345, 7])
    for ratio in (0.0, 0.4):
        kept = philox_uniform(123456789012345, 7, 3, 12).reshape(3, 4) >= ratio
        case(f"dropout_{ratio}", [rand(3, 4), seed], f"%r0 = graph.dropout %a, %b ratio {ratio:e} id 3 : {{b}}, {{r0}}",
             lambda x, s, k=kept, r=ratio: torch.where(k, x / (1 - r), 0.0))
    labels = ints([2, -100, 0, 3])
    row = lambda x, y: F.cross_entropy(x, y, ignore_index=-100, reduction="none")
    case("cross_entropy", [rand(4, 5), labels], "%r0, %l = graph.cross_entropy %a, %b ignore -100 : ({a}, {b}) -> ({r0}, tensor<4xf64>)", row)
    case("cross_entropy_lse", [rand(4, 5), labels], "%r0, %r1 = graph.cross_entropy %a, %b ignore -100 : ({a}, {b}) -> ({r0}, {r1})",
         lambda x, y: (row(x, y), x.logsumexp(1)))
    case("cross_entropy_lse_only", [rand(4, 5), labels], "%l, %r0 = graph.cross_entropy %a, %b ignore -100 : ({a}, {b}) -> ({r0}, {r0})",
         lambda x, y: x.logsumexp(1))
    case("cross_entropy_label_outside", [rand(2, 3), ints([7, -1])],
         "%r0, %l = graph.cross_entropy %a, %b ignore -100 : ({a}, {b}) -> ({r0}, tensor<2xf64>)", lambda x, y: x.logsumexp(1))


def plain_attention(q, k, v, mask=None, scale=1.0, causal=False):
    heads = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(heads, 1), v.repeat_interleave(heads, 1)
    scores = scale * q @ k.mT
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        rows, columns = scores.shape[-2:]
        scores = torch.where(torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows), scores, -torch.inf)
    dead = (scores == -torch.inf).all(-1, keepdim=True)
    lse = torch.where(dead, 0.0, scores).logsumexp(-1)
    return torch.where(dead, 0.0, torch.softmax(torch.where(dead, 0.0, scores), -1)) @ v, torch.where(dead[..., 0], -torch.inf, lse)


def attention():
    def run(name, q, k, v, masks=(), scale=0.5, causal=False, with_lse=False, differences=True):
        mask_text, mask_type = (" mask %d", ", {d}") if masks else ("", "")
        lse_type = "tensor<" + "x".join(map(str, q[:3])) + "xf64>"
        results, types = ("%r0, %r1", "({r0}, {r1})") if with_lse else ("%r0, %l", f"({{r0}}, {lse_type})")
        template = (f"{results} = graph.attention %a, %b, %c{mask_text} {{{{scale = {scale:e} : f64, causal = {str(causal).lower()}}}}} : "
                    f"({{a}}, {{b}}, {{c}}{mask_type}) -> {types}")

        def function(a, b, c, d=None):
            both = plain_attention(a, b, c, d, scale, causal)
            return both if with_lse else both[0]
        case("attention_" + name, [rand(*q), rand(*k), rand(*v), *masks], template, function, differences)

    run("plain", (1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 3))
    run("causal", (1, 1, 3, 2), (1, 1, 3, 2), (1, 1, 3, 2), causal=True)
    run("causal_longer_keys", (1, 1, 2, 2), (1, 1, 4, 2), (1, 1, 4, 2), causal=True)
    run("grouped", (1, 4, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2))
    keep = torch.tensor([True, False, True, True]).reshape(1, 1, 1, 4)
    run("bool_mask", (1, 2, 2, 2), (1, 2, 4, 2), (1, 2, 4, 2), [keep])
    run("float_mask", (2, 2, 2, 2), (2, 1, 3, 2), (2, 1, 3, 2), [rand(1, 2, 2, 3)])
    run("float_mask_causal_lse", (1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2), [rand(1, 1, 3, 3)], causal=True, with_lse=True)
    dead = torch.tensor([[True, True], [False, False]]).reshape(1, 1, 2, 2)
    run("masked_row", (1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2), [dead])
    run("float_mask_causal_longer_keys", (1, 1, 2, 2), (1, 1, 4, 2), (1, 1, 4, 2), [rand(1, 1, 2, 4)], causal=True)
    run("lse", (1, 2, 2, 3), (1, 1, 3, 3), (1, 1, 3, 2), with_lse=True)
    infinite = torch.tensor([[0.3, -math.inf], [-math.inf, -math.inf]]).reshape(1, 1, 2, 2)
    run("infinite_mask", (1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2), [infinite], differences=False)


def composites():
    body = """%h = graph.dot %a, %b : ({a}, {b}) -> tensor<3x5xf64>
              %z = graph.broadcast %c [1] : {c} -> tensor<3x5xf64>
              %s = graph.add %h, %z : tensor<3x5xf64>
              %g = graph.gelu %s : tensor<3x5xf64>
              %o = graph.dot %g, %b {{trans_b = true}} : (tensor<3x5xf64>, {b}) -> {r0}
              %y = graph.add %o, %a : {r0}
              %r0 = graph.softmax %y axis 1 : {r0}"""
    case("composite_tied_mlp", [rand(3, 4), rand(4, 5), rand(5)], body,
         lambda x, w, b: torch.softmax(F.gelu(x @ w + b) @ w.T + x, 1))
    body = """%t = graph.tanh %a : {a}
              %s = graph.mul %t, %a : {a}
              %u = graph.mul %s, %t : {a}
              %v = graph.sub %u, %s : {a}
              %e = graph.exp %t : {a}
              %r0 = graph.mul %v, %e : {r0}"""
    case("composite_many_uses", [rand(2, 3)], body, lambda x: (x * torch.tanh(x) ** 2 - x * torch.tanh(x)) * torch.exp(torch.tanh(x)))


def main():
    for group in (elementwise, elementwise_pairs, views, movement, reductions, linear, convolutions, pools, norms, losses, attention, composites):
        group()
    with open(sys.argv[1], "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]\n")
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
