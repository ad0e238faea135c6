#!/usr/bin/env python3
"""Checks who may know whom (DESIGN §2): every project #include against the table below. Prints each violation; exit 1 if any."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Room -> prefixes of project headers it may include. Headers of the room itself are always allowed.
RUNTIME = ["plimsoll/Support/", "plimsoll/Runtime/", "plimsoll/Artifact/", "runtime/"]
ALLOWED = {
    "include/plimsoll/Support": ["plimsoll/Support/"],
    "include/plimsoll/Planner": ["plimsoll/Support/", "plimsoll/Planner/"],
    "include/plimsoll/Runtime": ["plimsoll/Support/", "plimsoll/Runtime/", "runtime/Artifact/"],
    "lib/Planner": ["plimsoll/Support/", "plimsoll/Planner/", "lib/Planner/"],
    "runtime/Artifact": ["plimsoll/Support/", "runtime/Artifact/"],
    "runtime/Proof": ["plimsoll/Support/", "plimsoll/Planner/", "runtime/Artifact/"],
    "runtime/Kernels": ["plimsoll/Support/", "runtime/Artifact/", "runtime/Core/Backend.h"],
    "runtime/CPU": ["plimsoll/Support/", "runtime/Artifact/", "runtime/Core/Backend.h", "runtime/Kernels/"],
    "runtime": RUNTIME,
    "dialects/Graph": ["dialects/Graph/"],
    "dialects/Plan": ["dialects/Plan/"],
    "lib/Reference": ["dialects/Graph/", "plimsoll/Support/"],
    "lib/Frontend/ONNX": ["dialects/Graph/", "plimsoll/Support/"],
    "lib/Codegen": ["dialects/Graph/", "lib/Codegen/", "plimsoll/Support/", "runtime/Core/Backend.h"],
    "lib/Passes": ["dialects/", "lib/Passes/", "lib/Codegen/Target.h", "lib/Codegen/Kernel.h", "plimsoll/", "runtime/Core/Backend.h", "runtime/Artifact/",
                   "runtime/Proof/EntryProof.h"],
    "lib/Emit": ["dialects/", "lib/Passes/", "lib/Frontend/ONNX/WeightStore.h", "plimsoll/", "runtime/Artifact/", "runtime/Core/",
                 "runtime/Proof/"],
    "lib/Pipeline": ["dialects/", "lib/", "plimsoll/", "runtime/Artifact/", "runtime/Proof/EntryProof.h", "runtime/CPU/CpuBackend.h"],
    "tools/plimsoll-run": RUNTIME,
    "tools/plimsoll-inspect": RUNTIME + ["plimsoll/Planner/"],
    "tools": ["dialects/", "lib/", "plimsoll/", "runtime/"],
}
PROJECT = ("plimsoll/", "runtime/", "dialects/", "lib/", "tools/")
# LLVM and CUDA headers stay out of these.
NO_LLVM = ("include/", "runtime/", "lib/Planner/", "tools/plimsoll-run/", "tools/plimsoll-inspect/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')


def room_of(path):
    parts = path.split("/")
    for length in range(len(parts) - 1, 0, -1):
        room = "/".join(parts[:length])
        if room in ALLOWED:
            return room
    return None


def violations(path):
    room = room_of(path)
    if room is None:
        yield f"{path}: no room; add it to utils/check-layers.py"
        return
    allowed = ALLOWED[room] + [room + "/", room.replace("include/", "") + "/"]
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1)
        if header.startswith(PROJECT) and not any(header.startswith(prefix) for prefix in allowed):
            yield f"{path}:{number}: {room} may not include {header}"
        if header.startswith(("llvm/", "mlir/", "lld/")) and path.startswith(NO_LLVM):
            yield f"{path}:{number}: {room} may not include LLVM's {header}"
        if re.match(r"(cuda|cudnn|cublas|nccl)", header) and "/CUDA/" not in path:
            yield f"{path}:{number}: CUDA headers belong in runtime/CUDA and lib/Codegen/CUDA, found {header}"


def main():
    files = sorted(str(path.relative_to(ROOT)) for top in ("include", "lib", "runtime", "dialects", "tools")
                   for suffix in ("*.h", "*.cpp", "*.inc") for path in (ROOT / top).rglob(suffix))
    found = [line for path in files for line in violations(path)]
    print("\n".join(found) if found else f"{len(files)} files keep to their layers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
