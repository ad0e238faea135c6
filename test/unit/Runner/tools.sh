#!/bin/bash
# The tools as a user meets them: exit codes, messages and files. usage: tools.sh PLIMSOLL_RUN PLIMSOLL_INSPECT MAKE_STEP
set -u
run=$1 inspect=$2 make=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$make" "$work" || exit 1
checks=0 failures=0

# expect CODE TEXT COMMAND...: the command exits with CODE and prints TEXT (stdout or stderr).
expect() {
  local code=$1 text=$2
  shift 2
  "$@" >out.txt 2>&1
  local got=$?
  checks=$((checks + 1))
  if [ $got -ne "$code" ] || ! grep -qF -- "$text" out.txt; then
    failures=$((failures + 1))
    echo "FAILED: $* : exit $got (expected $code), expected text: $text"
    sed 's/^/    /' out.txt | head -20
  fi
}

# check NAME COMMAND...: the command succeeds.
check() {
  local name=$1
  shift
  checks=$((checks + 1))
  if ! "$@" >out.txt 2>&1; then
    failures=$((failures + 1))
    echo "FAILED: $name: $*"
    sed 's/^/    /' out.txt | head -20
  fi
}

x=(--data 'x=npy(x.npy)')

# Help, version, mistakes on the command line.
expect 0 "plimsoll-run 0" "$run" --version
expect 0 "exit codes" "$run" --help
expect 0 "source of an input port" "$run" train --help
expect 2 "subcommand" "$run"
expect 2 "steps" "$run" train step.plim "${x[@]}"
expect 2 "--steps 0, expected at least 1" "$run" train step.plim "${x[@]}" --steps 0
expect 2 "--log-every 0" "$run" train step.plim "${x[@]}" --steps 1 --log-every 0
expect 2 "--lr -1, expected a finite number >= 0" "$run" train step.plim "${x[@]}" --steps 1 --lr=-1
expect 2 "--checkpoint-every needs --out" "$run" train step.plim "${x[@]}" --steps 1 --checkpoint-every 1
expect 2 "--resume latest needs --out" "$run" train step.plim "${x[@]}" --steps 1 --resume
expect 2 "--eval-every needs --eval-data" "$run" train step.plim "${x[@]}" --steps 1 --eval-every 1
expect 2 "schedule" "$run" train step.plim "${x[@]}" --steps 1 --schedule square
expect 2 "no data for port x (f32 [2, 3])" "$run" train step.plim --steps 1
expect 2 "unknown kind 'csv'" "$run" train step.plim --data 'x=csv(x)' --steps 1
expect 2 "--batches 0" "$run" forward step.plim "${x[@]}" --output y.npy --batches 0
expect 2 "give either --prompt or --prompt-tokens" "$run" generate step.plim
expect 2 "--prompt needs --vocab" "$run" generate step.plim --prompt a
expect 2 "'b' is not a token number" "$run" generate step.plim --prompt-tokens 1,b
expect 2 "--temperature -1" "$run" generate step.plim --prompt-tokens 1 --temperature=-1

# Bad input.
expect 3 "none.plim" "$run" train none.plim "${x[@]}" --steps 1
head -c 100 step.plim >cut.plim
expect 3 "cut.plim" "$run" train cut.plim "${x[@]}" --steps 1
expect 3 "sample 5, element 1: NaN" "$run" train step.plim --data 'x=npy(nan.npy)' --steps 9 --no-shuffle
expect 3 "no integer input [B, S]" "$run" generate step.plim --prompt-tokens 1
printf 'x' >file
expect 3 "cannot create the folder file" "$run" train step.plim "${x[@]}" --steps 1 --out file

# Training: loss falls, metrics and checkpoints appear, both memory lines are printed.
expect 0 "training memory  promised" "$run" train step.plim "${x[@]}" --steps 6 --lr 0.1 --out whole --seed 3
expect 0 "process memory   promised" "$run" train step.plim "${x[@]}" --steps 6 --lr 0.1 --out other --seed 3
check "equal runs give equal checkpoints" cmp whole/step-00000006.safetensors other/step-00000006.safetensors
check "six metrics lines" test "$(wc -l <whole/metrics.jsonl)" = 6
check "latest names the checkpoint" grep -qx step-00000006.safetensors whole/latest
check "the loss falls" python3 -c "
import json
loss = [json.loads(line)['loss'] for line in open('whole/metrics.jsonl')]
assert loss[-1] < loss[0], loss"
expect 2 "already holds" "$run" train step.plim "${x[@]}" --steps 6 --out whole
expect 0 "finished at step 2" "$run" train step.plim "${x[@]}" --steps 2 --out other --overwrite
expect 0 '"exit_code": 0' "$run" train step.plim "${x[@]}" --steps 2 --json --metrics m.jsonl
expect 0 "finished" "$run" train step.plim "${x[@]}" --steps 2
check "default metrics file" test -s step.metrics.jsonl

# Resume is bit-identical to not stopping; threads do not matter.
expect 0 "at step 4" "$run" train step.plim "${x[@]}" --steps 4 --lr 0.1 --out parts --seed 3
expect 0 "resumed parts/step-00000004.safetensors" \
  "$run" train step.plim "${x[@]}" --steps 6 --lr 0.1 --out parts --resume latest --threads 2
