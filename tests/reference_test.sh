#!/bin/sh
# doc/reference.h says what the templates generate: its prototypes must be those of real instances. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
try() { # name: the instance comes on standard input
    { echo '#include <fa/fa.h>'; cat; echo '#include "reference.h"'; } >"$work/instance.c"
    # A function that the instance has not would be one that is declared only: its address is missed.
    $CC -std=c11 -E -I"$FA_INCLUDE" -I"$root/doc" "$work/instance.c" 2>"$work/log" |
        sed -n '/reference\.h"/,$s/^[A-Za-z].*[ *]\(NAME_[A-Za-z_]*\)(.*);$/\1/p' >"$work/names"
    { echo 'void (*const the_functions[])(void) = {'; sed 's/.*/    (void (*)(void))&,/' "$work/names"
        echo '};'; echo 'int main(void) { return the_functions[0] == NULL; }'; } >>"$work/instance.c"
    [ -s "$work/names" ] && $CC -std=c11 -Wall -Wextra -Werror -Wno-cast-function-type -I"$FA_INCLUDE" -I"$root/doc" -o "$work/instance" \
        "$work/instance.c" -lm -pthread >>"$work/log" 2>&1
    ok $? "reference: $1" "$work/log"
}
try "fa/attention.h" <<'INSTANCE'
#define FA_NAME     NAME
#define FA_DTYPE    FA_F32
#define FA_HEAD_DIM 64
#include <fa/attention.h>
#define FA_REFERENCE_ATTENTION
INSTANCE
try "fa/tile.h" <<'INSTANCE'
#define FA_NAME    NAME
#define FA_DTYPE   FA_F32
#define FA_ROWS    64
#define FA_COLS    64
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>
#define FA_REFERENCE_TILE
INSTANCE
try "fa/mma.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#define FA_M     64
#define FA_N     64
#define FA_K     64
#include <fa/mma.h>
#define FA_REFERENCE_MMA
INSTANCE
try "fa/softmax.h" <<'INSTANCE'
#define FA_NAME NAME
#define FA_ROWS 64
#define FA_COLS 64
#include <fa/softmax.h>
#define FA_REFERENCE_SOFTMAX
INSTANCE
try "fa/row_softmax.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#include <fa/row_softmax.h>
#define FA_REFERENCE_ROW_SOFTMAX
INSTANCE
try "fa/layernorm.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#include <fa/layernorm.h>
#define FA_REFERENCE_LAYERNORM
INSTANCE
try "fa/rmsnorm.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#include <fa/rmsnorm.h>
#define FA_REFERENCE_RMSNORM
INSTANCE
try "fa/cross_entropy.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#include <fa/cross_entropy.h>
#define FA_REFERENCE_CROSS_ENTROPY
INSTANCE
try "fa/swiglu.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#include <fa/swiglu.h>
#define FA_REFERENCE_SWIGLU
INSTANCE
try "fa/rope.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#include <fa/rope.h>
#define FA_REFERENCE_ROPE
INSTANCE
try "fa/row.h" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_F32
#define FA_COLS  1024
#include <fa/row.h>
#define FA_REFERENCE_ROW
INSTANCE
try "fa/reduce.h" <<'INSTANCE'
#define FA_NAME NAME
#include <fa/reduce.h>
#define FA_REFERENCE_REDUCE
INSTANCE
# What a header says that it generates, and the parameters of its table, are in the reference: but for FA_USER_ARGS, which
# fa.h has, and NAME_grad of a hook.
for header in attention tile mma softmax row reduce row_softmax layernorm rmsnorm cross_entropy swiglu rope; do
    : >"$work/missing"
    for name in $(sed '/\*\//q' "$FA_INCLUDE/fa/$header.h" | grep -oE 'NAME_[A-Za-z_]+|^ \* \| FA_[A-Z_]+' | sed 's/^ \* | //' | sort -u); do
        case $name in FA_USER_ARGS | NAME_grad) continue ;; esac
        grep -qE "^(#define |typedef .*|[A-Za-z].*[ *])$name([( ;]|\$)" "$root/doc/reference.h" || echo "not: $name" >>"$work/missing"
    done
    [ ! -s "$work/missing" ]
    ok $? "reference: all names of fa/$header.h" "$work/missing"
