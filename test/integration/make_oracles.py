#!/usr/bin/env python3
"""Makes oracles for check_oracles.py from PyTorch: exports a model with its loss, trains it for ten steps, records what it gets.

usage: make_oracles.py OUT [NAME ...]      (needs torch, onnx, onnxscript, safetensors; transformers and torchvision for some)

Each model below is a function that returns (module whose forward returns the loss, list of two input batches as dicts). The format is
described in oracles/README.md. The models are small on purpose: what matters is the operators they bring.
"""
import argparse
import copy
import json
import pathlib
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
STEPS = 10
MODELS = {}


def model(opset=20, **export):
    def register(function):
        MODELS[function.__name__] = (function, opset, export)
        return function
    return register


class WithLoss(nn.Module):
    """net(x) -> cross entropy with y."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y)


def images(batch, channels, size, classes):
    return [{"x": torch.randn(batch, channels, size, size), "y": torch.randint(classes, (batch,))} for _ in range(2)]


def tokens(batch, steps, vocabulary):
    return [{"ids": torch.randint(vocabulary, (batch, steps)), "labels": torch.randint(vocabulary, (batch, steps))} for _ in range(2)]


class LanguageModel(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, ids, labels):
        logits = self.net(input_ids=ids).logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


@model()
def unet():
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.LeakyReLU(0.1), nn.Conv2d(o, o, 3, padding=1), nn.ELU())
            self.a, self.b, self.c = block(3, 8), block(8, 16), block(16, 32)
            self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.d, self.e, self.out = block(32, 16), block(24, 8), nn.Conv2d(8, 5, 1)

        def forward(self, x, y):
            a = self.a(x)
            b = self.b(F.max_pool2d(a, 2))
            c = self.c(F.avg_pool2d(b, 2))
            d = self.d(torch.cat([self.up1(c), b], 1))
            return F.cross_entropy(self.out(self.e(torch.cat([self.up2(d), a], 1))), y, ignore_index=4)

    return UNet(), [{"x": torch.randn(2, 3, 16, 24), "y": torch.randint(5, (2, 16, 24))} for _ in range(2)]


@model()
def mobilenet_v2():
    import torchvision
    net = torchvision.models.mobilenet_v2(num_classes=10, width_mult=0.25, dropout=0.0)
    return WithLoss(net), images(4, 3, 64, 10)


@model()
def mobilenet_v3():
    import torchvision
    net = torchvision.models.mobilenet_v3_small(num_classes=10, width_mult=0.5, dropout=0.0)
    return WithLoss(net), images(4, 3, 64, 10)


@model()
def densenet():
    import torchvision
    return WithLoss(torchvision.models.DenseNet(growth_rate=8, block_config=(2, 3), num_init_features=16, num_classes=7)), images(4, 3, 40, 7)


@model()
def shufflenet():
    import torchvision
    return WithLoss(torchvision.models.ShuffleNetV2([2, 2, 2], [16, 24, 48, 96, 128], num_classes=7)), images(4, 3, 64, 7)


@model()
def squeezenet():
    import torchvision
    net = torchvision.models.squeezenet1_1(num_classes=7, dropout=0.0)
    return WithLoss(net), images(2, 3, 64, 7)


@model(opset=18)
def convnext():
    import torchvision
    from torchvision.models.convnext import CNBlockConfig
    return WithLoss(torchvision.models.ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 1)], num_classes=7)), images(4, 3, 32, 7)


@model(opset=21)
def swin():
    import torchvision
    net = torchvision.models.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [4, 4], num_classes=7, stochastic_depth_prob=0.0)
    return WithLoss(net), images(2, 3, 32, 7)


@model(opset=24)
def conv1d():
    net = nn.Sequential(nn.Conv1d(4, 8, 5, stride=2, padding=2, dilation=1), nn.InstanceNorm1d(8, affine=True), nn.Mish(), nn.Conv1d(8, 16, 3, groups=4, padding="same"),
                        nn.GroupNorm(4, 16), nn.Hardswish(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 12), nn.PReLU(), nn.Linear(12, 5), nn.LogSoftmax(1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, y):
            return F.nll_loss(self.net(x), y, weight=torch.tensor([1.0, 2.0, 0.5, 1.5, 1.0]))

    return Net(), [{"x": torch.randn(6, 4, 33), "y": torch.randint(5, (6,))} for _ in range(2)]


@model(opset=18)
def conv3d():
    net = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.Softplus(), nn.MaxPool3d(2), nn.Conv3d(4, 6, 2, stride=2), nn.CELU(), nn.Flatten(), nn.Linear(6 * 8, 4))
    return WithLoss(net), [{"x": torch.randn(3, 1, 8, 8, 8), "y": torch.randint(4, (3,))} for _ in range(2)]


@model(opset=22)
def regression():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(6, 20), nn.Bilinear(20, 6, 10), nn.Linear(10, 2)
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x, y):
            h = torch.tanh(self.a(x)).clamp(-0.9, 0.9)
            out = self.c(F.softsign(self.b(h, x))) * self.scale.abs().sqrt()
            return F.mse_loss(out, y) + 1e-3 * sum((p ** 2).sum() for p in self.parameters()) + F.smooth_l1_loss(out, y)

    return Net(), [{"x": torch.randn(8, 6), "y": torch.randn(8, 2)} for _ in range(2)]


@model(opset=23)
def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    config = Qwen2Config(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, use_cache=False, tie_word_embeddings=True)
    return LanguageModel(Qwen2ForCausalLM(config)), tokens(3, 24, 96)


@model(opset=20)
def neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
    config = GPTNeoXConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, use_cache=False, hidden_dropout=0.0, attention_dropout=0.0)
    return LanguageModel(GPTNeoXForCausalLM(config)), tokens(3, 24, 96)


@model(opset=18)
def opt():
    from transformers import OPTConfig, OPTForCausalLM
    config = OPTConfig(vocab_size=96, pad_token_id=None, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4, use_cache=False, dropout=0.0, attention_dropout=0.0, max_position_embeddings=64, word_embed_proj_dim=32)
    return LanguageModel(OPTForCausalLM(config)), tokens(3, 24, 96)


@model(opset=20)
def distilbert():
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = DistilBertForSequenceClassification(DistilBertConfig(vocab_size=96, dim=32, hidden_dim=64, n_layers=2, n_heads=4, dropout=0.0, attention_dropout=0.0,
                                                                            seq_classif_dropout=0.0, max_position_embeddings=64, num_labels=3))

        def forward(self, ids, mask, y):
            return F.cross_entropy(self.net(input_ids=ids, attention_mask=mask).logits, y)

    def batch():
        mask = (torch.arange(20)[None] < torch.tensor([20, 13, 7, 17])[:, None]).long()
        return {"ids": torch.randint(96, (4, 20)), "mask": mask, "y": torch.randint(3, (4,))}

    return Net(), [batch(), batch()]


@model(opset=20)
def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = T5ForConditionalGeneration(T5Config(vocab_size=96, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, use_cache=False, decoder_start_token_id=0))

        def forward(self, ids, decoder_ids, labels):
            logits = self.net(input_ids=ids, decoder_input_ids=decoder_ids).logits
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    draw = lambda n: torch.randint(1, 96, (3, n))
    return Net(), [{"ids": draw(18), "decoder_ids": draw(12), "labels": draw(12)} for _ in range(2)]


@model(opset=20, dynamic=True)
def dynamic_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=96, n_positions=64, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=False)
    return LanguageModel(GPT2LMHeadModel(config)), tokens(3, 24, 96)


@model(opset=13, dynamo=False)
def legacy_cnn():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.Conv2d(8, 16, 3, stride=2), nn.SELU(),
                        nn.AvgPool2d(3, 2, 1), nn.Flatten(), nn.Linear(144, 6))
    return WithLoss(net), images(4, 3, 20, 6)


@model(opset=14, dynamo=False)
def legacy_transformer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 50)

        def forward(self, ids, labels):
            x = self.embed(ids)
            split = lambda t: t.view(t.shape[0], t.shape[1], 4, 4).transpose(1, 2)
            q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
            scores = (q @ k.transpose(-1, -2) / 2.0).masked_fill(torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool(), float("-inf"))
            y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
            logits = self.head(self.norm(x + self.o(y)))
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return Net(), tokens(3, 10, 50)


def train(module, batches, optimizer):
    losses, first = [], {}
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = module(**batches[step % 2])
        loss.backward()
        if step == 0:
            first = {name: p.grad.detach().clone() for name, p in module.named_parameters() if p.grad is not None}
        optimizer.step()
        losses.append(loss.item())
    return losses, first


def norms(items):
    return {name: t.detach().double().norm().item() for name, t in items if t.is_floating_point()}


def record(name, out):
    build, opset, options = MODELS[name]
    torch.manual_seed(0)
    module, batches = build()
    module.train()
    inputs = list(batches[0])
    keywords = dict(dynamo=options.get("dynamo", True), opset_version=opset, input_names=inputs, output_names=["loss"])
    if keywords["dynamo"]:
        keywords.update(optimize=False, external_data=False)
        if options.get("dynamic"):
            dims = {0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("seq", min=2, max=60)}
            keywords["dynamic_shapes"] = {key: dict(dims) for key in inputs}
    else:
        keywords.update(do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING)
    torch.onnx.export(copy.deepcopy(module), tuple(batches[0].values()), str(out / f"{name}.onnx"), **keywords)
    result = {"torch": torch.__version__, "opset": opset, "inputs": inputs, "steps": STEPS}
    if options.get("dynamic"):
        result["bind"] = dict(zip(("batch", "seq"), batches[0][inputs[0]].shape))
    with torch.no_grad():
        result["eval_loss_step0"] = copy.deepcopy(module).eval()(**batches[0]).item()
    sgd = copy.deepcopy(module)
    losses, first = train(sgd, batches, torch.optim.SGD(sgd.parameters(), lr=0.01, momentum=0.9))
    nudged = copy.deepcopy(module)
    with torch.no_grad():
        for p in nudged.parameters():
            p.mul_(1 + 1e-6 * torch.randn_like(p))
    other, _ = train(nudged, batches, torch.optim.SGD(nudged.parameters(), lr=0.01, momentum=0.9))
    result["sgd"] = {"lr": 0.01, "momentum": 0.9, "loss": losses, "param_l2": norms(sgd.named_parameters()), "buffer_l2": norms(sgd.named_buffers()),
                     "loss_noise": [abs(a - b) for a, b in zip(losses, other)]}
    adam = copy.deepcopy(module)
    settings = dict(lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    losses, _ = train(adam, batches, torch.optim.AdamW(adam.parameters(), **settings))
    nudged = copy.deepcopy(module)
    with torch.no_grad():
        for p in nudged.parameters():
            p.mul_(1 + 1e-6 * torch.randn_like(p))
    other, _ = train(nudged, batches, torch.optim.AdamW(nudged.parameters(), **settings))
    result["adamw"] = {**settings, "loss": losses, "loss_noise": [abs(a - b) for a, b in zip(losses, other)]}
    result["grad_l2"] = norms(first.items())
    import safetensors.torch
    tensors = {f"batch{i}.{key}": value.contiguous() for i, batch in enumerate(batches) for key, value in batch.items()}
    tensors.update({f"grad0.{key}": value.contiguous() for key, value in first.items() if value.numel() <= 65536})
    safetensors.torch.save_file(tensors, str(out / f"{name}.safetensors"))
    (out / f"{name}.json").write_text(json.dumps(result, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        try:
            record(name, options.out)
            print(f"made {name}", flush=True)
        except Exception as error:  # one model that cannot be exported must not stop the others
            print(f"skipped {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
