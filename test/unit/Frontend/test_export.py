#!/usr/bin/env python3
"""plimsoll.export: what the file records, and that attention dropout is never lost silently. Exit 77 without PyTorch and onnx."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "python"))
sys.dont_write_bytecode = True
try:
    import onnx
    import torch
    import torch.nn.functional as F
    import onnxscript  # noqa: F401 (the exporter needs it)
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
from plimsoll.export import AttentionDropoutError, export_for_training


class Tiny(torch.nn.Module):
    def __init__(self, attention_dropout):
        super().__init__()
        self.embed, self.head, self.norm = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False), torch.nn.BatchNorm1d(4)
        self.head.weight = self.embed.weight
        self.attention_dropout = attention_dropout

    def forward(self, ids):
        h = self.embed(ids)[:, None]
        h = h + F.scaled_dot_product_attention(h, h, h, is_causal=True, dropout_p=self.attention_dropout)
        return self.head(self.norm(h[:, 0].transpose(1, 2)).transpose(1, 2))


def loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class ExportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "model.onnx")
        self.ids = torch.arange(10).reshape(2, 5) % 9

    def tearDown(self):
        self.folder.cleanup()

    def test_records_buffers_and_tied_names_and_changes_nothing(self):
        module = Tiny(0.0).eval()
        mean = module.norm.running_mean.clone()
        random = torch.random.get_rng_state()
        export_for_training(module, (self.ids, self.ids), self.path, loss)
        model = onnx.load(self.path)
        notes = {entry.key: entry.value.split("\n") for entry in model.metadata_props}
        self.assertIn("net.norm.running_mean", notes["plimsoll.buffers"])
        self.assertEqual(notes["plimsoll.aliases"], ["net.head.weight\tnet.embed.weight"])
        self.assertFalse(module.training)
        self.assertTrue(torch.equal(module.norm.running_mean, mean))
        self.assertTrue(torch.equal(torch.random.get_rng_state(), random))

    def test_refuses_attention_dropout(self):
        with self.assertRaisesRegex(AttentionDropoutError, r"1 attention calls drop probabilities \(p=0.25\)"):
            export_for_training(Tiny(0.25), (self.ids, self.ids), self.path, loss)
        self.assertFalse(os.path.exists(self.path))

    def test_expands_attention_dropout(self):
        export_for_training(Tiny(0.25), (self.ids, self.ids), self.path, loss, attention_dropout="expand")
        self.assertEqual([node.op_type for node in onnx.load(self.path).graph.node].count("Dropout"), 1)


if __name__ == "__main__":
    unittest.main()