done
[ -n "$NVCC" ] || skip "the reference of what GPUs alone have: nvcc not found"
# What GPUs alone have: the reference's prototypes, declared as nvcc wants them after the instance. In C++ a wrong one
# would be one more overload, of which decltype says that it is ambiguous.
try_device() { # name, mark in the reference, qualifier: the instance comes on standard input
    [ -n "$NVCC" ] || return 0
    {
        echo '#include <fa/fa.h>'
        cat
        sed -n "/^#if .*defined($2)$/,/^#endif/{/^#/d;p;}" "$root/doc/reference.h" |
            sed "/^[a-z].*);/{s/^/$3 /;s/\(.*\)\(NAME_[a-z_]*\)(\(.*\)/&\ntypedef decltype(\&\2) the_\2;/;}"
    } >"$work/instance.cu"
    grep -q "^$3 " "$work/instance.cu" && "$NVCC" -std=c++17 $(gpu_syntax sm_90a) -I"$FA_INCLUDE" -c -o "$work/instance.o" "$work/instance.cu" >"$work/log" 2>&1
    ok $? "reference: $1" "$work/log"
}
tma='#define FA_NAME   NAME
#define FA_DTYPE  FA_BF16
#define FA_ROWS   64
#define FA_COLS   64
#define FA_LOADER FA_TMA
#define FA_ARCH   90
#include <fa/tile.h>'
try_device "fa/tile.h with FA_TMA, on the host" FA_REFERENCE_TMA_HOST static <<INSTANCE
$tma
INSTANCE
try_device "fa/tile.h with FA_TMA" FA_REFERENCE_TMA "static __device__" <<INSTANCE
$tma
INSTANCE
try_device "fa/mma.h with FA_ARCH 90" FA_REFERENCE_WGMMA "static __device__" <<'INSTANCE'
#define FA_NAME  NAME
#define FA_DTYPE FA_BF16
#define FA_M     64
#define FA_N     64
#define FA_K     64
#define FA_ARCH  90
#include <fa/mma.h>
INSTANCE
on_gpus='#define FA_NAME  NAME
#define FA_DTYPE FA_BF16
#define FA_ARCH  80'
try_device "fa/mma.h with FA_ARCH 80" FA_REFERENCE_MMA_80 "static __device__" <<INSTANCE
$on_gpus
#define FA_M 64
#define FA_N 64
#define FA_K 64
#include <fa/mma.h>
INSTANCE
try_device "fa/mma.h with FA_ARCH 80 and FA_FRAGMENT" FA_REFERENCE_LOAD_A "static __device__" <<INSTANCE
$on_gpus
#define FA_M 64
#define FA_N 64
#define FA_K 64
#define FA_A FA_FRAGMENT
#include <fa/mma.h>
INSTANCE
try_device "fa/softmax.h with FA_ARCH 80" FA_REFERENCE_SOFTMAX_80 "static __device__" <<'INSTANCE'
#define FA_NAME NAME
#define FA_ARCH 80
#define FA_ROWS 64
#define FA_COLS 64
#include <fa/softmax.h>
INSTANCE
try_device "fa/row.h with FA_ARCH 80" FA_REFERENCE_ROW_80 "static __device__" <<INSTANCE
$on_gpus
#define FA_COLS 1024
#include <fa/row.h>
INSTANCE
for mark in FA_REFERENCE_REDUCE_80 FA_REFERENCE_MOMENTS_80; do
    try_device "fa/reduce.h with FA_ARCH 80 ($mark)" $mark "static __device__" <<'INSTANCE'
#define FA_NAME NAME
#define FA_ARCH 80
#include <fa/reduce.h>
INSTANCE
done
tap_end