check "resumed equals whole" cmp whole/step-00000006.safetensors parts/step-00000006.safetensors
check "no step twice" test "$(wc -l <parts/metrics.jsonl)" = 6
expect 2 "was made with --seed 3, not 4" "$run" train step.plim "${x[@]}" --steps 8 --out parts --resume --seed 4
expect 3 "has no checkpoint to resume" "$run" train step.plim "${x[@]}" --steps 8 --out fresh --resume
expect 3 "not a safetensors file" "$run" train step.plim "${x[@]}" --steps 8 --out fresh --resume x.npy
head -c 200 whole/step-00000006.safetensors >cut.safetensors
expect 3 "cut.safetensors" "$run" train step.plim "${x[@]}" --steps 8 --out fresh --resume cut.safetensors

# A signal ends the run after the step, with a checkpoint, and exit code 0.
"$run" train step.plim "${x[@]}" --steps 2000000000 --lr 0.001 --log-every 1000 --out stopped >stopped.txt 2>&1 &
child=$!
for _ in $(seq 200); do test -s stopped/metrics.jsonl && break; sleep 0.05; done
kill -INT $child
wait $child
check "interrupted run exits with 0" test $? = 0
check "interrupted run says so" grep -q "stopped at step" stopped.txt
check "interrupted run saved" test -s "stopped/$(cat stopped/latest)"

# The numeric stop: the loss explodes.
expect 7 "the loss of step" "$run" train step.plim "${x[@]}" --steps 500 --lr 1e20 --out nan
check "a poisoned state is not saved" test ! -e nan/latest
expect 7 "steps; lower --lr" "$run" train step.plim "${x[@]}" --steps 30 --lr 1e20 --out nan --overwrite --on-nan skip-report

# The promise: a process constant nothing can keep.
expect 6 "process memory of" "$run" train greedy.plim "${x[@]}" --steps 1

# Reference kernels and --verify.
expect 0 "verify step 2" "$run" train step.plim "${x[@]}" --steps 1 --lr 0.1 --verify
expect 0 "finished" "$run" train step.plim "${x[@]}" --steps 1 --reference

# Evaluation, forward, weights.
expect 0 "eval loss" "$run" eval step.plim "${x[@]}" --weights whole/step-00000006.safetensors
expect 0 "4 batches (8 of 8 samples)" "$run" eval step.plim "${x[@]}"
expect 0 '"loss"' "$run" eval step.plim "${x[@]}" --json
expect 0 "eval loss" "$run" train step.plim "${x[@]}" --steps 2 --eval-data 'x=npy(x.npy)' --eval-every 1
expect 0 "wrote y.npy: y" "$run" forward step.plim "${x[@]}" --output y.npy
expect 0 "y.batch1" "$run" forward step.plim "${x[@]}" --output y.safetensors --batches 2
expect 0 "finished" "$run" train step.plim "${x[@]}" --steps 1 --lr 0.1 --export-weights w.safetensors
expect 0 "eval loss" "$run" eval step.plim "${x[@]}" --weights w.safetensors
expect 3 "does not hold this model's weights: 'w' is missing" "$run" eval step.plim "${x[@]}" --weights y.safetensors
expect 2 "has no output z; its outputs are: y" "$run" forward step.plim "${x[@]}" --output y.npy --port z

# A full disk while saving (a file-size limit) leaves the old checkpoint and a clear error.
cp -r whole full
expect 3 "step-00000008.safetensors" bash -c "(ulimit -f 0; exec '$run' train step.plim --data 'x=npy(x.npy)' --steps 8 \
  --lr 0.1 --out full --resume --metrics /dev/null) 2>&1 | cat; exit \${PIPESTATUS[0]}"
check "the old checkpoint is untouched" cmp whole/step-00000006.safetensors full/step-00000006.safetensors
check "latest still names it" cmp whole/latest full/latest
check "nothing half-written stays" test "$(ls full | wc -l)" = 3

# The inspector.
expect 0 "plimsoll-inspect 0" "$inspect" --version
expect 0 "promised memory" "$inspect" step.plim
expect 0 "entry eval_step" "$inspect" summary step.plim
expect 0 '"schema": 1' "$inspect" step.plim --json
check "the JSON parses" bash -c "'$inspect' step.plim --json | python3 -m json.tool"
expect 0 "w += x z" "$inspect" commands step.plim --entry train_step
expect 0 "commands 0..5 to the right" "$inspect" arena step.plim --entry train_step
expect 0 "valid, format version 1" "$inspect" verify step.plim
expect 2 "no entry x, the artifact has: train_step, eval_step, forward" "$inspect" step.plim --entry x
expect 2 "--plan 1, but the artifact has 1" "$inspect" step.plim --plan 1
expect 2 "required" "$inspect" summary
expect 3 "cut.plim" "$inspect" cut.plim
expect 3 "x.npy" "$inspect" verify x.npy
expect 3 "none.plim" "$inspect" none.plim

echo "$checks checks, $failures failed"
test $failures = 0
