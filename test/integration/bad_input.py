#!/usr/bin/env python3
"""What a damaged, hostile or mistaken input gets: a message that names it, the documented exit code, and nothing lost.

Exit codes: 2 usage, 3 bad input, 4 unsupported, 5 does not fit, 7 numeric stop, 8 version mismatch.
"""
import math
import os
import resource
import shutil
import struct
import sys

import plimsoll_test as t

SHAPE = ["--bind", "batch=2", "--bind", "seq=16"]


class Files:
    """A small GPT artifact with its data, and a run of two steps; `fresh` copies artifact and weights to be damaged."""

    def __init__(self, suite):
        self.suite, self.folder = suite, suite.scratch
        self.step = t.compile_model(t.GPT, self.folder / "step.plim", *SHAPE, "--threads", 2, "--optimizer", "adamw")
        self.weights = self.folder / "step.safetensors"
        self.tokens = t.write_tokens(self.folder / "tokens.bin", 2000, 64)
        self.data = {"ids": f"tokens({self.tokens},u16)", "labels": f"tokens({self.tokens},u16,shift=1)"}
        self.flags = t.data_flags(self.data)
        self.run = self.folder / "run"
        t.must("plimsoll-run", "train", self.step, *self.flags, "--steps", 2, "--out", self.run)

    def fresh(self, name):
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(self.step, folder)
        shutil.copy(self.weights, folder)
        return folder / "step.plim"

    def train(self, artifact, *flags, steps=1, data=None):
        words = self.flags if data is None else t.data_flags(data)
        return ["plimsoll-run", "train", artifact, *words, "--steps", steps, "--metrics", self.folder / "metrics.jsonl", *flags]

    def compile(self, *flags, model=t.GPT, shape=SHAPE):
        return ["plimsoll-compile", model, "-o", self.folder / "new.plim", *shape, *flags]


