#!/bin/sh
# doc/reference.h says what the templates generate: its prototypes must be those of real instances. Prints TAP.
root=$(cd "$(dirname "$0")/.." && pwd)
CC=${CC:-cc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
count=0
failed=0
try() { # name: the instance comes on standard input
    count=$((count + 1))
    { echo '#include <fa/fa.h>'; cat; echo '#include "reference.h"'; } >"$work/instance.c"
    if $CC -std=c11 -Wall -Wextra -Werror -I"$root/include" -I"$root/doc" -fsyntax-only \
        "$work/instance.c" >"$work/log" 2>&1; then
        echo "ok $count - reference: $1"
    else
        echo "not ok $count - reference: $1"
        sed 's/^/# /' "$work/log"
        failed=1
    fi
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
echo "1..$count"
exit $failed
