#!/usr/bin/env python3
"""Case 38: what happens when a step does not fit (sentence-transformers#3145).

Elsewhere the batch was halved behind the user's back, without doubling the accumulation. Plimsoll refuses before the first step, with
the proved bound, and writes nothing; the batch, the accumulation and the number of steps are never changed. A budget that fits changes
neither the promise nor a bit of the result.
"""
import re
import sys

import issue_test as t

SHAPE = ["--bind", "batch=2", "--bind", "seq=16", "--threads", 2, "--accumulation", 2]


def tree(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refuses(suite):
    """Gives the bound that the refusal names."""
    folder = suite.scratch / "refused"
    folder.mkdir()
    artifact = folder / "step.plim"
    output = suite.expect(5, ["needs", "but the budget is 1,000,000", "no placement of this order is below", "bytes are live at step", "parameter:"],
                          "plimsoll-compile", t.GPT, "-q", "-o", artifact, *SHAPE, "--budget", "1MB")
    suite.equal(tree(folder), {}, "38: a refusal writes nothing")
    t.compile_model(t.GPT, artifact, *SHAPE)
    before = tree(folder)
    suite.expect(5, "but the budget is 1,000,000", "plimsoll-compile", t.GPT, "-q", "-o", artifact, *SHAPE, "--budget", "1MB")
    suite.equal(tree(folder), before, "38: a refusal leaves an earlier artifact and its weights as they were")
    bound = int(re.search(r"no placement of this order is below ([\d,]+)", output)[1].replace(",", ""))
    # Parameters (3,271,680 bytes) with one accumulator and, for AdamW, two moments each are always there.
    suite.check(bound >= 4 * 3271680, f"38: the bound, {bound:,} bytes, covers parameters, accumulators and moments")
    return artifact, bound


def fits(suite, free):
    """The smallest budget that is accepted is the arena of the plan without a budget; one byte less is refused."""
    arena = t.json.loads(t.must("plimsoll-inspect", free, "--json"))["memory"]["arena_bytes"]
    tight = t.compile_model(t.GPT, suite.scratch / "tight.plim", *SHAPE, "--budget", arena)
    suite.expect(5, f"but the budget is {arena - 1:,}", "plimsoll-compile", t.GPT, "-q", "-o", suite.scratch / "less.plim", *SHAPE, "--budget", arena - 1)
    tokens = t.write_tokens(suite.scratch / "tokens.bin", 2000, 64)
    data = {"ids": f"tokens({tokens},u16)", "labels": f"tokens({tokens},u16,shift=1)"}
    (lines, state), (lines_tight, state_tight) = (t.train_state(suite, artifact, data, 3) for artifact in (free, tight))
    suite.equal([line["loss"] for line in lines_tight], [line["loss"] for line in lines], "38: under the tightest budget the losses are bitwise the same")
    suite.equal(t.changed(state, state_tight), [], "38: and so is every state tensor")
    suite.equal((len(lines_tight), lines_tight[-1]["step"], lines_tight[-1]["counted_tokens"]), (3, 3, 2 * 2 * 16), "38: three steps of 2 x 2 x 16 tokens, as asked")


def main():
    suite = t.Suite("case 38")
    artifact, _ = refuses(suite)
    fits(suite, artifact)
    return suite.finish()


sys.exit(main())
