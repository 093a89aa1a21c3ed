#!/bin/sh
# mutate.sh [NUMBER...]: puts the faults of tests/mutations.txt into copies of include/, one at a time, and runs the tests
# that should notice, the likeliest first. Fails if a fault survives, does not compile, or no longer fits its file.
# With numbers, only those. Needs what make test needs; faults in GPU files need a GPU and are left out, and said, without.
CC=${CC:-cc}
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
T=${BUILD:-build}/tests
M=${BUILD:-build}/mutate
list=tests/mutations.txt
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
flags="-std=c11 -Og -w -Itests -pthread"
FA_SEED=${FA_SEED:-1} FA_ROUNDS=3
export FA_SEED FA_ROUNDS
limit=
command -v timeout >/dev/null 2>&1 && limit="timeout 120"

# field N NAME: a field of mutation N.
field() {
    awk -v wanted="$1" -v name="$2" '
        /^file / { n++ }
        n == wanted && index($0, name " ") == 1 { print substr($0, length(name) + 2); exit }' "$list"
}

# The copy with the fault; fails if the line is not there (`lines` times, by default once).
change() {
    file=$(field "$1" file)
    rm -rf "$M/$1"
    mkdir -p "$M/$1" && cp -r include "$M/$1/include" || return 1
    FROM=$(field "$1" from) TO=$(field "$1" to) COUNT=$(field "$1" lines) awk '
        BEGIN { from = ENVIRON["FROM"]; to = ENVIRON["TO"]; lines = ENVIRON["COUNT"] + 0; if (!lines) lines = 1 }
        { at = index($0, from) }
        at { n++; $0 = substr($0, 1, at - 1) to substr($0, at + length(from)) }
        { print }
        END { exit n != lines }' "include/fa/$file" >"$M/$1/include/fa/$file"
}

# compiled N OUTPUT SOURCE...: one program against the changed copy.
compiled() {
    number=$1 output=$M/$1/$2
    shift 2
    $CC $flags -I"$M/$number/include" -o "$output" "$@" "$M"/harness/*.o -lm >>"$M/$number/log" 2>&1
}

# suite N NAME: compiles and runs one suite. 0: all pass; 1: the fault is noticed; 2: does not compile.
suite() {
    case $2 in
    forward) compiled "$1" forward "$M/forward_instances.c" tests/suites/forward.c ;;
    contracts) compiled "$1" contracts tests/suites/contracts.c tests/suites/contracts_elsewhere.c ;;
    gpu) "$NVCC" -x cu -std=c++17 -arch=native -w -I"$M/$1/include" -Itests -c -o "$M/$1/gpu.o" "$M/forward_instances.c" \
        >>"$M/$1/log" 2>&1 && "$NVCC" -arch=native -o "$M/$1/gpu" "$M/$1/gpu.o" "$M/gpu_forward.o" "$M/gpu_memory.o" \
        $(ls "$M"/harness/*.o | grep -v /memory.o) -lm -lpthread >>"$M/$1/log" 2>&1 ;;
    *) compiled "$1" "$2" "tests/suites/$2.c" ;;
    esac || return 2
    $limit "$M/$1/$2" >"$M/$1/$2.tap" 2>&1 && ! grep -q '^not ok' "$M/$1/$2.tap" && return 0
    return 1
}

# One mutation: the verdict in $M/N.verdict.
if [ "$1" = --one ]; then
    n=$2
    file=$(field "$n" file)
    verdict=SURVIVED
    if ! change "$n"; then
        verdict="DOES NOT FIT"
    else
        case $file in
        fa.h) suites="types masks forward contracts primitives" ;;
        mask.h | score.h) suites="masks forward contracts" ;;
        kernel/check.h) suites="contracts forward" ;;
        arch/sm80/* | kernel/attention_loop.h | kernel/attention_gpu.h | kernel/gpu.h) suites=gpu ;;
        *) suites="forward contracts primitives" ;;
        esac
        [ "$suites" != gpu ] || [ -n "$GPU" ] || suites= verdict="needs a GPU"
        for suite in $suites; do
            suite "$n" $suite
            case $? in
            1) verdict="noticed by $suite: $(grep -m 1 -E '^not ok|^Bail out' "$M/$n/$suite.tap" | cut -c 1-70)" && break ;;
            2) verdict="DOES NOT COMPILE" && break ;;
            esac
        done
    fi
    echo "$verdict" >"$M/$n.verdict"
    printf '%3d %-30s %s: %s\n' "$n" "$file" "$(field "$n" why)" "$verdict"
    case $verdict in SURVIVED | DOES*) ;; *) rm -rf "${M:?}/$n" ;; esac
    exit 0
fi

mkdir -p "$M/harness" || exit 1
rm -f "$M"/*.verdict
for source in tests/harness/*.c; do
    $CC -std=c11 -O2 -Iinclude -Itests -pthread -c -o "$M/harness/$(basename "$source" .c).o" "$source" || exit 1
done
"$T/pairs" emit tests/mutate.h 0 1 >"$M/forward_instances.c" || exit 1
if [ -n "$GPU" ]; then
    $CC $flags -Iinclude -c -o "$M/gpu_forward.o" tests/suites/forward.c || exit 1
    "$NVCC" -x cu -std=c++17 -arch=native -w -Itests -c -o "$M/gpu_memory.o" tests/harness/memory.c || exit 1
fi

# Without a fault the tests pass: else nothing below would mean anything.
mkdir -p "$M/0" && rm -rf "$M/0/include" && cp -r include "$M/0/include"
for suite in types masks forward contracts primitives ${GPU:+gpu}; do
    suite 0 $suite || { echo "mutate: the tests fail without a fault ($suite): see $M/0/$suite.tap, $M/0/log"; exit 1; }
done

total=$(grep -c '^file ' "$list")
[ $# != 0 ] || set -- $(awk -v n="$total" 'BEGIN { for (i = 1; i <= n; i++) print i }')
for n in "$@"; do echo "$n"; done | GPU="$GPU" NVCC="$NVCC" BUILD="${BUILD:-build}" CC="$CC" xargs -P "$cores" -L 1 sh tests/mutate.sh --one

survived=$(cat "$M"/*.verdict | grep -c '^SURVIVED')
broken=$(cat "$M"/*.verdict | grep -c '^DOES NOT')
gpu=$(cat "$M"/*.verdict | grep -c '^needs a GPU')
noticed=$(cat "$M"/*.verdict | grep -c '^noticed')
echo "mutate: $# faults: $noticed noticed, $survived survived, $broken do not fit or compile, $gpu need a GPU"
[ "$survived" = 0 ] && [ "$broken" = 0 ]
