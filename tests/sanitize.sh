#!/bin/sh
# sanitize.sh PROGRAM...: runs test programs for the GPU under compute-sanitizer, with few random shapes. Prints TAP.
# TOOLS: which of its tools (memcheck racecheck synccheck initcheck); LIMIT: seconds for each run, after which it is left out.
. "$(dirname "$0")/harness/tap.sh"
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -z "$sanitizer" ] || [ $# = 0 ]; then
    skip "compute-sanitizer: $([ $# = 0 ] && echo "it needs a GPU and nvcc" || echo "not found")"
    tap_end
fi
FA_ROUNDS=${FA_ROUNDS:-1}
export FA_ROUNDS
limit=
command -v timeout >/dev/null 2>&1 && limit="timeout ${LIMIT:-600}"
for tool in ${TOOLS:-memcheck racecheck synccheck initcheck}; do
    options= # some tests make an error of CUDA, to see that it is left alone
    [ "$tool" != memcheck ] || options='--report-api-errors no'
    for program in "$@"; do
        what="$(basename "$program") under $tool"
        $limit "$sanitizer" --tool "$tool" $options --error-exitcode 99 "$program" >"$work/log" 2>&1
        status=$?
        grep -E '^=====|^not ok' "$work/log" | tail -n 12 >"$work/found"
        [ -s "$work/found" ] || tail -n 12 "$work/log" >"$work/found"
        if [ $status = 124 ]; then
            skip "$what: not done after ${LIMIT:-600} s"
        elif [ $status = 0 ] && ! grep -qE '^ok [0-9]+ - ' "$work/log"; then
            skip "$what: $(sed -n 's/^ok [0-9]* # SKIP //p' "$work/log" | head -n 1)"
        else
            ok $status "$what" "$work/found"
        fi
    done
done
tap_end
