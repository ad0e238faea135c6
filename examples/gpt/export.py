#!/usr/bin/env python3
"""Exports a small character-level GPT for training with Plimsoll: loss inside the graph, every parameter under its own name.

usage: export.py [--output gpt.onnx] [--vocabulary 64] [--layers 4] [--width 128] [--heads 4] [--context 128]

Needs PyTorch and onnxscript; gpt.onnx in this folder was made by it (torch 2.15), so the demo does not. Batch and sequence length
are symbolic: bind them with `plimsoll-compile --bind batch=... --bind seq=...`.
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):  # (B, T, C)
        batch, steps, width = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(width, dim=2)
        q, k, v = (t.view(batch, steps, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))  # (B, H, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, steps, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, layers, width, heads, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight  # tied: one variable, one gradient, one optimizer slot
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if name.endswith(("proj.weight", "down.weight")) else 0.02)

    def forward(self, ids, labels):  # both (B, T), int64
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.wte(ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="gpt.onnx")
    parser.add_argument("--vocabulary", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--static", metavar="BATCHxSEQ", help="fixed dimensions instead of symbolic ones, e.g. 4x256")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = GPT(options.vocabulary, options.layers, options.width, options.heads, options.context).train()
    batch, steps = (int(n) for n in options.static.split("x")) if options.static else (4, 32)
    ids = torch.randint(options.vocabulary, (batch, steps))
    dims = None if options.static else {0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("seq", min=2, max=options.context)}
    torch.onnx.export(model, (ids, ids.clone()), options.output, dynamo=True, optimize=False, external_data=False, opset_version=20,
                      input_names=["ids", "labels"], output_names=["loss", "logits"],
                      dynamic_shapes=dims and {"ids": dims, "labels": dict(dims)})


if __name__ == "__main__":
    main()
