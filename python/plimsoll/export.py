"""Exports a PyTorch module as an ONNX file that Plimsoll can train.

    from plimsoll.export import export_for_training
    export_for_training(model, (ids, labels), "model.onnx", loss=lambda logits, labels: F.cross_entropy(...))

or  python -m plimsoll.export my_model.py:make model.onnx     where make() returns (module, inputs) or (module, inputs, loss)

What torch.onnx.export does by default loses what training needs: weights are merged, transposed and renamed, and BatchNorm is folded.
This helper exports with optimize=False in training mode, puts the loss inside the graph, records which initializers are buffers and
which names are tied, and refuses attention dropout, which the exporter drops without a word.
"""

import argparse
import collections
import contextlib
import importlib.util
import inspect
import math
import sys

import torch
import torch.nn.functional as F

__all__ = ["AttentionDropoutError", "export_for_training"]


class AttentionDropoutError(ValueError):
    """The module drops attention probabilities inside scaled_dot_product_attention."""


class _WithLoss(torch.nn.Module):
    """net(*inputs[:-1]) against inputs[-1]; parameter names get the prefix "net."."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, *inputs):
        return self.loss(self.net(*inputs[:-1]), inputs[-1])


def _explicit_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """scaled_dot_product_attention with its dropout as an operator of its own, which exports."""
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        keep = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    return F.dropout(torch.softmax(scores, -1), dropout_p) @ value


@contextlib.contextmanager
def _attention_replaced_by(replacement):
    original = F.scaled_dot_product_attention
    F.scaled_dot_product_attention = replacement
    try:
        yield original
    finally:
        F.scaled_dot_product_attention = original


@contextlib.contextmanager
def _state_kept(module):
    """Buffers (running statistics) and the random state are as before afterwards."""
    kept = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with torch.random.fork_rng(), torch.no_grad():
        yield
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            buffer.copy_(kept[name])


def _attention_dropouts(module, inputs):
    """Dropout probabilities > 0 that the module passes to scaled_dot_product_attention, one per call."""
    found = []
    original = F.scaled_dot_product_attention

    def watch(query, key, value, attn_mask=None, dropout_p=0.0, *rest, **named):
        if dropout_p > 0:
            found.append(dropout_p)
        return original(query, key, value, attn_mask, dropout_p, *rest, **named)

    with _state_kept(module), _attention_replaced_by(watch):
        module(*inputs)
    return found


def _tied_names(module):
    """name -> the other names of the same parameter."""
    groups = collections.defaultdict(list)
    for name, parameter in module.named_parameters(remove_duplicate=False):
        groups[id(parameter)].append(name)
    return [names for names in groups.values() if len(names) > 1]


def _record(path, module):
    """Writes what the graph alone does not say into the file's metadata."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    initializers = {tensor.name for tensor in model.graph.initializer}
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    buffers = sorted(initializers - parameters)
    aliases = []
    for names in _tied_names(module):
        kept = [name for name in names if name in initializers]
        if len(kept) == 1:
            aliases += [f"{kept[0]}\t{name}" for name in names if name != kept[0]]
    for key, lines in (("plimsoll.buffers", buffers), ("plimsoll.aliases", aliases)):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, "\n".join(lines)
    onnx.save(model, path)


def export_for_training(module, inputs, path, loss=None, opset=20, attention_dropout="refuse", dynamic_shapes=None, external_data=None):
    """Writes `path` (and `path`.data for large models).

    loss: called as loss(module(*inputs[:-1]), inputs[-1]) inside the graph; None when the module returns its loss itself.
    attention_dropout: "refuse" raises AttentionDropoutError; "expand" writes the attention out so that its dropout is kept;
    "ignore" exports without it. external_data: None decides by size (above 1.5 GB the weights go to `path`.data).
    """
    if attention_dropout not in ("refuse", "expand", "ignore"):
        raise ValueError(f"attention_dropout is {attention_dropout!r}, expected 'refuse', 'expand' or 'ignore'")
    inputs = tuple(inputs)
    whole = module if loss is None else _WithLoss(module, loss)
    modes = [(part, part.training) for part in module.modules()]
    whole.train()
    try:
        dropouts = _attention_dropouts(whole, inputs)
        if dropouts and attention_dropout == "refuse":
            raise AttentionDropoutError(
                f"{len(dropouts)} attention calls drop probabilities (p={dropouts[0]}), which torch.onnx.export loses silently; "
                "set the attention dropout to 0, or pass attention_dropout='expand' to keep it or 'ignore' to train without it")
        if external_data is None:
            external_data = sum(p.numel() * p.element_size() for p in whole.parameters()) > 1_500_000_000
        replacement = _explicit_attention if dropouts and attention_dropout == "expand" else F.scaled_dot_product_attention
        with _state_kept(whole), _attention_replaced_by(replacement):
            torch.onnx.export(whole, inputs, path, dynamo=True, optimize=False, opset_version=opset, dynamic_shapes=dynamic_shapes,
                              external_data=external_data, verbose=False)
        _record(path, whole)
    finally:
        for part, training in modes:
            part.training = training


def _load(reference):
    """The object that "file.py:name" names."""
    file, _, name = reference.partition(":")
    if not name:
        raise SystemExit(f"'{reference}' names no function, expected FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location("plimsoll_exported", file)
    if spec is None:
        raise SystemExit(f"'{file}' is not a Python file")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, name)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m plimsoll.export", description=inspect.getdoc(sys.modules[__name__]).splitlines()[0])
    parser.add_argument("source", help="FILE.py:FUNCTION returning (module, inputs) or (module, inputs, loss)")
    parser.add_argument("output", help="the ONNX file to write")
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--attention-dropout", choices=("refuse", "expand", "ignore"), default="refuse")
    options = parser.parse_args(arguments)
    made = _load(options.source)()
    loss = made[2] if len(made) > 2 else None
    try:
        export_for_training(made[0], made[1], options.output, loss, options.opset, options.attention_dropout)
    except AttentionDropoutError as error:
        raise SystemExit(f"error: {error}") from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
