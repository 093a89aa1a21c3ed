#!/bin/sh
# run.sh LOGS JOBS PROGRAM...: runs test programs that print TAP, through prove where perl has it; keeps each program's
# output in LOGS, then says what failed, what was left out, and one line about everything. Fails if any test did. Without
# arguments it only looks for what the scripts call.
missing=
for tool in awk basename cat chmod comm cp cut date diff dirname find grep head ls mkdir mktemp mv rm rmdir sed sort tr xargs; do
    command -v $tool >/dev/null 2>&1 || missing="$missing $tool"
done
[ -z "$missing" ] || { echo "test: the usual POSIX tools are needed, of which PATH lacks:$missing" >&2; exit 1; }
[ $# -gt 0 ] || exit 0

logs=$1 jobs=$2
shift 2
rm -rf "$logs"
mkdir -p "$logs" || exit 1

if [ "${FA_PROVE:-1}" != 0 ] && command -v prove >/dev/null 2>&1 && prove --version >/dev/null 2>&1; then
    prove --norc --jobs "$jobs" --exec "sh tests/log.sh $logs" "$@"
    status=$?
else
    echo "# without prove (perl): plain output"
    status=0
    for program in "$@"; do
        name=$(basename "$program")
        sh tests/log.sh "$logs" "$program" >/dev/null
        code=$?
        if awk -f tests/tap.awk -v code=$code "$logs/$name.tap"; then
            echo "$name .. ok"
        else
            echo "$name .. FAILED (exit status $code, tests: $(grep -cE '^(ok|not ok)' "$logs/$name.tap"), planned: $(sed -n 's/^1\.\.//p' "$logs/$name.tap"))"
            status=1
        fi
    done
fi

# What went wrong, with the notes before it.
for log in "$logs"/*.tap; do
    awk -v name="$(basename "$log" .tap)" '
        /^#/ { notes = notes "    " $0 "\n"; next }
        /^not ok/ || /^Bail out/ { if (!said++) print name ":"; printf "%s    %s\n", notes, $0 }
        { notes = "" }' "$log"
done

# What was left out, each reason once.
awk '/^ok [0-9]+ # SKIP/ { sub(/^ok [0-9]+ # SKIP /, ""); if (!seen[$0]++) print "left out: " $0 }' "$logs"/*.tap

cat "$logs"/*.tap | awk -v programs=$# -v status=$status '
    /^not ok/ { failed++; next }
    /^ok [0-9]+ # SKIP/ { skipped++; next }
    /^ok/ { passed++ }
    END {
        printf "test: %s: %d programs, %d tests passed, %d failed, %d left out\n", status ? "FAILED" : "PASSED", programs,
               passed, failed, skipped
    }'
exit $status
