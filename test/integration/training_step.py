#!/usr/bin/env python3
"""The training step of two real models, the small GPT of examples/gpt and the cnn oracle, seen from outside: same input gives the same
bytes, runs repeat bitwise, threads matter only where oneDNN says so, resuming equals not stopping, evaluation changes nothing."""
import sys

import plimsoll_test as t

GPT_SHAPE = ["--bind", "batch=2", "--bind", "seq=16", "--threads", 2]
CNN = t.SMALL_ORACLES / "cnn.onnx"


def gpt_data(suite):
    tokens = t.write_tokens(suite.scratch / "tokens.bin", 5000, 64)
    return {"ids": f"tokens({tokens},u16,vocab=64)", "labels": f"tokens({tokens},u16,shift=1,vocab=64)"}


def cnn_data(suite):
    batches = t.SMALL_ORACLES / "cnn.safetensors"
    return {name: f"safetensors({batches},key=batch{{i}}.{name})" for name in ("x", "y")}


def compiles_to_the_same_bytes(suite, name, model, flags):
    for folder in ("one", "two"):
        (suite.scratch / folder).mkdir(exist_ok=True)
        t.compile_model(model, suite.scratch / folder / f"{name}.plim", *flags)
    for ending in ("plim", "safetensors"):
        one, two = ((suite.scratch / folder / f"{name}.{ending}").read_bytes() for folder in ("one", "two"))
        suite.check(one == two and len(one) > 1000, f"{name}.{ending} is byte-identical when compiled twice, in two folders")
    return suite.scratch / "one" / f"{name}.plim"


def run_to(suite, artifact, data, steps, out, *flags, seed=5):
    """Trains into scratch/out; gives the loss lines and the last checkpoint."""
    folder = suite.scratch / out
    report = t.must("plimsoll-run", "train", artifact, *t.data_flags(data), "--steps", steps, "--out", folder, "--lr", 1e-3, "--seed", seed, "--json", *flags)
    lines = t.read_metrics(folder / "metrics.jsonl")
    return lines, folder / (folder / "latest").read_text().strip(), t.json.loads(report)


def numbers(lines):
    return [{key: line[key] for key in ("step", "loss", "grad_norm", "counted_tokens") if key in line} for line in lines]


def repeats(suite, name, artifact, data):
    """Run to run, and one thread against two. Our own kernels add in an order that does not depend on the thread count; oneDNN's
    convolutions may split a sum differently (docs of runtime/CPU), so the cnn is compared within a bound there."""
    first, state, report = run_to(suite, artifact, data, 6, f"{name}-first")
    again, state_again, _ = run_to(suite, artifact, data, 6, f"{name}-again")
    single, state_single, _ = run_to(suite, artifact, data, 6, f"{name}-single", "--threads", 1)
    suite.equal(len(first), 6, f"{name}: a metrics line for every step")
    suite.check(len({line["loss"] for line in first}) == 6, f"{name}: the losses move")
    suite.equal(numbers(first), numbers(again), f"{name}: losses repeat bitwise from run to run")
    suite.equal(t.differing(state, state_again), [], f"{name}: every state tensor repeats bitwise from run to run")
    if name == "gpt":
        suite.equal(numbers(first), numbers(single), f"{name}: losses are bitwise equal with 1 and 2 threads")
        suite.equal(t.differing(state, state_single), [], f"{name}: every state tensor is bitwise equal with 1 and 2 threads")
    else:
        # Six steps of f32 sums in another order: 1e-5 relative is a hundred roundings.
        suite.near([line["loss"] for line in single], [line["loss"] for line in first], 1e-5 * first[0]["loss"], f"{name}: losses agree with 1 and 2 threads")
    return report


def keeps_the_promise(suite, name, report):
    memory = report["memory"]
    for line in ("training", "process"):
        promised, measured = memory[f"promised_{line}_bytes"], memory[f"measured_{line}_bytes"]
        suite.check(0 < measured <= promised, f"{name}: {line} memory, {measured:,} measured <= {promised:,} promised")


def evaluation_changes_nothing(suite, name, artifact, data):
    """Evaluating between the steps leaves the run as it was."""
    plain, state, _ = run_to(suite, artifact, data, 4, f"{name}-plain")
    evaluated = [word for port, source in data.items() for word in ("--eval-data", f"{port}={source}")]
    mixed, state_mixed, _ = run_to(suite, artifact, data, 4, f"{name}-mixed", *evaluated, "--eval-every", 1, "--eval-batches", 1)
    suite.equal(numbers(mixed), numbers(plain), f"{name}: eval_step between the steps changes no loss")
    suite.equal(t.differing(state, state_mixed), [], f"{name}: eval_step changes no state tensor")


def forward_gives_logits(suite, artifact, data):
    output = suite.scratch / "logits.safetensors"
    t.must("plimsoll-run", "forward", artifact, "--data", f"ids={data['ids']}", "--output", output)
    dtype, shape, _ = tensor = t.read_safetensors(output)["logits"]
    suite.equal((dtype, shape), ("F32", [2, 16, 64]), "gpt: forward writes the logits")
    # At the start the model knows nothing: logits of size about 0.02 * sqrt(128), far from constant and far from 10.
    suite.check(0.01 < max(map(abs, t.values(tensor))) < 10, "gpt: the logits are of the size an untrained model gives")


def resumes(suite, name, artifact, data, *flags):
    """Ten steps straight, and four, then six more from the checkpoint (case 47 does this with dropout). Everything that is saved is equal bit by bit:
    parameters, moments, step counter, random state, data cursor; so are the learning rates, and the losses of the later steps."""
    schedule = ["--schedule", "cosine", "--warmup", 3, "--decay-steps", 10]
    whole, state, _ = run_to(suite, artifact, data, 10, f"{name}-whole", *schedule, *flags)
    run_to(suite, artifact, data, 4, f"{name}-parts", *schedule, *flags)
    parts, state_parts, _ = run_to(suite, artifact, data, 10, f"{name}-parts", *schedule, *flags, "--resume", "latest")
    suite.equal(numbers(parts), numbers(whole), f"{name}: 4 + resume + 6 gives the losses of 10 straight steps")
    suite.equal([line["lr"] for line in parts], [line["lr"] for line in whole], f"{name}: and the same learning rates")
    suite.equal(t.differing(state, state_parts), [], f"{name}: every checkpoint tensor is bitwise equal")
    suite.equal(t.read_safetensors(state)[None], t.read_safetensors(state_parts)[None], f"{name}: and the metadata (step, seed, data cursor)")
    return whole, t.read_safetensors(state)


def main():
    suite = t.Suite("training-step")
    models = [("gpt", t.GPT, [*GPT_SHAPE, "--optimizer", "adamw", "--clip-norm", 1], gpt_data(suite)),
              ("cnn", CNN, ["--threads", 2, "--optimizer", "sgd", "--momentum", 0.9], cnn_data(suite))]
    for name, model, flags, data in models:
        artifact = compiles_to_the_same_bytes(suite, name, model, flags)
        keeps_the_promise(suite, name, repeats(suite, name, artifact, data))
        evaluation_changes_nothing(suite, name, artifact, data)
        if name == "gpt":
            forward_gives_logits(suite, artifact, data)
    accumulating = t.compile_model(t.GPT, suite.scratch / "accumulating.plim", *GPT_SHAPE, "--optimizer", "adam", "--accumulation", 2)
    resumes(suite, "gpt", accumulating, gpt_data(suite))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
