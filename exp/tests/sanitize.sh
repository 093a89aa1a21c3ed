#!/bin/sh
# sanitize.sh PROGRAM...: runs test programs for the GPU under compute-sanitizer, with few random shapes. Prints TAP.
# TOOLS: which of its tools (memcheck racecheck synccheck initcheck); LIMIT: seconds for each run, after which it is left out.
. "$(dirname "$0")/harness/tap.sh"
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -z "$sanitizer" ] || [ $# = 0 ]; then
    skip "compute-sanitizer: $([ $# = 0 ] && echo "no GPU and nvcc here" || echo "not found")"
    tap_end
fi
FA_ROUNDS=${FA_ROUNDS:-1}
export FA_ROUNDS
for tool in ${TOOLS:-memcheck racecheck synccheck initcheck}; do
    options= # some tests make an error of CUDA, to see that it is left alone
    [ "$tool" != memcheck ] || options='--report-api-errors no'
    for program in "$@"; do
        what="$(basename "$program") under $tool"
        timeout "${LIMIT:-600}" "$sanitizer" --tool "$tool" $options --error-exitcode 99 "$program" >"$work/log" 2>&1
        status=$?
        grep -E '^=====|^not ok' "$work/log" | tail -n 12 >"$work/found"
        if [ $status = 124 ]; then skip "$what: not done after ${LIMIT:-600} s"; else ok $status "$what" "$work/found"; fi
    done
done
tap_end
