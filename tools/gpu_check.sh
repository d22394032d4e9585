#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: tests on it, benchmarks, a profile, and libuipc beside, in about ten minutes.
# Writes tools/results/DEVICE-DATE.json and a table of the same name (.md). PYTHON names the interpreter.
# Parts that fail or run out of their time are named in the table as not measured; the exit status is then 1.
# Exit status 2: there is no usable GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"

problem=$("$python" -c 'from abd.backends.cuda_support import cuda_problem; print(cuda_problem())') || exit 2
if [ -n "$problem" ]; then
    echo "no GPU check: $problem; \`abd doctor\` says what is missing" >&2
    exit 2
fi
name=$("$python" -c 'import warp as wp; wp.config.log_level = wp.LOG_ERROR; print(wp.get_device("cuda").name)')
slug=$(echo "$name" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9-')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tests=-1
if grep -qs -e '--device' tests/conftest.py; then
    echo "tests on the device" >&2
    timeout 150 "$python" -m pytest -q --device cuda
    tests=$?
fi

echo "benchmarks" >&2
bench=(timeout 200 "$python" tools/bench/run.py --devices cuda --repeats 1 --limit 40 --steps 20)
"${bench[@]}" --scenes wrecking_ball chain_net:16,32 pile:1000,10000 chain:1000,10000,100000 --out "$work/rows.json" >"$work/rows.txt"

echo "profile" >&2
timeout 60 "$python" -m abd.cli bench wrecking_ball --device cuda --steps 20 --profile --json >"$work/profile.json"

echo "libuipc" >&2
timeout 180 "$python" tools/bench/peer_libuipc.py --scenes wrecking_ball pile:1000 --steps 30 \
    --out "$work/peer.json" >"$work/peer.txt"

"$python" tools/bench/merge.py "$work" --tests "$tests" --device "$name" \
    --out "tools/results/$slug-$(date -u +%F).json"
