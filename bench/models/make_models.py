#!/usr/bin/env python3
"""Exports the benchmark's models as training graphs: the loss inside, every parameter under its own name.

usage: make_models.py OUT [NAME ...] [--weights sparse|random]     (needs torch, onnx, onnxscript; transformers, torchvision)

With sparse weights (the default) nothing is initialised: the parameters are holes in a sparse file, which reads as zeros and takes no
room on the disk, so a 7-billion-parameter model is made in a minute on a small machine. That is enough to plan. With random weights the
models can also be trained.
"""
import argparse
import contextlib
import pathlib
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from plimsoll import export as plimsoll_export  # noqa: E402

warnings.filterwarnings("ignore")
MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


class Images(nn.Module):
    """net(x) -> cross entropy with y: one label an image, or one a pixel."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y)


class Tokens(nn.Module):
    """Next-token loss; the caller shifts the labels."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, ids, labels):
        return F.cross_entropy(self.net(input_ids=ids).logits.flatten(0, 1), labels.flatten())


def images(batch, size, classes):
    return torch.zeros(batch, 3, size, size), torch.randint(classes, (batch,))


def tokens(batch, steps, vocabulary):
    return torch.randint(vocabulary, (batch, steps)), torch.randint(vocabulary, (batch, steps))


def gpt2(batch, steps, **shape):
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=False, **shape)
    return Tokens(GPT2LMHeadModel(config)), tokens(batch, steps, config.vocab_size)


@model
def gpt2_124m():
    return gpt2(4, 256)


@model
def gpt2_xl():
    return gpt2(4, 256, n_embd=1600, n_layer=48, n_head=25)


@model
def resnet50():
    import torchvision
    return Images(torchvision.models.resnet50()), images(32, 224, 1000)


@model
def densenet121():
    import torchvision
    return Images(torchvision.models.densenet121()), images(16, 224, 1000)


@model
def bert_base():
    """Masked-language-model loss over B16 x S512 with a padding mask; positions labelled -100 do not count."""
    from transformers import BertConfig, BertForMaskedLM
    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = BertForMaskedLM(config)

        def forward(self, ids, mask, labels):
            return F.cross_entropy(self.net(input_ids=ids, attention_mask=mask).logits.flatten(0, 1), labels.flatten())

    ids, labels = tokens(16, 512, config.vocab_size)
    return Net(), (ids, torch.ones_like(ids), labels)


@model
def unet():
    """Four levels of two convolutions each way, transposed convolutions up, skip connections by concatenation; B8 x 256 x 256."""

    def block(inputs, outputs):
        layers = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self, widths=(64, 128, 256, 512, 1024), classes=21):
            super().__init__()
            self.down = nn.ModuleList(block(i, o) for i, o in zip((3,) + widths[:-1], widths))
            self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in zip(widths[:0:-1], widths[-2::-1]))
            self.merge = nn.ModuleList(block(2 * o, o) for o in widths[-2::-1])
            self.head = nn.Conv2d(widths[0], classes, 1)

        def forward(self, x):
            skips = []
            for level, part in enumerate(self.down):
                x = part(x if level == 0 else F.max_pool2d(x, 2))
                skips.append(x)
            for up, merge, skip in zip(self.up, self.merge, skips[-2::-1]):
                x = merge(torch.cat([skip, up(x)], 1))
            return self.head(x)

    return Images(UNet()), (torch.zeros(8, 3, 256, 256), torch.randint(21, (8, 256, 256)))


@model
def llama_7b():
    """32 layers of the 7B shapes, B1 x S2048."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
                         max_position_embeddings=2048, use_cache=False)
    return Tokens(LlamaForCausalLM(config)), tokens(1, 2048, config.vocab_size)


@contextlib.contextmanager
def _untouched_parameters():
    """Modules keep the memory they allocate as it comes: pages nobody wrote take no room. Buffers are computed as always."""
    quiet = {name: getattr(nn.init, name) for name in dir(nn.init) if name.endswith("_") and not name.startswith("_")}
    try:
        for name in quiet:
            setattr(nn.init, name, lambda tensor, *rest, **named: tensor)
        import transformers
        base = transformers.PreTrainedModel
        initialise, base.init_weights = base.init_weights, lambda self, *rest, **named: self.tie_weights()
        yield
        base.init_weights = initialise
    finally:
        for name, function in quiet.items():
            setattr(nn.init, name, function)


def _make_sparse(program, parameters, path):
    """Points the parameters at a file of holes beside the model."""
    import onnx_ir
    data, offset = path.with_suffix(".onnx.data"), 0
    for name, value in program.model.graph.initializers.items():
        if name in parameters:
            tensor = value.const_value
            value.const_value = onnx_ir.ExternalTensor(data.name, offset, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name,
                                                       base_dir=str(path.parent))
            offset += (tensor.nbytes + 63) // 64 * 64
    with open(data, "wb") as file:
        file.truncate(offset)
    onnx_ir.save(program.model, path)


def export(name, out, weights):
    path = out / f"{name}.onnx"
    with _untouched_parameters() if weights == "sparse" else contextlib.nullcontext():
        torch.manual_seed(0)
        module, inputs = MODELS[name]()
    module.train()
    program = torch.onnx.export(module, inputs, dynamo=True, optimize=False, opset_version=20, verbose=False)
    if weights == "sparse":
        _make_sparse(program, {key for key, _ in module.named_parameters(remove_duplicate=False)}, path)
    else:
        program.save(str(path), external_data=True)
    plimsoll_export._record(path, module)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--weights", choices=("sparse", "random"), default="sparse")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(MODELS)):
        parser.error(f"unknown model {unknown[0]}; known are {', '.join(MODELS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        start = time.time()
        path = export(name, options.out, options.weights)
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
