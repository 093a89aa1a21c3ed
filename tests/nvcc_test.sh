#!/bin/sh
# nvcc_test.sh: the instances of the pair table compile for GPUs: each chunk of it for one of the architectures in turn, on a machine
# with fewer than four cores a third of the chunks, and the shipped hooks for sm_90a, there a third of them, which FA_SEED chooses; or, with
# FA_FULL=1, all of them for all. On sm_90a no kernel of its schedule spills, except with the tests' hooks that divide, and where documents and something
# else classify tiles; its products are not serialised. Nor do plain or masked instances of the schedule for every GPU spill there. And
# no array that belongs in registers is in memory, wherever the optimiser runs. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
architectures="sm_80 sm_89 sm_90a sm_100a"
if [ -z "$NVCC" ]; then
    skip "compiling for GPUs ($architectures): nvcc not found"
    tap_end
fi
cd "$root" || exit 1
T=${BUILD:-build}/tests
[ -f "$T/hooks.list" ] && [ -f "$T/forward_00.c" ] || { echo "nvcc_test.sh: there are no instances in $T: make test-programs" >&2; exit 1; }
# none_in FILE TEXT: a test that passes if nothing was found.
none_in() {
    [ ! -s "$1" ]
    ok $? "$2" "$1"
}
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
seed=${FA_SEED:-0} share=1
[ "$cores" -ge 4 ] || [ "${FA_FULL:-0}" = 1 ] || share=3

# instances ARCH: instances in bf16 of one schedule, each with a head dimension, a mask and a hook from a line of the input; "-" is none.
instances() {
    echo '#include <fa/mask.h>'
    echo '#include <fa/score.h>'
    echo 'FA_SCORE_CHAIN(capped_alibi, fa_softcap, fa_alibi)'
    while read -r head_dim mask score; do
        [ "$mask" = - ] || echo "#define FA_MASK $mask"
        [ "$score" = - ] || echo "#define FA_SCORE $score"
        printf '#define %s\n' "FA_NAME some_${head_dim}_${mask#-}_${score#-}" 'FA_API FA_EXTERN' "FA_ARCH $1" 'FA_DTYPE FA_BF16' "FA_HEAD_DIM $head_dim"
        echo '#include <fa/attention.h>'
    done
}
# The schedule for every GPU, which on Hopper has more registers than elsewhere; and masks where consumers of sm_90a have the fewest.
for line in '64 -' '128 -' '256 -' '64 fa_causal' '128 fa_causal' '256 fa_causal' '128 fa_sliding_window' '128 fa_prefix' '128 fa_document'; do
    echo "$line -"
done | instances 80 >"$work/every.c"
for mask in fa_causal fa_sliding_window fa_prefix fa_document fa_causal_document fa_span; do
    printf '64 %s %s\n' $mask - $mask fa_softcap $mask fa_alibi $mask capped_alibi
done | awk -v share=$share -v first=$((seed % share)) 'NR % share == first' | instances 90 >"$work/few.c"
printf 'sm_90a %s\n' "$work/every.c" "$work/few.c" >"$work/list"

if [ "${FA_FULL:-0}" = 1 ]; then
    for chunk in "$T"/forward_[0-9][0-9].c "$T"/forward_hooks.c; do
        for arch in $architectures; do echo "$arch $chunk"; done
    done
else
    "$T/pairs" emit "$T/hooks.list" $((seed % share)) $share >"$work/hooks.c"
    echo "sm_90a $work/hooks.c"
    set -- $architectures
    count=$seed
    for chunk in "$T"/forward_[0-9][0-9].c; do
        count=$((count + 1))
        [ $((count % share)) = 0 ] || continue
        echo "$1 $chunk"
        set -- "$2" "$3" "$4" "$1"
    done
fi >>"$work/list"

# What is looked for in the machine code is looked for on sm_90a; elsewhere little of the optimiser runs, which takes half the time.
cat >"$work/one.sh" <<END
log=$work/\$(basename "\$2" .c).\$1
[ "\$1" = sm_90a ] || [ "${FA_FULL:-0}" = 1 ] || less="$gpu_less"
"$NVCC" -x cu -std=c++17 -gencode "arch=compute_\${1#sm_},code=\$1" \$less -Xptxas -v --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror \\
    -I"$FA_INCLUDE" -I"$root/tests" -c -o "\$log.o" "\$2" >"\$log.log" 2>&1
echo \$? >"\$log.status"
rm -f "\$log.o"
END
xargs -P "$cores" -L 1 sh "$work/one.sh" <"$work/list"
while read -r arch chunk; do
    log=$work/$(basename "$chunk" .c).$arch
    ok "$(cat "$log.status")" "$(grep -c 'include <fa/attention.h>' "$chunk") instances of $(basename "$chunk") compile for $arch" "$log.log"
    [ "$arch" = sm_90a ] || [ "${FA_FULL:-0}" = 1 ] || continue
    # More stack than spills: an array that a loop which was not unrolled indexes (half the speed).
    awk '/Function properties for/ { name = $NF } / bytes stack frame/ && $1 > $5 + 15 { print name ": " $0 }' "$log.log" >"$log.indexed"
    none_in "$log.indexed" "no array of its kernels for $arch lies in memory"
    [ "$arch" = sm_90a ] || continue
    grep 'wgmma.mma_async instructions are serialized' "$log.log" >"$log.serial" # twice the time (some assemblers before CUDA 12.9: doc/hopper.md)
    none_in "$log.serial" "the assembler does not serialise its products"
    if [ "$chunk" = "$work/every.c" ]; then
        grep ' bytes spill stores' "$log.log" | grep -v ' 0 bytes spill stores' >"$log.spilled"
        [ "$(grep -c 'Function properties for.*_sm80_kernel' "$log.log")" = 9 ] && [ ! -s "$log.spilled" ]
        ok $? "nothing spills in the schedule for every GPU" "$log.spilled"
        continue
    fi
    awk '/TEST_MASK_(strided|packed)\(/ { sub(/.*\(/, ""); sub(/_mask.*/, ""); print }
        /FA_SCORE test_(tilted|holes)/ { divides = 1 } /FA_NAME/ && divides { print $3; divides = 0 }' "$chunk" >"$log.excepted"
    awk '/Function properties for/ { name = $NF; sub(/^_Z[0-9]+/, "", name); sub(/_sm90_.*/, "", name); ours = $NF ~ /_sm90_/; kernels += ours }
        / bytes spill stores/ && !/ 0 bytes spill stores/ && ours { print name }
        END { if (!kernels) print "no kernel was found" }' "$log.log" | grep -vxFf "$log.excepted" >"$log.spilled"
    none_in "$log.spilled" "nothing spills in its kernels for sm_90a"
done <"$work/list"
printf '#include <fa/fa.h>\n#define FA_NAME attn\n#define FA_DTYPE FA_BF16\n#define FA_HEAD_DIM 64\n#define FA_ARCH FA_CPU\n#include <fa/attention.h>\n' >"$work/host.c"
"$NVCC" -x cu -std=c++17 -O3 -gencode arch=compute_80,code=sm_80 --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I"$FA_INCLUDE" -c -o "$work/host.o" "$work/host.c" >"$work/host.log" 2>&1
ok $? "an instance for the CPU compiles with -O3" "$work/host.log"

if [ "${FA_FULL:-0}" != 1 ]; then
    [ "$share" = 1 ] && which="each instance is compiled" || which="a third of the instances, by the seed, are compiled"
    skip "$which for one GPU architecture, not for all four: FA_FULL=1 takes the time"
fi
tap_end