def fingerprints(folder):
    """{file name: hash}, without the metrics, which a failing run may add to."""
    return {file.name: hash(file.read_bytes()) for file in folder.iterdir() if file.name != "metrics.jsonl"}


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def artifacts(suite, files):
    """Truncated at many places, and with one bit flipped at many places, code and texts included: always refused, never run."""
    size = files.step.stat().st_size
    codes = {}
    for cut in [0, 3, 8, 100, size // 3, size // 2, size - 1]:
        artifact = files.fresh("cut")
        os.truncate(artifact, cut)
        codes[cut] = t.run(*files.train(artifact)).returncode
    suite.check(set(codes.values()) <= {3, 8}, "an artifact truncated at seven places exits 3 or 8", codes)
    suite.expect(3, "step.plim", *files.train(artifact))
    flipped = {}
    for index in range(60):
        artifact = files.fresh("flip")
        position = (index * 2654435761 + 17) % size
        flip(artifact, position)
        flipped[position] = t.run("plimsoll-inspect", "verify", artifact).returncode
    suite.check(set(flipped.values()) <= {3, 8}, "an artifact with one bit flipped at sixty places exits 3 or 8 each time", flipped)
    suite.expect(3, ["flip/step.plim", "A1"], *files.train(artifact))
    artifact = files.fresh("text")
    artifact.write_text("this is no artifact at all, but long enough to be one\n" * 50)
    suite.expect(3, "text/step.plim", *files.train(artifact))
    suite.expect(3, "none.plim", *files.train(files.folder / "none.plim"))


def weights(suite, files):
    artifact = files.fresh("w1")
    os.truncate(artifact.with_suffix(".safetensors"), 1_000_000)
    suite.expect(3, "truncated", *files.train(artifact))
    t.write_safetensors(artifact.with_suffix(".safetensors"), {"other": ("F32", [2], [1.0, 2.0])})
    suite.expect(3, ["bytes, expected", "put the file of the compilation beside the artifact"], *files.train(artifact))
    artifact = files.fresh("w2")
    flip(artifact.with_suffix(".safetensors"), files.weights.stat().st_size - 5)
    suite.expect(3, ["step.safetensors", "hash"], *files.train(artifact))
    artifact = files.fresh("w3")
    artifact.with_suffix(".safetensors").unlink()
    suite.expect(3, "step.safetensors", *files.train(artifact))
    artifact = files.fresh("w4")
    artifact.with_suffix(".safetensors").unlink()
    artifact.with_suffix(".safetensors").symlink_to(files.weights)
    suite.expect(3, ["step.safetensors", "link"], *files.train(artifact))


def checkpoints(suite, files):
    """A checkpoint of another model, a truncated and a bit-flipped one; the old run stays as it was."""
    cnn = t.compile_model(t.SMALL_ORACLES / "cnn.onnx", files.folder / "cnn.plim", "--optimizer", "sgd")
    batches = t.SMALL_ORACLES / "cnn.safetensors"
    images = {name: f"safetensors({batches},key=batch{{i}}.{name})" for name in ("x", "y")}
    saved = files.run / "step-00000002.safetensors"
    suite.expect(8, ["step-00000002.safetensors", "model"], *files.train(cnn, "--resume", saved, "--out", files.folder / "other", data=images, steps=3))
    cut = files.folder / "cut.safetensors"
    cut.write_bytes(saved.read_bytes()[:5000])
    suite.expect(3, "cut.safetensors", *files.train(files.step, "--resume", cut, "--out", files.folder / "other", steps=3))
    length = bytearray(saved.read_bytes())
    length[0:8] = struct.pack("<Q", 1 << 60)
    cut.write_bytes(length)
    suite.expect(3, "cut.safetensors", *files.train(files.step, "--resume", cut, "--out", files.folder / "other", steps=3))
    swapped = saved.read_bytes().replace(b'"F32"', b'"I32"', 1)
    cut.write_bytes(swapped)
    suite.expect(3, ["cut.safetensors", "expected"], *files.train(files.step, "--resume", cut, "--out", files.folder / "other", steps=3))
    suite.expect(2, "already holds", *files.train(files.step, "--out", files.run, steps=3))


def data(suite, files):
    """Values that the step cannot use name the file or the operator, and end the run before the update."""
    tokens = t.array.array("H", [1] * 100 + [64] + [1] * 200)
    (files.folder / "large.bin").write_bytes(tokens.tobytes())
    large = {"ids": f"tokens({files.folder / 'large.bin'},u16)", "labels": f"tokens({files.folder / 'large.bin'},u16,shift=1)"}
    output = suite.expect(3, ["64", "out of range"], *files.train(files.step, "--no-shuffle", "--out", files.folder / "range", data=large, steps=9))
    suite.check("node_" in output or "embedding" in output.lower() or "gather" in output.lower(), "a token out of range names the operator", output)
    suite.check(not (files.folder / "range" / "latest").exists(), "and saves nothing after it")
    guarded = {port: source.replace("u16", "u16,vocab=64") for port, source in large.items()}
    suite.expect(3, ["large.bin", "64"], *files.train(files.step, "--no-shuffle", data=guarded, steps=9))
    for label, found in ((64, "index 64"), (-1, "index -65"), (-99, "index -163")):  # -100 is the ignored one; negatives are moved down by 64
        batch = t.write_safetensors(files.folder / "label.safetensors", {"y": ("I64", [2, 16], [3] * 31 + [label]), "x": ("I64", [2, 16], [3] * 32)})
        labels = {"ids": f"safetensors({batch},key=x)", "labels": f"safetensors({batch},key=y)"}
        suite.expect(3, [f"{found} out of range", "loss"], *files.train(files.step, data=labels))
        suite.expect(3, f"{found} out of range", "plimsoll-run", "eval", files.step, *t.data_flags(labels))
    batch = t.write_safetensors(files.folder / "label.safetensors", {"y": ("I64", [2, 16], [3] * 31 + [-100]), "x": ("I64", [2, 16], [63] * 32)})
    t.must(*files.train(files.step, data={"ids": f"safetensors({batch},key=x)", "labels": f"safetensors({batch},key=y)"}))
    suite.expect(3, "tokens.bin", *files.train(files.step, data={**files.data, "ids": f"tokens({files.tokens},u16,shift=1990)"}))
    suite.expect(2, "no data for port labels", *files.train(files.step, data={"ids": files.data["ids"]}))
    suite.expect(2, "nonsense", *files.train(files.step, data={**files.data, "nonsense": "constant(1)"}))
    suite.expect(3, "absent.bin", *files.train(files.step, data={**files.data, "ids": f"tokens({files.folder / 'absent.bin'},u16)"}))


def not_a_number(suite, files):
    """NaN in the data is bad input (3); a loss that overflows is a numeric stop (7), and the last good checkpoint stays the latest."""
    mlp = t.compile_model(t.SMALL_ORACLES / "mlp.onnx", files.folder / "mlp.plim", "--optimizer", "sgd")
    batches = t.read_safetensors(t.SMALL_ORACLES / "mlp.safetensors")
    x, y = batches["batch0.x"], batches["batch0.y"]
    good = t.values(x)
    bad = good[:]
    bad[5] = math.nan
    path = t.write_safetensors(files.folder / "nan.safetensors", {"x": ("F32", x[1], bad), "good": ("F32", x[1], good), "y": (y[0], y[1], t.values(y))})
    sources = lambda key: {"x": f"safetensors({path},key={key})", "y": f"safetensors({path},key=y)"}
    suite.expect(3, ["nan.safetensors", "NaN"], *files.train(mlp, data=sources("x")))
    out = files.folder / "explode"
    t.must(*files.train(mlp, "--out", out, "--lr", 0.01, data=sources("good"), steps=2))
    before = fingerprints(out)
    suite.expect(7, "the loss of step", *files.train(mlp, "--out", out, "--resume", "latest", "--lr", 3e38, data=sources("good"), steps=40))
    suite.equal(fingerprints(out), before, "a numeric stop leaves the checkpoints as they were")


def full_disk(suite, files):
    """A file-size limit stands for a full disk: the write fails half-way, and the old checkpoint and `latest` are untouched."""
    out = files.folder / "full"
    shutil.copytree(files.run, out)
    before = fingerprints(out)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
    suite.expect(3, "step-00000003.safetensors", *files.train(files.step, "--out", out, "--resume", "latest", steps=3), preexec_fn=limit)
    suite.equal(fingerprints(out), before, "a full disk leaves the checkpoints as they were, and no half-written file")
    t.must(*files.train(files.step, "--out", out, "--resume", "latest", steps=3))
    suite.equal((out / "latest").read_text().strip(), "step-00000003.safetensors", "with room again, the run goes on from there")
    # The compiler: weights of 3 MB do not fit either.
    folder = files.folder / "compiled"
    folder.mkdir()
    command = ["plimsoll-compile", t.GPT, "-q", "-o", folder / "step.plim", *SHAPE]
    suite.expect(3, "step.", *command, preexec_fn=limit)
    suite.equal(list(folder.iterdir()), [], "a full disk while compiling leaves nothing behind")
    t.must(*command)
    compiled = fingerprints(folder)
    suite.expect(3, "step.", *command, "--accumulation", 2, preexec_fn=limit)
    suite.equal(fingerprints(folder), compiled, "or the artifact that was there")


def places(suite, files):
    """Output places that cannot be written."""
    blocked = files.folder / "file"
    blocked.write_text("x")
    suite.expect(3, ["cannot create", "file"], *files.train(files.step, "--out", blocked / "run"))
    suite.expect(3, "cannot create", "plimsoll-compile", t.GPT, "-q", "-o", files.folder / "no" / "such" / "step.plim", *SHAPE)
    suite.expect(3, "cannot", *files.train(files.step, "--export-weights", files.folder / "no" / "w.safetensors"))
    suite.expect(3, "cannot", "plimsoll-run", "forward", files.step, "--data", f"ids={files.data['ids']}", "--output", files.folder / "no" / "y.npy")


def recipes(suite, files):
    recipe = files.folder / "recipe.toml"
    for code, text, reasons in [
            (3, '[optimizer]\nkimd = "sgd"\n', ["line 2: unknown key 'kimd' in [optimizer]", "known keys: kind, momentum"]),
            (3, "[optimiser]\n", ["line 1: unknown key 'optimiser'", "[optimizer]"]),
            (3, "[optimizer]\nmomentum = true\n", "line 2: key 'momentum' in [optimizer] has the wrong type or range"),
            (3, '[train]\naccumulation = "2"\n', "line 2: key 'accumulation' in [train] has the wrong type or range"),
            (3, "[bind]\nbatch = 2.5\n", "key 'bind' in [recipe] has the wrong type or range"),
            (3, "optimizer = 3\n", "expected a table [optimizer]"),
            (3, "[optimizer\n", "recipe.toml': line"),
            (3, '[memory]\nbudget = "many"\n', "key 'budget' in [memory] has the wrong type or range"),
            (2, '[optimizer]\nkind = "lion"\n', "unknown optimizer 'lion'; expected sgd, adam or adamw"),
            (2, "[train]\naccumulation = 0\n", "accumulation is 0, expected 1 to 1,000,000"),
            (2, "[optimizer]\nbetas = [0.9, 1.0]\n", "betas and momentum must lie in [0, 1)"),
            (2, '[loss]\nkind = "hinge"\n', "unknown loss 'hinge'"),
            (4, '[precision]\npolicy = "int4"\n', "precision 'int4' is not supported")]:
        recipe.write_text(text)
        suite.expect(code, reasons, *files.compile("--recipe", recipe))
    recipe.write_text('[optimizer]\nkimd = "sgd"\n')
    suite.expect(3, "unknown key 'kimd'", *files.compile(f"--recipe={recipe}"))
    suite.expect(3, "absent.toml", *files.compile("--recipe", files.folder / "absent.toml"))
    suite.check(not (files.folder / "new.plim").exists(), "no refused recipe writes an artifact")


def command_lines(suite, files):
    bind = lambda *words: [word for value in words for word in ("--bind", value)]
    for code, flags, shape, reasons in [
            (2, [], bind("batch"), "--bind 'batch' is not name=size"), (2, [], bind("batch=two"), "--bind 'batch=two' is not name=size"),
            (2, [], bind("batch=0", "seq=16"), "dimension 'batch' is bound to 0, expected at least 1"),
            (2, [], bind("batch=-3", "seq=16"), "dimension 'batch' is bound to -3, expected at least 1"),
            (3, [], bind("batch=2"), ["'seq'", "add --bind seq=SIZE"]), (3, [], [], ["add --bind batch=SIZE", "add --bind seq=SIZE"]),
            (3, [], bind("batch=2", "seq=16", "depth=3"), "'depth': names no dimension of the model's inputs"),
            (3, [], bind("batch=4000000000000", "seq=16"), "impossibly large shape"),
            (3, [], bind("batch=99999999999999999999", "seq=16"), "impossibly large shape"),
            (4, ["--precision", "fp8"], SHAPE, "precision 'fp8' is not supported by this version; expected fp32"),
            (2, ["--budget", "1XB"], SHAPE, "--budget '1XB' is not a size"), (2, ["--compile-to", "nowhere"], SHAPE, "unknown phase 'nowhere'"),
            (2, ["--optimizer", "lion"], SHAPE, "unknown optimizer 'lion'"), (2, ["--frobnicate"], SHAPE, "--frobnicate")]:
        suite.expect(code, reasons, *files.compile(*flags, shape=shape))
    suite.expect(2, "no model given", "plimsoll-compile", "-o", files.folder / "new.plim")
    suite.expect(3, "absent.onnx", *files.compile(model=files.folder / "absent.onnx"))
    (files.folder / "broken.onnx").write_bytes(t.GPT.read_bytes()[:100000])
    suite.expect(3, "broken.onnx", *files.compile(model=files.folder / "broken.onnx"))
    huge = t.compile_model(t.GPT, files.folder / "huge.plim", "--bind", "batch=4000000", "--bind", "seq=128")
    suite.expect(5, ["but this machine has", "compile for a smaller budget"], *files.train(huge))


def main():
    suite = t.Suite("bad-input")
    files = Files(suite)
    for part in (artifacts, weights, checkpoints, data, not_a_number, full_disk, places, recipes, command_lines):
        part(suite, files)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
