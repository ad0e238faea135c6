#!/usr/bin/env python3
"""Case 45: external data that leaves the model's folder (CVE-2022-25882, -2024-27318, -2025-51480, -2026-27489, -2026-34445).

Each way out is refused with exit 3, naming the tensor; nothing is written, and the secret's bytes appear in nothing the compiler made.
"""
import os
import sys

import issue_test as t

SECRET = [1234.5678] * 16  # 64 bytes that would be recognised in any output


def model(suite, entries):
    """x @ w with w [4, 4] in a file; entries: {key: value} of its external data."""
    folder = suite.scratch / "models"
    nodes = [t.node("MatMul", ["x", "w"], ["p"]), t.node("ReduceMean", ["p"], ["loss"], keepdims=0)]
    return t.write_model(folder / "model.onnx", nodes, [t.port("x", "F32", [2, 4])], [t.port("loss", "F32", [])], [t.external_tensor("w", "F32", [4, 4], entries)])


def prepare(suite):
    folder, outside = suite.scratch / "models", suite.scratch / "outside"
    for path in (folder / "sub", outside, suite.scratch / "out"):
        path.mkdir(parents=True)
    secret = t.array.array("f", SECRET).tobytes()
    (outside / "secret.bin").write_bytes(secret)
    (suite.scratch / "above.bin").write_bytes(secret)
    for name in ("good.bin", "file..name.bin", "sub/inner.bin"):
        (folder / name).write_bytes(t.array.array("f", [0.5] * 16).tobytes())
    (folder / "link.bin").symlink_to(outside / "secret.bin")
    (folder / "folder").symlink_to(outside)
    (folder / "dangling.bin").symlink_to(outside / "nothing")
    os.link(outside / "secret.bin", folder / "hard.bin")
    return folder, outside


def main():
    suite = t.Suite("case 45")
    folder, outside = prepare(suite)
    out = suite.scratch / "out"
    refused = [
        ({"location": "../above.bin"}, "leaves the model's folder"),
        ({"location": "sub/../../above.bin"}, "leaves the model's folder"),
        ({"location": "sub/../../outside/secret.bin"}, "leaves the model's folder"),
        ({"location": str(outside / "secret.bin")}, "is absolute"),
        ({"location": "link.bin"}, "symbolic link"),
        ({"location": "dangling.bin"}, "symbolic link"),
        ({"location": "folder/secret.bin"}, "symbolic link"),
        ({"location": "hard.bin"}, "hard links"),
        ({"location": "good.bin", "offset": "4"}, "passes the end of 'good.bin'"),
        ({"location": "good.bin", "offset": "0", "length": "68"}, "need 64"),
        ({"location": "good.bin", "offset": "-64"}, "is not a number of bytes"),
        ({"location": "good.bin", "length": "-1"}, "is not a number of bytes"),
        ({"location": "good.bin", "offset": "18446744073709551552", "length": "64"}, "passes the end"),
        ({"location": "good.bin", "offset": "99999999999999999999"}, "is not a number of bytes"),
        ({"location": "good.bin", "dims": "[1000000]"}, "unknown key 'dims'"),
        ({"location": "good.bin", "__class__": "x"}, "unknown key '__class__'"),
        ({"location": "absent.bin"}, "cannot open"),
        ({"location": ""}, "malformed location"),
        ({"offset": "0"}, "no location"),
    ]
    before = sorted(str(path) for path in suite.scratch.rglob("*"))
    for entries, reason in refused:
        output = suite.expect(3, [reason, "external data of tensor 'w'"], "plimsoll-compile", model(suite, entries), "-o", out / "step.plim")
        suite.check("1234.5" not in output, f"45: and {entries} shows nothing of the secret")
    suite.equal(sorted(str(path) for path in suite.scratch.rglob("*")), sorted({*before, str(folder / "model.onnx")}), "45: the refusals wrote nothing anywhere")
    for location in ("good.bin", "file..name.bin", "sub/inner.bin"):
        artifact = t.compile_model(model(suite, {"location": location, "offset": "0", "length": "64"}), out / "step.plim", "--optimizer", "sgd")
        suite.equal(t.values(t.read_safetensors(out / "step.safetensors")["w"]), [0.5] * 16, f"45: '{location}' is accepted")
        suite.check(artifact.exists(), f"45: and compiles")
    return suite.finish()


sys.exit(main())
