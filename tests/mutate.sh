#!/bin/sh
# mutate.sh [NUMBER...]: puts the faults of tests/mutations.txt into copies of include/, one at a time, and runs the tests
# that should notice, the likeliest first. Fails if a fault survives, does not compile, or no longer fits its file.
# With numbers, only those. Needs what make test needs. Without a GPU (GPU, GPU_ARCH: gpu.mk) faults in its files are tried on the simulated
# ones. Faults in files that the simulator replaces (ops.h of sm_80 and sm_90) are left out and reported, as are faults in sm_90a's files on an older GPU.
CC=${CC:-cc}
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
T=${BUILD:-build}/tests
M=${BUILD:-build}/mutate
gpu_code="-gencode arch=compute_${GPU_ARCH#sm_},code=${GPU_ARCH:-}"
list=tests/mutations.txt
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
flags="-std=c11 -Og -w -Itests -pthread"
FA_SEED=${FA_SEED:-1} FA_ROUNDS=3
export FA_SEED FA_ROUNDS
limit=
command -v timeout >/dev/null 2>&1 && limit="timeout 600"

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

# compiled N OUTPUT [-I...] SOURCE...: one program against the changed copy.
compiled() {
    number=$1 output=$M/$1/$2
    shift 2
    case $1 in -I*) first=$1 && shift ;; *) first= ;; esac
    $CC $first $flags -I"$M/$number/include" -o "$output" "$@" "$M"/harness/*.o -lm >>"$M/$number/log" 2>&1
}

# built N OUTPUT COMPILE LINK FILE...: a program for a GPU against the changed copy, by two commands; an object is linked as it is.
built() {
    number=$1 output=$M/$1/$2 compile=$3 link=$4 objects=
    shift 4
    for source in "$@"; do
        object=$source
        case $source in *.c)
            object=${output}_$(basename "$source" .c).o
            $compile -I"$M/$number/include" -Itests -c -o "$object" "$source" >>"$M/$number/log" 2>&1 || return 1 ;;
        esac
        objects="$objects $object"
    done
    $link -o "$output" $objects $(ls "$M"/harness/*.o | grep -v /memory.o) -lm -lpthread >>"$M/$number/log" 2>&1
}
# on_gpu N OUTPUT FILE..., on_simulator N OUTPUT FILE...
on_gpu() { # plain...: without what is sm_90a's alone
    name="$1 $2" code=$gpu_code schedule=80
    case "$2 $GPU_ARCH" in plain*) code="-gencode arch=compute_90,code=sm_90" ;; *sm_90a) schedule=90 ;; esac
    shift 2
    built $name "$NVCC -x cu -std=c++17 $code -DTEST_SCHEDULE=$schedule -DTEST_PRODUCTS=products_3 -w" \
        "$NVCC $gpu_code" "$@" "$M/gpu_memory.o"
}
on_simulator() { # the one that the suite's name says
    name="$1 $2" machine=simulated_machine compile="$CXX $SIMULATED"
    case $2 in simulated90_*) machine=simulated90_machine compile="$CXX $SIMULATED_90" ;; esac
    shift 2
    built $name "$compile" "$CXX" "$@" "$M/simulated_memory.o" "$M/$machine.o"
}

# suite N NAME: compiles and runs one suite. 0: all pass; 1: the fault is noticed; 2: does not compile.
suite() {
    case $2 in
    forward) compiled "$1" forward "$M/forward_instances.c" tests/suites/forward.c ;;
    amx_forward) # with the unit in C
        compiled "$1" amx_forward -Itests/simulator/amx "$M/forward_instances.c" tests/suites/forward.c ;;
    contracts) compiled "$1" contracts tests/suites/contracts.c tests/suites/contracts_elsewhere.c ;;
    simulated_forward | simulated90_forward) on_simulator "$1" "$2" "$M/forward_instances.c" "$M/gpu_forward.o" ;;
    simulated_contracts | simulated90_contracts) on_simulator "$1" "$2" tests/suites/contracts.c tests/suites/contracts_elsewhere.c ;;
    simulated*) on_simulator "$1" "$2" "tests/suites/${2#simulated*_}.c" ;;
    gpu | plain) on_gpu "$1" "$2" "$M/forward_instances.c" "$M/gpu_forward.o" ;;
    gpu_sm90) on_gpu "$1" "$2" tests/suites/sm90.c "$M/gpu_products.c" ;;
    gpu_contracts | plain_contracts) on_gpu "$1" "$2" tests/suites/contracts.c tests/suites/contracts_elsewhere.c ;;
    gpu_*) on_gpu "$1" "$2" "tests/suites/${2#gpu_}.c" ;;
    *) compiled "$1" "$2" "tests/suites/$2.c" ;;
    esac || return 2
    $limit "$M/$1/$2" >"$M/$1/$2.tap" 2>&1 && ! grep -q '^not ok' "$M/$1/$2.tap" && return 0
    [ $? = 124 ] && echo "not ok - it did not end: $limit" >>"$M/$1/$2.tap"
    return 1
}

# with_clusters SUITE...: those that show more on the simulated GPU with clusters, there.
with_clusters() {
    for suite in "$@"; do
        case $suite in simulated_rows | simulated_layernorm | simulated_row_softmax | simulated_cross_entropy) echo "simulated90_${suite#simulated_}" ;; esac
    done
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
        mask.h | kernel/mask_*.h | score.h) suites="masks forward contracts" ;;
        math.h) suites="primitives swiglu" ;;
        kernel/check.h | kernel/attention_check.h) suites="contracts rope forward" ;;
        philox.h | reduce.h | row.h | arch/cpu/row*.h | arch/cpu/reduce.h) suites="rows row_softmax swiglu layernorm cross_entropy" ;;
        arch/cpu/ops*.h | arch/cpu/isa.h | arch/cpu/vector.h) suites="rows swiglu row_softmax forward primitives contracts" ;;
        arch/cpu/*_amx.h)
            suites=amx_forward
            grep -qsw avx512_bf16 /proc/cpuinfo || suites= verdict="needs AVX512-BF16" ;;
        kernel/rows.h | kernel/rows_cpu*) suites="row_softmax layernorm" ;;
        kernel/rows_near.h) suites="row_softmax cross_entropy" ;;
        row_softmax.h | kernel/row_softmax_rows*.h) suites="row_softmax" ;;
        layernorm.h | rmsnorm.h | kernel/norm.h | kernel/norm_*.h) suites="layernorm" ;;
        swiglu.h | activation.h | kernel/segments.h | kernel/swiglu_rows*.h) suites="swiglu" ;;
        cross_entropy.h | kernel/cross_entropy_rows.h) suites="cross_entropy" ;;
        rope.h | kernel/rope_rows.h) suites="rope" ;;
        arch/sm80/row*.h | arch/sm80/reduce.h | arch/sm90/cluster.h | kernel/rows_gpu*.h | kernel/rows_launch.h | kernel/rows_sweep.h)
            suites="gpu_rows gpu_row_softmax gpu_cross_entropy gpu_swiglu gpu_rope gpu_layernorm" ;;
        kernel/gpu.h) suites="gpu_rows gpu_row_softmax gpu_cross_entropy gpu_swiglu gpu_rope gpu_layernorm gpu gpu_gpu gpu_contracts" ;;
        arch/sm90/* | mbarrier.h | kernel/tensor_map.h) suites="gpu_sm90 gpu gpu_contracts" ;;
        arch/sm80/composed.h) suites="gpu_layernorm gpu gpu_gpu gpu_contracts" ;;
        arch/sm80/* | kernel/attention_loop.h | kernel/attention_walk.h | kernel/attention_walk_loop.h | kernel/attention_scores.h | kernel/attention_documents.h | kernel/attention_spans.h | kernel/attention_addends.h | kernel/attention_bias_room.h | kernel/attention_bias_tiles.h | kernel/attention_rest.h | kernel/attention_gpu.h | kernel/attention_gpu_80.h | kernel/attention_gpu_90.h | kernel/attention_warpgroups*.h | kernel/attention_producers.h | kernel/attention_sender.h | kernel/attention_rings.h | kernel/attention_planner.h | kernel/attention_order.h | kernel/*soft_cap.h)
            suites="gpu gpu_gpu gpu_contracts gpu_primitives" ;;
        kernel/attention_columns.h | kernel/attention_columns_loop.h) suites="gpu gpu_contracts gpu_gpu" ;;
        *) suites="forward contracts primitives" ;;
        esac
        case "$(field "$n" on) $suites" in # of what both share, a GPU's part
        "gpu gpu"*) ;;
        gpu*) suites=$(echo "$suites" | sed "s/^/gpu_/; s/ / gpu_/g; s/gpu_forward/gpu/") ;;
        esac
        case "$file $(field "$n" on)" in
        "softmax.h gpu") suites="gpu_contracts gpu_gpu $suites gpu_sm90" ;;
        "kernel/attention_check.h gpu") suites="gpu_gpu gpu_contracts" ;;
        esac
        case "${GPU:+$GPU_ARCH} $suites" in "sm_90a "*gpu_contracts*) suites="$suites plain plain_contracts" ;; esac
        case $suites in gpu*)
            if [ -z "$GPU" ] && [ -n "$CXX" ] && [ "$file" != arch/sm80/ops.h ]; then # which the simulator has of its own
                suites=$(for suite in $suites; do case $suite in gpu) echo simulated_forward ;; gpu_gpu | gpu_sm90) ;; *) echo "simulated_${suite#gpu_}" ;; esac; done)
                case $file in
                reduce.h | arch/*/reduce* | arch/sm90/cluster.h | kernel/gpu.h | kernel/norm* | kernel/*rows*) suites="$suites $(with_clusters $suites)" ;;
                esac
            elif [ -z "$GPU" ]; then suites= verdict="needs a GPU"; fi ;;
        esac
        schedule=$file
        [ "$(field "$n" on)" != sm_90a ] || schedule=kernel/attention_warpgroups.h # of what schedules share, that one's part
        case $schedule in
        arch/sm90/cluster.h) ;;
        arch/sm90/ops.h | arch/sm90/wgmma.h | mbarrier.h) [ "$GPU_ARCH" = sm_90a ] || suites= verdict="needs a GPU of compute capability 9.0" ;;
        arch/sm90/* | kernel/tensor_map.h | kernel/attention_bias_tiles.h | kernel/attention_gpu.h | kernel/attention_gpu_90.h | kernel/attention_warpgroups*.h | kernel/attention_producers.h | kernel/attention_sender.h | kernel/attention_rings.h | kernel/attention_planner.h | kernel/attention_order.h | kernel/*soft_cap.h)
            if [ -z "$GPU" ] && [ -n "$CXX" ]; then
                suites="simulated90_forward simulated90_contracts"
                [ "$file" != kernel/attention_order.h ] || suites="simulated90_order $suites"
            elif [ "$GPU_ARCH" != sm_90a ]; then suites= verdict="needs a GPU of compute capability 9.0"; fi ;;
        kernel/attention_columns.h) # of which the simulator shows a part
            [ "$GPU_ARCH" = sm_90a ] || [ -z "$GPU" ] || suites= verdict="needs a GPU of compute capability 9.0" ;;
        esac
        for suite in $suites; do
            suite "$n" $suite
            case $? in
            1) verdict="noticed by $suite: $(grep -m 1 -E '^not ok|^Bail out' "$M/$n/$suite.tap" | cut -c 1-70)" && break ;;
            2) verdict="DOES NOT COMPILE" && break ;;
            esac
        done
    fi
    case "$verdict $suites" in "SURVIVED simulated"*) verdict="needs a GPU: the simulated one does not show it" ;; esac
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
$CC $flags -Iinclude -c -o "$M/gpu_forward.o" tests/suites/forward.c || exit 1
if [ -z "$GPU" ] && [ -n "$CXX" ]; then
    $CXX $SIMULATED -c -o "$M/simulated_memory.o" tests/harness/memory.c || exit 1
    $CXX $SIMULATOR -O2 -U_FORTIFY_SOURCE -c -o "$M/simulated_machine.o" tests/simulator/machine.cpp || exit 1
    $CXX $SIMULATOR -DMACHINE_MAJOR=9 -O2 -U_FORTIFY_SOURCE -c -o "$M/simulated90_machine.o" tests/simulator/machine.cpp || exit 1
fi
if [ -n "$GPU" ]; then
    "$NVCC" -x cu -std=c++17 $gpu_code -w -Itests -c -o "$M/gpu_memory.o" tests/harness/memory.c || exit 1
    sh tests/tools/products.sh 3 7 >"$M/gpu_products.c" || exit 1 # of every kind some
fi

total=$(grep -c '^file ' "$list")
for n in "$@"; do
    [ "$n" -ge 1 ] 2>/dev/null && [ "$n" -le "$total" ] || { echo "mutate: MUTATION is '$n': there are faults 1 to $total" >&2; exit 1; }
done
[ $# != 0 ] || set -- $(awk -v n="$total" 'BEGIN { for (i = 1; i <= n; i++) print i }')
for n in "$@"; do echo "$n"; done | GPU="$GPU" CXX="$CXX" NVCC="$NVCC" BUILD="${BUILD:-build}" CC="$CC" xargs -P "$cores" -L 1 sh tests/mutate.sh --one

# Without a fault the tests that noticed one pass: else that means nothing.
mkdir -p "$M/0" && rm -rf "$M/0/include" && cp -r include "$M/0/include"
for suite in $(sed -n 's/^noticed by \([a-z0-9_]*\):.*/\1/p' "$M"/*.verdict | sort -u); do
    suite 0 "$suite" || { echo "mutate: the tests fail without a fault ($suite): see $M/0/$suite.tap, $M/0/log"; exit 1; }
done

survived=$(cat "$M"/*.verdict | grep -c '^SURVIVED')
broken=$(cat "$M"/*.verdict | grep -c '^DOES NOT')
needs=$(cat "$M"/*.verdict | grep -c '^needs ')
noticed=$(cat "$M"/*.verdict | grep -c '^noticed')
missing=$(($# - survived - broken - needs - noticed))
[ "$missing" = 0 ] || echo "mutate: $missing of them have no verdict, since their runs were cut off: run them again" >&2
echo "mutate: $# faults: $noticed noticed, $survived survived, $broken do not fit or compile, $needs need what this machine lacks"
[ "$survived" = 0 ] && [ "$broken" = 0 ] && [ "$missing" = 0 ]
