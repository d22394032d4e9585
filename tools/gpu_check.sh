#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: what has to work at all (tools/gpu_smoke.py), tests on it, benchmarks, profiles, and
# libuipc beside, in less than ten minutes. Writes tools/results/DEVICE-DATE.json and a table of the same name (.md), anew
# after every part, and beside them DEVICE-DATE-logs.tar.gz with all that was printed. What fails or runs out of its time is
# named in the table as not measured, or as failed; the exit status is then 1. Exit status 2: there is no usable GPU.
#
#   PYTHON                 the interpreter [python3]; it needs the packages of '.[gpu]', pytest and ipctk, and pyuipc==0.0.29
#   ABD_GPU_CHECK_DEVICE   cuda, cuda:N; with cpu everything runs on the processor in tiny sizes, which tests this script
#   ABD_FIXTURES           folder of the scenes wrecking_ball and chain_net [shared/fixtures beside the checkout, or in it]
#   ABD_GPU_CHECK_SECONDS  in all [480]
#   ABD_GPU_CHECK_PARTS    of: smoke memcheck initcheck tests contact raw contact-warp peer chains profile [all]
#   ABD_GPU_CHECK_OUT      folder of the results [tools/results]
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
device=${ABD_GPU_CHECK_DEVICE:-cuda}
deadline=$((SECONDS + ${ABD_GPU_CHECK_SECONDS:-480}))
out=${ABD_GPU_CHECK_OUT:-tools/results}
parts=" ${ABD_GPU_CHECK_PARTS:-smoke memcheck initcheck tests contact raw contact-warp peer chains profile} compile compile-peer "
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1

if [ "$device" != cpu ]; then
    problem=$("$python" -c 'from abd.backends.device.cuda_support import cuda_problem; print(cuda_problem())') || exit 2
    if [ -n "$problem" ]; then
        echo "no GPU check: $problem; \`abd doctor\` says what is missing" >&2
        exit 2
    fi
fi
name_of_gpu=$("$python" -c "import warp as wp; wp.config.log_level = wp.LOG_ERROR; print(wp.get_device('$device').name)") || exit 2
slug=$(echo "$name_of_gpu" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9-')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "${ABD_FIXTURES:-}" ] && [ -d shared/fixtures ] && export ABD_FIXTURES=$PWD/shared/fixtures

contact=(wrecking_ball chain_net:16,32 pile:1000,10000,100000)
chains=(chain:1000,10000,100000,1000000)
profiled=(wrecking_ball pile:10000 chain:100000)
peers=(wrecking_ball pile:1000,10000) by_hand=(wrecking_ball pile:100000)
backend=cuda rounds=3 workers=6 selected=() twins=(1000 30000)
own=() few=(--steps 10) some=(--steps 30)  # steps: each family's own, and fewer
if [ "$device" = cpu ]; then
    contact=(chain_net:4 pile:10) chains=(chain:10,20) profiled=(pile:10) peers=(pile:10) by_hand=(pile:10)
    backend=none rounds=1 workers=1 twins=(50) selected=(-k "test_what_was_asked_for_is_read")
    own=(--steps 2) few=(--steps 2) some=(--steps 2)
fi

# part NAME SECONDS COMMAND...: runs a command for at most so long, and not beyond the deadline; keeps its exit status and
# what it took. Standard output goes to NAME.txt, the other one to NAME.log and, its end, to the terminal if it failed.
part() {
    local name=$1 limit=$2 left=$((deadline - SECONDS)) begin=$SECONDS status
    shift 2
    [[ $parts == *" $name "* ]] || return 0
    [ "$limit" -gt "$left" ] && limit=$left
    if [ "$limit" -lt 1 ]; then
        status=124
        echo "no time was left" >"$work/$name.log"
    else
        echo "$name, at most $limit s" >&2
        timeout --kill-after=5 "$limit" "$@" >"$work/$name.txt" 2>"$work/$name.log"
        status=$?
    fi
    echo "{\"status\": $status, \"seconds\": $((SECONDS - begin))}" >"$work/$name.part"
    [ "$status" -ne 0 ] && { echo "$name: exit status $status" && tail -n 5 "$work/$name.log"; } >&2
    # whatever comes next, what there is stays
    report >/dev/null
    return 0
}

# What was found so far, as results, table and logs; its status is 1 unless all was done and nothing failed.
report() {
    (
        flock 9
        "$python" tools/bench/merge.py "$work" --device "$name_of_gpu" --out "$results.json"
        status=$?
        tar -czf "$results-logs.tar.gz" -C "$work" --exclude=lock .
        exit $status
    ) 9>"$work/lock"
}

results=$out/$slug-$(date -u +%F)
mkdir -p "$out"
"$python" -m abd.cli doctor >"$work/doctor.txt" 2>&1

# Where graphs or transfers fail nothing else can work.
if [ "$device" = cpu ]; then smoked=emulated; else smoked=$device; fi
part smoke 240 "$python" tools/gpu_smoke.py --device "$smoked" --out "$work/smoke"
if grep -q '^stopped' "$work/smoke.txt" 2>/dev/null; then
    cat "$work/smoke.txt" >&2
    report
    exit 1
fi

# Kernels are compiled first, all at once; whatever comes then finds them in the cache.
part compile 60 "$python" tools/bench/one_case.py stack 10 --device "$device" --steps 1

# What is not timed shares the machine: the tests, in a few processes, the sanitizers on small scenes, and the driver's
# compiling of libuipc's kernels, which are built for other GPUs and kept in the driver's cache.
export CUDA_CACHE_MAXSIZE=4294967296
checker=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
if [ "$device" != cpu ]; then
    part compile-peer 120 "$python" tools/bench/peer_libuipc.py --only-warm &
    for tool in memcheck initcheck; do
        # launch by launch: of arrays that graphs read it takes some for lost (NVIDIA/warp#1406)
        part "$tool" 80 "${checker:-compute-sanitizer}" --tool "$tool" --error-exitcode 99 --target-processes all \
            "$python" tools/gpu_smoke.py --stage scenes --device "$device" &
    done
fi
parallel=()
[ "$workers" -gt 1 ] && "$python" -c 'import xdist' 2>/dev/null && parallel=(-n "$workers")
part tests 120 "$python" -m pytest -q --device "$device" "${parallel[@]}" "${selected[@]}"
wait

bench=("$python" tools/bench/run.py --devices "$device" --repeats 1 --limit 25 --warm)
part contact 120 "${bench[@]}" "${own[@]}" --scenes "${contact[@]}" --out "$work/contact.json"
part raw 40 "$python" tools/bench/raw_kernels.py --device "$device" --bodies "${twins[@]}" --json "$work/raw.json"
ABD_RAW=0 part contact-warp 60 "${bench[@]}" "${own[@]}" --scenes "${by_hand[@]}" --out "$work/contact-warp.json"
part peer 110 "$python" tools/bench/peer_libuipc.py --device "$device" --backend "$backend" --scenes "${peers[@]}" \
    "${some[@]}" --rounds "$rounds" --limit 15 --budget 60 --out "$work/peer.json"
part chains 100 "${bench[@]}" "${few[@]}" --variant exact --scenes "${chains[@]}" --out "$work/chains.json"
part profile 70 "${bench[@]}" "${some[@]}" --variant exact --variant "" --profile --scenes "${profiled[@]}" \
    --out "$work/profile.json"

report
