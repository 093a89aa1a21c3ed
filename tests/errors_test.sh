#!/bin/sh
# errors_test.sh: every #error and static assertion: a mistake does not compile, and the message says what to write. It
# starts with the instance's name, and one mistake gives one message. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"

# compile COMPILER FLAGS...: compiles $work/case.c, messages to $work/log.
compile() {
    case $1 in
    cc) shift && $CC -std=c11 -Wall -Wextra -I"$FA_INCLUDE" -fsyntax-only "$@" "$work/case.c" ;;
    clang) shift && "$CLANG" -std=c11 -Wall -Wextra -I"$FA_INCLUDE" -fsyntax-only "$@" "$work/case.c" ;;
    c++) shift && $CXX -x c++ -std=c++17 -Wall -Wextra -I"$FA_INCLUDE" -fsyntax-only "$@" "$work/case.c" ;;
    nvcc) shift && "$NVCC" -x cu -std=c++17 -I"$FA_INCLUDE" -c -o "$work/case.o" "$@" "$work/case.c" ;;
    esac >"$work/log" 2>&1
}

# absent COMPILER: this machine has not got it, and nothing is tried with it.
absent() {
    case $1 in
    clang) [ -z "$CLANG" ] ;;
    c++) [ -z "$CXX" ] ;;
    nvcc) [ -z "$NVCC" ] ;;
    *) false ;;
    esac
}

# rejects COMPILER WHAT MESSAGE [FLAGS...]: the case fails with exactly one error, which has MESSAGE.
rejects() {
    by=$1 what=$2 message=$3
    shift 3
    ! absent "$by" || return 0
    compile "$by" "$@"
    status=$?
    errors=$(grep -cE '(^|[ :])(fatal )?error( #[0-9]+)?:' "$work/log")
    grep -qF -- "$message" "$work/log" && found=1 || found=0
    [ $status != 0 ] && [ $found = 1 ] && [ "$errors" = 1 ]
    ok $? "$by: $what: \"$message\" ($errors error)" "$work/log"
}
# names COMPILER WHAT WORD [FLAGS...]: the case fails with errors of the compiler's own, which say WORD.
names() {
    by=$1 what=$2 word=$3
    shift 3
    ! absent "$by" || return 0
    compile "$by" "$@"
    status=$?
    grep -qF -- "$word" "$work/log" && [ $status != 0 ]
    ok $? "$by: $what does not compile" "$work/log"
}
# accepts COMPILER WHAT [FLAGS...]: the case compiles.
accepts() {
    by=$1 what=$2
    shift 2
    ! absent "$by" || return 0
    compile "$by" "$@"
    ok $? "$by: $what" "$work/log"
}

# The case: an instance, with lines of one's own before the include; a leading ! drops a default line.
attention() { attention_source "$@" >"$work/case.c"; }
attention_source() {
    name='#define FA_NAME bad' dtype='#define FA_DTYPE FA_F32' dim='#define FA_HEAD_DIM 64'
    for line in "$@"; do
        case $line in
        '!name') name= ;;
        '!dtype') dtype= ;;
        '!dim') dim= ;;
        esac
    done
    echo '#include <fa/fa.h>'
    for line in "$@"; do case $line in '!'*) ;; *) echo "$line" ;; esac; done
    printf '%s\n%s\n%s\n#include <fa/attention.h>\n' "$name" "$dtype" "$dim"
}

for by in cc clang c++; do
    [ $by != clang ] || [ -n "$CLANG" ] || { skip "compile errors under clang: not found"; continue; }
    [ $by != c++ ] || [ -n "$CXX" ] || { skip "compile errors under a C++ compiler: not found"; continue; }
    attention; accepts $by "the instance without a mistake compiles"
    attention '!name'; rejects $by "no FA_NAME" "fa/attention.h: define FA_NAME"
    attention '!name' '#define FA_NAME'; rejects $by "an empty FA_NAME" "fa: FA_NAME is empty: define it as the prefix"
    attention '!dtype'; rejects $by "no FA_DTYPE" "bad: define FA_DTYPE, the type of the elements: FA_F32, FA_F16"
    attention '!dtype' '#define FA_DTYPE FA_FLOAT'; rejects $by "a misspelt FA_DTYPE" "bad: FA_DTYPE is FA_FLOAT: FA_F32, FA_F16, FA_BF16 or FA_TF32 is needed"
    attention '!dtype' '#define FA_DTYPE 7'; rejects $by "an unknown FA_DTYPE" "bad: FA_DTYPE is 7: FA_F32, FA_F16"
    attention '!dtype' '#define FA_DTYPE FA_CPU'; rejects $by "FA_DTYPE FA_CPU" "bad: FA_DTYPE is 5: FA_F32, FA_F16"
    attention '#define FA_ARCH FA_F32'; rejects $by "FA_ARCH FA_F32" "bad: FA_ARCH is 1: write FA_CPU, 80 or 90"
    attention '!dtype' '#define FA_DTYPE'; rejects $by "an empty FA_DTYPE" "bad: FA_DTYPE is : FA_F32, FA_F16"
    attention '!dim'; rejects $by "no FA_HEAD_DIM" "bad: define FA_HEAD_DIM, the head dimension: a multiple of 8 from 8 to 256"
    for d in 0 9 264 -8; do
        attention '!dim' "#define FA_HEAD_DIM $d"; rejects $by "FA_HEAD_DIM $d" "bad: FA_HEAD_DIM is $d: a multiple of 8 from 8 to 256"
        attention "#define FA_HEAD_DIM_V $d"; rejects $by "FA_HEAD_DIM_V $d" "bad: FA_HEAD_DIM_V"
    done
    attention '#define FA_ARCH 75'; rejects $by "FA_ARCH 75" "bad: FA_ARCH is 75: write FA_CPU, 80 or 90, or leave it out"
    attention '#define FA_ARCH FA_GPU'; rejects $by "a misspelt FA_ARCH" "bad: FA_ARCH is FA_GPU: write FA_CPU, 80 or 90"
    attention '#define FA_ARCH'; rejects $by "an empty FA_ARCH" "bad: FA_ARCH is : write FA_CPU, 80 or 90"
    attention '#define FA_ARCH 80'; rejects $by "FA_ARCH 80 without nvcc" "bad: FA_ARCH 80 needs nvcc"
    attention '#define FA_ARCH 90'; rejects $by "FA_ARCH 90 without nvcc" "bad: FA_ARCH 90 needs nvcc: compile this file with nvcc -arch=sm_90a, or write FA_ARCH FA_CPU"
    attention '!dim' '#define FA_HEAD_DIM 32+32'; rejects $by "FA_HEAD_DIM 32+32" "bad: FA_HEAD_DIM is 32+32: a multiple of 8 from 8 to 256 is needed, as a literal or a macro, which the preprocessor can compare, in parentheses"
    attention '#define FA_HEAD_DIM_V 128-64'; rejects $by "FA_HEAD_DIM_V 128-64" "bad: FA_HEAD_DIM_V, the head dimension of v, is 128-64: a multiple of 8 from 8 to 256 is needed, in parentheses"
    attention '#define FA_BLOCK_M 16+16'; rejects $by "FA_BLOCK_M 16+16" "bad: FA_BLOCK_M, the queries of a tile, is 16+16: a multiple of 16 up to 1024 is needed, in parentheses"
    attention '#define FA_BLOCK_N 16+16'; rejects $by "FA_BLOCK_N 16+16" "bad: FA_BLOCK_N, the keys of a tile, is 16+16: a multiple of 16 up to 1024 is needed, in parentheses"
    attention '!dim' '#define FA_HEAD_DIM 64U'; rejects $by "FA_HEAD_DIM 64U" "bad: FA_HEAD_DIM is 64U: a multiple of 8 from 8 to 256 is needed, as a literal or a macro, which the preprocessor can compare, in parentheses if it is an expression, without a suffix"
    attention '#define FA_BLOCK_M 64u'; rejects $by "FA_BLOCK_M 64u" "bad: FA_BLOCK_M, the queries of a tile, is 64u: a multiple of 16 up to 1024 is needed, in parentheses if it is an expression, without a suffix"
    for size in '8*4' '64/2' '1<<5' '8<<2' '96%64' '40&48' '1?32:16'; do
        attention "#define FA_BLOCK_M $size"; rejects $by "FA_BLOCK_M $size" "bad: FA_BLOCK_M, the queries of a tile, is $size: a multiple of 16 up to 1024 is needed, in parentheses"
        attention "#define FA_BLOCK_N $size"; rejects $by "FA_BLOCK_N $size" "bad: FA_BLOCK_N, the keys of a tile, is $size: a multiple of 16 up to 1024 is needed, in parentheses"
        attention '!dim' "#define FA_HEAD_DIM $size"; rejects $by "FA_HEAD_DIM $size" "bad: FA_HEAD_DIM is $size: a multiple of 8 from 8 to 256"
    done
    attention '!dim' '#define FA_HEAD_DIM (32+32)' '#define FA_BLOCK_M (16+16)'; accepts $by "expressions in parentheses"
    attention '#define FA_BLOCK_M 40'; rejects $by "FA_BLOCK_M 40" "bad: FA_BLOCK_M"
    attention '#define FA_BLOCK_M 0'; rejects $by "FA_BLOCK_M 0" "bad: FA_BLOCK_M"
    attention '#define FA_BLOCK_N 20'; rejects $by "FA_BLOCK_N 20" "bad: FA_BLOCK_N"
    attention '#define FA_BLOCK_M 1040'; rejects $by "FA_BLOCK_M 1040" "bad: FA_BLOCK_M, the queries of a tile, is 1040: a multiple of 16 up to 1024"
    attention '#define FA_BLOCK_N 1040'; rejects $by "FA_BLOCK_N 1040" "bad: FA_BLOCK_N, the keys of a tile, is 1040: a multiple of 16 up to 1024"
    attention '#define FA_BLOCK_N -16'; rejects $by "FA_BLOCK_N -16" "bad: FA_BLOCK_N"
    for stages in 0 5; do
        attention "#define FA_STAGES $stages"; rejects $by "FA_STAGES $stages" "bad: FA_STAGES, the tiles of K and V in flight, is $stages: 1 or 2 (FA_ARCH 90: 1 to 4)"
    done
    for warps in 33 2+2 4u; do
        attention "#define FA_WARPS $warps"
        rejects $by "FA_WARPS $warps" "bad: FA_WARPS, the warps of a thread block that multiply, is $warps: 1 to 32"
    done
    for macro in FA_BLOCK_M FA_BLOCK_N FA_STAGES FA_WARPS FA_HEAD_DIM_V; do
        attention "#define $macro"; rejects $by "an empty $macro" "bad: $macro"
    done
    attention '#define FA_MASK'; rejects $by "an empty FA_MASK" "bad: FA_MASK is empty: define it as the name of a mask"
    attention '#define FA_SCORE'; rejects $by "an empty FA_SCORE" "bad: FA_SCORE is empty: define it as the name of a score hook"
    attention '#define FA_USER_ARGS'; rejects $by "an empty FA_USER_ARGS" "bad: FA_USER_ARGS is empty: define it as the type"
    attention '#define FA_USER_ARGS void'; rejects $by "FA_USER_ARGS void" "FA_USER_ARGS_is_not_void"
    attention '#define FA_USER_ARGS struct unknown'; names $by "FA_USER_ARGS of a struct that is not known" "unknown"
    attention 'struct big { char bytes[5000]; };' '#define FA_USER_ARGS struct big'
    rejects $by "FA_USER_ARGS of 5000 bytes" "bad: FA_USER_ARGS is too large"
    attention '#define FA_BLOCK_M 1024' '#define FA_BLOCK_N 1024'
    rejects $by "tiles of 1024 queries and keys" "bad: the tiles of FA_BLOCK_M queries and FA_BLOCK_N keys take more than 1 MB"
    if echo '#include <fa/arch/cpu/amx.h>' >"$work/case.c" && compile $by -E && grep -q 'fa__cpu_amx(void)' "$work/log"; then
        attention '!dtype' '#define FA_DTYPE FA_BF16' '!dim' '#define FA_HEAD_DIM 8' '#define FA_BLOCK_M 1024' '#define FA_BLOCK_N 208'
        rejects $by "tiles that are too large for AMX alone" "bad: with AMX the tiles of FA_BLOCK_M queries and FA_BLOCK_N keys take more than 1 MB"
    fi
done
attention; rejects cc "-ffast-math" "compile without -ffast-math" -ffast-math
attention; rejects cc "-ffinite-math-only" "compile without -ffast-math, -ffinite-math-only and -Ofast" -ffinite-math-only
if $CC -fassociative-math -fno-signed-zeros -fno-trapping-math -E -dM -x c /dev/null 2>/dev/null | grep -q __ASSOCIATIVE_MATH__; then
    attention; rejects cc "-ffast-math -fno-finite-math-only" "compile without -ffast-math, -funsafe-math-optimizations and -fassociative-math" -ffast-math -fno-finite-math-only
fi

if $CC -mfpmath=387 -E -dM -x c /dev/null 2>/dev/null | grep -q __x86_64__ && ! $CC -mfpmath=387 -E -dM -x c /dev/null | grep -q __SSE2_MATH__; then
    attention; names cc "-mfpmath=387" "compile with -msse2 -mfpmath=sse" -mfpmath=387
fi

# Here errors of the compiler's own follow.
for by in cc clang; do
    for standard in c90 gnu89; do
        attention; names $by "-std=$standard" "compile with -std=c11" -std=$standard
    done
done
for standard in c++98 gnu++98; do
    attention; names c++ "-std=$standard" "compile with -std=c++17" -std=$standard
done
for by in cc clang c++; do # nvcc's front end leaves explicit alignments as they are
    attention_source >"$work/case.c"
    names $by "-fpack-struct" "#pragma pack, or -fpack-struct, is in force" -fpack-struct
    for pack in 8 16; do
        { echo "#pragma pack($pack)" && attention_source; } >"$work/case.c"
        names $by "#pragma pack($pack) before fa/fa.h" "#pragma pack, or -fpack-struct, is in force"
        attention "#pragma pack($pack)"; names $by "#pragma pack($pack) before an instance" "#pragma pack, or -fpack-struct, is in force"
    done
done
for by in cc clang c++ nvcc; do
    for first in '' '#include <math.h>' '#include <fa/mask.h>'; do
        { echo "$first" && attention_source; } >"$work/case.c"
        names $by "include/fa on the include path${first:+, behind $first}" "the folder above fa belongs on the include path" -I"$FA_INCLUDE/fa"
    done
done

# Hooks with the wrong user type: errors of the compiler's own, in C (by -Werror) and in C++.
attention 'struct mine { int x; };' 'struct yours { int x; };' \
    'FA_HOOK float hook(const struct yours *user, float score, fa_index at) { (void)at; return score + (float)user->x; }' \
    '#define FA_SCORE hook' '#define FA_USER_ARGS struct mine'
for by in cc clang c++; do
    ! absent $by || continue
    flags=-Werror
    [ $by != c++ ] || flags=
    compile $by $flags
    status=$?
    grep -q 'yours' "$work/log" && [ $status != 0 ]
    ok $? "$by: a score hook with the wrong user type does not compile" "$work/log"
done

# The same without -Werror: a number for a pointer, and a pointer to what a hook may write.
for by in cc clang; do
    attention 'struct mine { int x; };' 'FA_HOOK float hook(long user, float score, fa_index at) { (void)at; return score + (float)user; }' \
        '#define FA_SCORE hook' '#define FA_USER_ARGS struct mine'
    names $by "a score hook that takes a number for its struct" "FA_SCORE needs float hook(const FA_USER_ARGS *user, float score, fa_index at)"
    attention 'struct mine { int x; };' 'FA_HOOK float hook(struct mine *user, float score, fa_index at) { (void)at; return score + (float)user->x++; }' \
        '#define FA_SCORE hook' '#define FA_USER_ARGS struct mine'
    names $by "a score hook that may write the struct" "FA_SCORE needs float hook(const FA_USER_ARGS *user, float score, fa_index at)"
done

# C++ converts what a hook returns.
for by in c++ nvcc; do
    flags=
    [ $by != nvcc ] || flags=-arch=sm_90a
    attention 'FA_HOOK int hook(const void *user, float score, fa_index at) { (void)user; return (int)score + at.key; }' '#define FA_SCORE hook'
    rejects $by "a score hook that returns int" "bad: FA_SCORE needs a hook that returns float: hook() does not" $flags
done

# In a system's directory, where compilers do not warn: a forgotten FA_USER_ARGS. And what hooks may take and return besides.
installed=$FA_INCLUDE
for by in cc clang; do
    FA_INCLUDE=$work/nothing
    attention 'struct mine { int x; };' 'FA_HOOK float hook(const struct mine *user, float score, fa_index at) { (void)at; return score + (float)user->x; }' \
        '#define FA_SCORE hook'
    rejects $by "a score hook whose FA_USER_ARGS is forgotten" "FA_SCORE needs float hook(const FA_USER_ARGS *user, float score, fa_index at)" -isystem "$installed"
    attention 'struct mine { int x; };' 'FA_HOOK int m_keep(const struct mine *user, fa_index at) { return at.key < user->x; }' \
        'FA_HOOK fa_tile_class m_tile(const struct mine *user, fa_box box) { (void)user, (void)box; return FA_PARTIAL; }' \
        'FA_HOOK fa_range m_keys(const struct mine *user, fa_box box) { (void)user; return box.keys; }' '#define FA_MASK m'
    rejects $by "a mask whose FA_USER_ARGS is forgotten" "FA_MASK needs int m_keep(const FA_USER_ARGS *user, fa_index at)" -isystem "$installed"
    attention 'struct mine { int x; };' 'FA_HOOK unsigned m_keep(const void *user, fa_index at) { (void)user; return at.key < 3; }' \
        'FA_HOOK fa_tile_class m_tile(const struct mine *user, fa_box box) { (void)user, (void)box; return FA_PARTIAL; }' \
        'FA_HOOK fa_range m_keys(const void *user, fa_box box) { (void)user; return box.keys; }' '#define FA_MASK m'
    rejects $by "a mask whose tile takes another type" "FA_MASK needs fa_tile_class m_tile(const FA_USER_ARGS *user, fa_box box) and fa_range m_keys()" -isystem "$installed"
    attention '#include <fa/score.h>' 'FA_SCORE_CHAIN(both, fa_alibi, fa_key_bias)' 'struct mine { int x; };' '#define FA_USER_ARGS struct mine' '#define FA_SCORE both'
    rejects $by "a chain that stands above FA_USER_ARGS" "the type that user points to, above any FA_SCORE_CHAIN" -isystem "$installed"
    FA_INCLUDE=$installed
    attention '#include <fa/mask.h>' 'FA_HOOK double hook(const void *user, float score, fa_index at) { (void)user; return score * (double)at.key; }' \
        'FA_HOOK _Bool m_keep(const void *user, fa_index at) { (void)user; return at.key < 3; }' 'FA_MASK_FROM_KEEP(m)' '#define FA_SCORE hook' '#define FA_MASK m'
    accepts $by "hooks of void, double and _Bool"
    attention 'FA_HOOK int hook(const void *user, float score, fa_index at) { (void)user, (void)at; return (int)score; }' '#define FA_SCORE hook'
    rejects $by "a score hook that returns an integer" "FA_SCORE needs "
    attention 'FA_HOOK float hook(float *const *user, float score, fa_index at) { (void)at; return score + **user; }' '#define FA_SCORE hook' '#define FA_USER_ARGS float *'
    accepts $by "a pointer for FA_USER_ARGS, where nothing else names its type"
done

# The primitives: the case is an instance of HEADER after the lines given.
primitive() { # HEADER LINE...
    header=$1
    shift
    printf '%s\n' '#include <fa/fa.h>' '#include <math.h>' "$@" "#include <fa/$header>" >"$work/case.c"
}
tile="#define FA_NAME bad
#define FA_DTYPE FA_F32"
primitive tile.h '#define FA_DTYPE FA_F32' '#define FA_ROWS 16' '#define FA_COLS 16'; rejects cc "tile.h without FA_NAME" "fa: define FA_NAME"
primitive tile.h '#define FA_NAME bad' '#define FA_ROWS 16' '#define FA_COLS 16'; rejects cc "tile.h without FA_DTYPE" "bad: define FA_DTYPE"
primitive tile.h "$tile" '#define FA_COLS 16'; rejects cc "tile.h without FA_ROWS" "bad: FA_ROWS, the rows of the tile, is undefined: 1 or more is needed"
primitive tile.h "$tile" '#define FA_ROWS 0' '#define FA_COLS 16'; rejects cc "tile.h with FA_ROWS 0" "bad: FA_ROWS, the rows of the tile, is 0: 1 or more is needed"
primitive tile.h "$tile" '#define FA_ROWS 16'; rejects cc "tile.h without FA_COLS" "bad: FA_COLS, the columns of the tile, is undefined: a multiple of 8 is needed"
primitive tile.h "$tile" '#define FA_ROWS 16' '#define FA_COLS 12'; rejects cc "tile.h with FA_COLS 12" "bad: FA_COLS, the columns of the tile, is 12: a multiple of 8 is needed"
primitive tile.h "$tile" '#define FA_ROWS 100000' '#define FA_COLS 80000'; rejects cc "tile.h of 8e9 elements" "bad: FA_ROWS is 100000 and FA_COLS is 80000: a tile has at most 2^24 elements"
primitive tile.h "$tile" '#define FA_ROWS 16' '#define FA_COLS 16' '#define FA_OPERAND 9'; rejects cc "tile.h with FA_OPERAND 9" "bad: FA_OPERAND is 9: "
primitive tile.h "$tile" '#define FA_ROWS 16' '#define FA_COLS 16' '#define FA_LOADER 9'; rejects cc "tile.h with FA_LOADER 9" "bad: FA_LOADER is 9: "
primitive tile.h "$tile" '#define FA_ROWS 16' '#define FA_COLS 16' '#define FA_LOADER FA_POINTER'
rejects cc "FA_POINTER without FA_ROW_ADDRESS" "bad: FA_LOADER FA_POINTER needs FA_ROW_ADDRESS"
rows="#define FA_ROWS 16
#define FA_COLS 16
#define FA_LOADER FA_POINTER"
primitive tile.h "$tile" "$rows" '#define FA_ROW_ADDRESS' '#define FA_USER_ARGS int'; rejects cc "an empty FA_ROW_ADDRESS" "bad: FA_ROW_ADDRESS is empty: define it as"
for by in cc clang; do
    primitive tile.h "$tile" "$rows" '#define FA_ROW_ADDRESS nowhere' '#define FA_USER_ARGS int'; names $by "a FA_ROW_ADDRESS that does not exist" "nowhere"
    primitive tile.h 'struct mine { int x; };' 'struct yours { int x; };' 'FA_HOOK const void *address(const struct yours *u, int row) { return u + row; }' \
        "$tile" "$rows" '#define FA_ROW_ADDRESS address' '#define FA_USER_ARGS struct mine'
    rejects $by "a FA_ROW_ADDRESS with the wrong user type" "yours"
done
primitive tile.h 'FA_HOOK const void *address(const void *u, int row) { (void)row; return u; }' "$tile" "$rows" '#define FA_ROW_ADDRESS address' '#define FA_USER_ARGS'
rejects cc "FA_POINTER with an empty FA_USER_ARGS" "bad: FA_USER_ARGS is empty: define it as the type that FA_ROW_ADDRESS gets a pointer to"
primitive tile.h "$tile" '#define FA_ROWS 16' '#define FA_COLS 16' '#define FA_WARPS 33'; rejects cc "tile.h with FA_WARPS 33" "bad: FA_WARPS"
primitive mma.h "$tile" '#define FA_N 16' '#define FA_K 16'; rejects cc "mma.h without FA_M" "bad: FA_M, the rows of the product, is undefined: a multiple of 16 is needed"
primitive mma.h "$tile" '#define FA_M 24' '#define FA_N 16' '#define FA_K 16'; rejects cc "mma.h with FA_M 24" "bad: FA_M, the rows of the product, is 24: a multiple of 16 is needed"
primitive mma.h "$tile" '#define FA_M 64' '#define FA_K 16'; rejects cc "mma.h without FA_N" "bad: FA_N, the columns of the product, is undefined: a multiple of 8 is needed"
primitive mma.h "$tile" '#define FA_M 64' '#define FA_N 16'; rejects cc "mma.h without FA_K" "bad: FA_K, the length of the dot products, is undefined: a multiple of 8 is needed"
primitive mma.h "$tile" '#define FA_M 64' '#define FA_N 16' '#define FA_K 12'; rejects cc "mma.h with FA_K 12" "bad: FA_K, the length of the dot products, is 12: a multiple of 8 is needed"
primitive mma.h "$tile" '#define FA_M 64' '#define FA_N 16' '#define FA_K 16' '#define FA_A 9'; rejects cc "mma.h with FA_A 9" "bad: FA_A is 9: "
primitive mma.h "$tile" '#define FA_M 64' '#define FA_N 16' '#define FA_K 16' '#define FA_B 9'; rejects cc "mma.h with FA_B 9" "bad: FA_B is 9: "
primitive softmax.h '#define FA_NAME bad' '#define FA_COLS 16'; rejects cc "softmax.h without FA_ROWS" "bad: FA_ROWS, the rows of a tile that an owner holds, is undefined: 1 or more is needed, in parentheses if it is an expression, without a suffix, or FA_M and FA_N"
primitive softmax.h '#define FA_NAME bad' '#define FA_ROWS 16'; rejects cc "softmax.h without FA_COLS" "FA_COLS"
primitive softmax.h '#define FA_NAME bad' '#define FA_ROWS 16' '#define FA_COLS 16' '#define FA_OWNERS 3'
rejects cc "softmax.h with FA_OWNERS 3" "bad: FA_OWNERS"
for by in cc clang c++ nvcc; do
    primitive softmax.h '#define FA_NAME bad' '#define FA_M 64' '#define FA_N 64' '#define FA_ROWS 16' '#define FA_COLS 16'
    rejects $by "softmax.h with the sizes of a product and of an owner" "bad: FA_M or FA_N is defined, and FA_ROWS or FA_COLS: those of the product"
done
for one in FA_M FA_N; do
    primitive softmax.h '#define FA_NAME bad' "#define $one 64" '#define FA_ROWS 16' '#define FA_COLS 16'
    rejects cc "softmax.h with $one, FA_ROWS and FA_COLS" "bad: FA_M or FA_N is defined, and FA_ROWS or FA_COLS"
done
for one in FA_M FA_N; do
    primitive softmax.h '#define FA_NAME bad' "#define $one 64"; rejects cc "softmax.h with $one alone" "bad: FA_M is defined and FA_N is not, or the other way round: both are needed"
done
for one in FA_ROWS FA_COLS; do
    primitive softmax.h '#define FA_NAME bad' '#define FA_M 64' '#define FA_N 64' "#define $one 16"
    rejects cc "softmax.h with FA_M, FA_N and $one" "bad: FA_M or FA_N is defined, and FA_ROWS or FA_COLS"
done

# Parameters that are defined as nothing.
for macro in FA_ROWS FA_COLS FA_OPERAND FA_LOADER FA_WARPS; do
    primitive tile.h "$tile" '#define FA_ROWS 16' '#define FA_COLS 16' "#undef $macro" "#define $macro"; rejects cc "tile.h with an empty $macro" "bad: $macro"
done
for macro in FA_M FA_N FA_K FA_A FA_B FA_WARPS; do
    primitive mma.h "$tile" '#define FA_M 64' '#define FA_N 16' '#define FA_K 16' "#undef $macro" "#define $macro"; rejects cc "mma.h with an empty $macro" "bad: $macro"
done
for macro in FA_ROWS FA_COLS FA_WIDE FA_OWNERS; do
    primitive softmax.h '#define FA_NAME bad' '#define FA_ROWS 16' '#define FA_COLS 16' "#undef $macro" "#define $macro"; rejects cc "softmax.h with an empty $macro" "bad: $macro"
done
for macro in FA_COLS FA_THREADS FA_HOLD FA_VECTOR FA_KEEP FA_PIECES FA_WHOLE; do
    primitive row.h "$tile" '#define FA_COLS 16' "#undef $macro" "#define $macro"; rejects cc "row.h with an empty $macro" "bad: $macro"
done
primitive softmax.h '#define FA_NAME bad' '#define FA_ROWS 16' '#define FA_COLS 16' '#define FA_WIDE 2'; rejects cc "softmax.h with FA_WIDE 2" "bad: FA_WIDE is 2"

# A value of another parameter.
rows_cols='#define FA_ROWS 16
#define FA_COLS 16'
product='#define FA_M 16
#define FA_N 16
#define FA_K 16'
primitive tile.h "$tile" "$rows_cols" '#define FA_OPERAND FA_SHARED'; rejects cc "FA_OPERAND FA_SHARED" "bad: FA_OPERAND is 31: FA_OPERAND_A"
primitive tile.h "$tile" "$rows_cols" '#define FA_LOADER FA_OPERAND_A'; rejects cc "FA_LOADER FA_OPERAND_A" "bad: FA_LOADER is 11: FA_BLOCK"
primitive mma.h "$tile" "$product" '#define FA_A FA_OPERAND_B'; rejects cc "FA_A FA_OPERAND_B" "bad: FA_A is 12: FA_SHARED or"
primitive mma.h "$tile" "$product" '#define FA_B FA_TMA'; rejects cc "FA_B FA_TMA" "bad: FA_B is 23: FA_OPERAND_B or"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_HOLD FA_BLOCK'; rejects cc "FA_HOLD FA_BLOCK" "bad: FA_HOLD is 21: FA_FRAGMENT or"

# The kernels that work row by row: the same mistakes.
row_kernels="row_softmax.h layernorm.h rmsnorm.h swiglu.h cross_entropy.h rope.h"
every_gpu="write FA_CPU, or 80, which is every GPU, or leave it out"
# (By all compilers one of them, which FA_SEED chooses, since they share what looks for these.)
set -- $row_kernels
shift $((${FA_SEED:-0} % $#))
by_all=$1
for header in $row_kernels; do
    for by in cc $([ $header != $by_all ] || echo clang c++); do
        primitive $header '#define FA_DTYPE FA_F32'; rejects $by "$header without FA_NAME" "fa/$header: define FA_NAME"
        primitive $header '#define FA_NAME bad'; rejects $by "$header without FA_DTYPE" "bad: define FA_DTYPE"
        primitive $header '#define FA_NAME bad' '#define FA_DTYPE FA_FLOAT'; rejects $by "$header with a misspelt FA_DTYPE" "bad: FA_DTYPE is FA_FLOAT: FA_F32"
        primitive $header '#define FA_NAME bad' '#define FA_DTYPE 7'; rejects $by "$header with an unknown FA_DTYPE" "bad: FA_DTYPE is 7: FA_F32"
        primitive $header '#define FA_NAME' '#define FA_DTYPE FA_F32'; rejects $by "$header with an empty FA_NAME" "fa: FA_NAME is empty"
        for number in 75 90 FA_GPU; do
            primitive $header "$tile" "#define FA_ARCH $number"; rejects $by "$header with FA_ARCH $number" "bad: FA_ARCH is $number: $every_gpu"
        done
        primitive $header "$tile" '#define FA_ARCH 80'; rejects $by "$header with FA_ARCH 80 without nvcc" "bad: FA_ARCH 80 needs nvcc"
    done
done
for by in cc clang c++; do
    primitive swiglu.h "$tile" '#define FA_ACTIVATION'; rejects $by "swiglu.h with an empty FA_ACTIVATION" "bad: FA_ACTIVATION is empty: define it as the name of an activation"
    primitive swiglu.h "$tile" 'struct big { char bytes[5000]; };' '#define FA_USER_ARGS struct big'
    rejects $by "swiglu.h with FA_USER_ARGS of 5000 bytes" "bad: FA_USER_ARGS is too large"
done
# Activations with the wrong user type, and without a derivative: errors of the compiler's own.
activation='FA_HOOK float act(const struct yours *user, float x) { return x * (float)user->x; }
FA_HOOK float act_grad(const struct yours *user, float x) { return x * (float)user->x; }'
for by in cc clang c++; do
    ! absent $by || continue
    primitive swiglu.h 'struct mine { int x; };' 'struct yours { int x; };' "$activation" "$tile" '#define FA_ACTIVATION act' '#define FA_USER_ARGS struct mine'
    compile $by
    status=$?
    grep -q 'yours' "$work/log" && [ $status != 0 ]
    ok $? "$by: an activation with the wrong user type does not compile" "$work/log"
    primitive swiglu.h 'FA_HOOK float act(const void *user, float x) { (void)user; return x; }' "$tile" '#define FA_ACTIVATION act'
    compile $by
    status=$?
    grep -q 'act_grad' "$work/log" && [ $status != 0 ]
    ok $? "$by: an activation without its derivative does not compile" "$work/log"
done

# Weights, and the primitives of rows.
for kernel in layernorm rmsnorm; do
    primitive $kernel.h "$tile" '#define FA_WEIGHT_DTYPE 9'; rejects cc "$kernel.h with FA_WEIGHT_DTYPE 9" "bad: FA_WEIGHT_DTYPE"
    primitive $kernel.h "$tile" '#define FA_WEIGHT_DTYPE'; rejects cc "$kernel.h with an empty FA_WEIGHT_DTYPE" "bad: FA_WEIGHT_DTYPE"
done
primitive row.h '#define FA_DTYPE FA_F32' '#define FA_COLS 16'; rejects cc "row.h without FA_NAME" "fa: define FA_NAME"
primitive row.h '#define FA_NAME bad' '#define FA_COLS 16'; rejects cc "row.h without FA_DTYPE" "bad: define FA_DTYPE"
primitive row.h "$tile"; rejects cc "row.h without FA_COLS" "bad: FA_COLS, the columns that the team holds at a time, is undefined: 1 or more is needed"
primitive row.h "$tile" '#define FA_COLS 0'; rejects cc "row.h with FA_COLS 0" "bad: FA_COLS, the columns that the team holds at a time, is 0: 1 or more is needed"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_THREADS 0'; rejects cc "row.h with FA_THREADS 0" "bad: FA_THREADS"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_VECTOR 8'; rejects cc "row.h with FA_VECTOR 8 for any rows" "bad: FA_VECTOR, the bytes of a vector, is 8: 16 is needed, or 8 or 4 with FA_WHOLE 2 and FA_HOLD FA_FRAGMENT"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_WHOLE 2' '#define FA_VECTOR 2'; rejects cc "row.h with FA_VECTOR 2" "bad: FA_VECTOR, the bytes of a vector, is 2"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_HOLD 9'; rejects cc "row.h with FA_HOLD 9" "bad: FA_HOLD is 9: FA_FRAGMENT or FA_SHARED"
for macro in FA_KEEP FA_PIECES FA_WHOLE; do
    primitive row.h "$tile" '#define FA_COLS 16' "#define $macro -3"; rejects cc "row.h with $macro -3" "bad: $macro"
done
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_WHOLE 2'; accepts cc "row.h with FA_WHOLE 2, which is for GPUs"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_WHOLE 3'; rejects cc "row.h with FA_WHOLE 3" "bad: FA_WHOLE is 3: 0, for any rows, 1 or 2 is needed"
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_KEEP 0'; rejects cc "row.h with FA_KEEP 0" "bad: FA_KEEP, the pieces that may be kept as floats, is 0: 1 or more"
primitive reduce.h; rejects cc "reduce.h without FA_NAME" "fa: define FA_NAME"
for blocks in 0 17; do
    primitive reduce.h '#define FA_NAME bad' "#define FA_BLOCKS $blocks"; rejects cc "reduce.h with FA_BLOCKS $blocks" "bad: FA_BLOCKS"
done
for number in 75 90; do
    primitive row.h "$tile" '#define FA_COLS 16' "#define FA_ARCH $number"; rejects cc "row.h with FA_ARCH $number" "bad: FA_ARCH is $number: $every_gpu"
    primitive reduce.h '#define FA_NAME bad' "#define FA_ARCH $number"; rejects cc "reduce.h with FA_ARCH $number" "bad: FA_ARCH is $number: $every_gpu"
done

if [ -z "$NVCC" ]; then
    skip "compile errors under nvcc: not found"
    tap_end
fi
arch=-arch=sm_90a
attention; accepts nvcc "the instance without a mistake compiles" $(gpu_code sm_90a)
attention '!name'; rejects nvcc "no FA_NAME" "fa/attention.h: define FA_NAME" $arch
attention '!dtype'; rejects nvcc "no FA_DTYPE" "bad: define FA_DTYPE" $arch
attention '#define FA_ARCH 90'; rejects nvcc "FA_ARCH 90 for sm_80" "bad: FA_ARCH 90 needs the instructions of sm_90a: compile with -arch=sm_90a" -arch=sm_80
attention '#define FA_ARCH 90'; rejects nvcc "FA_ARCH 90 with FA_F32" "bad: FA_ARCH 90 has FA_F16 and FA_BF16: write FA_ARCH 80 for other types" $arch
# What compiles for sm_90 without the a is told by the assembler.
attention '#define FA_ARCH 90' '!dtype' '#define FA_DTYPE FA_BF16'
compile nvcc -arch=sm_90
[ $? != 0 ] && grep -q 'FA_ARCH_90_needs_nvcc_arch_sm_90a' "$work/log"
ok $? "nvcc: FA_ARCH 90 in plain sm_90 is refused by name" "$work/log"
attention '#define FA_ARCH 90' '!dtype' '#define FA_DTYPE FA_BF16'; accepts nvcc "FA_ARCH 90 for sm_90a" $(gpu_code sm_90a)
# Called for host and device alike, by what combines it: nvcc alone would warn, and the GPU compute something else.
attention '#include <fa/mask.h>' 'static int own_keep(const void *user, fa_index at) { (void)user; return at.key > 3; }' \
    'FA_MASK_FROM_KEEP(own)' 'FA_MASK_AND(both, own, fa_causal)' '#define FA_MASK both'
rejects nvcc "a mask without FA_HOOK in FA_MASK_AND" "calling a __host__ function" $arch
attention '#include <fa/score.h>' 'static float own(const void *user, float score, fa_index at) { (void)user; return score + at.distance; }' \
    'FA_SCORE_CHAIN(both, own, fa_alibi)' '#define FA_SCORE both'
rejects nvcc "a score hook without FA_HOOK in FA_SCORE_CHAIN" "calling a __host__ function" $arch
attention 'constexpr float own(const void *, float score, fa_index at) { return score + at.distance; }' '#define FA_SCORE own'
rejects nvcc "a constexpr score hook without FA_HOOK" "calling a constexpr __host__ function" $arch
attention '#define FA_STAGES 3'; rejects nvcc "FA_STAGES 3" "bad: FA_STAGES" $arch
attention '#define FA_WARPS 3' '#define FA_BLOCK_M 64'; rejects nvcc "FA_WARPS 3 for FA_BLOCK_M 64" "bad: FA_BLOCK_M is 64 and FA_WARPS is 3: 16 or 32 times as many are needed" $arch
attention '!dim' '#define FA_HEAD_DIM 256' '#define FA_BLOCK_M 128' '#define FA_BLOCK_N 128' '#define FA_WARPS 8'
    rejects nvcc "tiles of more than 227 KB" "bad: the tiles do not fit in 227 KB of shared memory" $arch
hopper() { attention '#define FA_ARCH 90' '!dtype' '#define FA_DTYPE FA_BF16' "$@"; }
for sizes in 'FA_BLOCK_M 96' 'FA_BLOCK_M 32' 'FA_BLOCK_M 256' 'FA_WARPS 4'; do
    hopper "#define $sizes"
    rejects nvcc "FA_ARCH 90 with $sizes" ": FA_ARCH 90 needs FA_BLOCK_M 64, 128 or 192, and FA_WARPS (those that multiply) FA_BLOCK_M / 16" $arch
    rejects nvcc "FA_ARCH 90 with $sizes, and what they are" "bad: FA_BLOCK_M is " $arch
done
hopper '#define FA_BLOCK_N 20'; rejects nvcc "FA_ARCH 90 with FA_BLOCK_N 20" "bad: FA_BLOCK_N, the keys of a tile, is 20: a multiple of 16" $arch
hopper '#define FA_BLOCK_N 272'; rejects nvcc "FA_ARCH 90 with FA_BLOCK_N 272" "bad: FA_BLOCK_N, the keys of a tile, is 272: FA_ARCH 90 multiplies at most 256" $arch
for stages in 0 5; do
    hopper "#define FA_STAGES $stages"; rejects nvcc "FA_ARCH 90 with FA_STAGES $stages" "bad: FA_STAGES, the tiles of K and V in flight, is $stages: 1 or 2 (FA_ARCH 90: 1 to 4)" $arch
done
hopper '#define FA_STAGES 1' '#define FA_BLOCK_M 192' '#define FA_HEAD_DIM_V 256' '#define FA_BLOCK_N 16'
rejects nvcc "FA_ARCH 90 with more registers than three warpgroups have" "bad: the registers of a warpgroup do not hold S, P and O with FA_BLOCK_M 192, FA_BLOCK_N 16 and FA_HEAD_DIM_V 256: choose" $arch
hopper '!dim' '#define FA_HEAD_DIM 64' '#define FA_BLOCK_M 128' '#define FA_BLOCK_N 96' '#define FA_WARPS 16'
rejects nvcc "FA_ARCH 90 with more registers than two teams have" "bad: the registers of a warpgroup do not hold S, P and O with FA_BLOCK_M 128, FA_BLOCK_N 96 and FA_HEAD_DIM_V 64: choose" $arch
hopper '!dim' '#define FA_HEAD_DIM 32' '#define FA_BLOCK_M 128' '#define FA_BLOCK_N 80' '#define FA_WARPS 16'; accepts nvcc "FA_ARCH 90 with two teams" $(gpu_code sm_90a)
hopper '#define FA_BLOCK_M 64' '#define FA_WARPS 8'; rejects nvcc "FA_ARCH 90 with two teams of 64 queries" ": FA_ARCH 90 needs FA_BLOCK_M 64, 128 or 192, and FA_WARPS" $arch
attention '#define FA_BLOCK_M 528'; rejects nvcc "FA_BLOCK_M 528" "bad: FA_BLOCK_M, the queries of a tile, is 528: beyond 512 a multiple of 32 is needed" $arch
attention '!dim' '#define FA_HEAD_DIM 16' '#define FA_BLOCK_M 768'; accepts nvcc "FA_BLOCK_M 768, 24 warps" $(gpu_code sm_90a)
attention '#define FA_BLOCK_M 48'; accepts nvcc "FA_BLOCK_M 48, three warps" $(gpu_code sm_90a)
hopper '!dim' '#define FA_HEAD_DIM 128' '#define FA_STAGES 4' '#define FA_BLOCK_N 112'; rejects nvcc "FA_ARCH 90 with tiles of more than 227 KB" "bad: the tiles do not fit in 227 KB of shared memory" $arch

half="#define FA_NAME bad
#define FA_DTYPE FA_BF16"
sizes="#define FA_ROWS 64
#define FA_COLS 64"
primitive tile.h "$half" "$sizes" '#define FA_LOADER FA_TMA'
rejects nvcc "FA_TMA without FA_ARCH 90" "bad: FA_LOADER FA_TMA needs a copy engine: write FA_ARCH 90, and compile with -arch=sm_90a" $arch
primitive tile.h "$half" "$sizes" '#define FA_LOADER FA_TMA' '#define FA_ARCH 90'
rejects nvcc "FA_TMA with FA_ARCH 90 for sm_80" "bad: FA_ARCH 90 needs the instructions of sm_90a" -arch=sm_80
primitive tile.h '#define FA_NAME bad' "$sizes" '#define FA_ARCH 90'; rejects nvcc "tile.h with FA_ARCH 90 without FA_DTYPE" "bad: define FA_DTYPE" $arch
primitive tile.h "$tile" "$sizes" '#define FA_ARCH 90'; rejects nvcc "tile.h with FA_ARCH 90 and FA_F32" "bad: FA_ARCH 90 has FA_F16 and FA_BF16" $arch
primitive tile.h "$half" '#define FA_ARCH 90' '#define FA_ROWS 60' '#define FA_COLS 64'
rejects nvcc "tile.h with FA_ARCH 90 and FA_ROWS 60" "bad: FA_ROWS is 60: the layout of FA_ARCH 90 needs a multiple of 8" $arch
primitive tile.h "$half" '#define FA_ARCH 90' '#define FA_ROWS 264' '#define FA_COLS 64' '#define FA_LOADER FA_TMA'
rejects nvcc "FA_TMA with FA_ROWS 264" "bad: FA_ROWS is 264: the copy engine brings at most 256 at once" $arch
primitive mma.h "$tile" '#define FA_ARCH 90' '#define FA_M 64' '#define FA_N 64' '#define FA_K 64'
rejects nvcc "mma.h with FA_ARCH 90 and FA_F32" "bad: FA_ARCH 90 has FA_F16 and FA_BF16" $arch
primitive mma.h "$half" '#define FA_ARCH 90' '#define FA_M 64' '#define FA_N 264' '#define FA_K 64'
rejects nvcc "mma.h with FA_ARCH 90 and FA_N 264" "bad: FA_N is 264: FA_ARCH 90 multiplies at most 256" $arch
primitive mma.h "$half" '#define FA_ARCH 90' '#define FA_M 128' '#define FA_N 64' '#define FA_K 64'
rejects nvcc "mma.h with FA_ARCH 90 and FA_M 128 for four warps" "bad: FA_M is 128 and FA_WARPS is 4: FA_ARCH 90 needs FA_WARPS" $arch
primitive mma.h "$half" '#define FA_ARCH 80' '#define FA_M 64' '#define FA_N 64' '#define FA_K 8' '#define FA_B FA_OPERAND_BT'
rejects nvcc "mma.h with FA_ARCH 80 and FA_K 8 for FA_OPERAND_BT" "bad: FA_K is 8: FA_FRAGMENT and FA_OPERAND_BT need a multiple of 16" $arch
primitive mma.h "$half" '#define FA_ARCH 90' '#define FA_M 64' '#define FA_N 64' '#define FA_K 24' '#define FA_B FA_OPERAND_BT'
rejects nvcc "mma.h with FA_ARCH 90 and FA_K 24 for FA_OPERAND_BT" "bad: FA_K is 24: FA_FRAGMENT and FA_OPERAND_BT need a multiple of 16" $arch
primitive mma.h "$half" '#define FA_ARCH 80' '#define FA_M 64' '#define FA_N 24' '#define FA_K 32' '#define FA_B FA_OPERAND_BT'
rejects nvcc "mma.h with FA_ARCH 80 and FA_N 24 for FA_OPERAND_BT of half types" "bad: FA_N is 24: FA_OPERAND_BT of FA_F16 and FA_BF16 needs a multiple of 16" $arch
primitive softmax.h '#define FA_NAME bad' '#define FA_M 48' '#define FA_N 64'; rejects nvcc "softmax.h with FA_M 48 for four warps" "bad: FA_M is 48 and FA_WARPS is 4: " $arch
primitive softmax.h '#define FA_NAME bad' '#define FA_ARCH 90' '#define FA_M 64' '#define FA_N 264'
rejects nvcc "softmax.h with FA_ARCH 90 and FA_N 264" "bad: FA_M is 64, FA_N 264 and FA_WARPS 4: a product with FA_ARCH 90" $arch
primitive softmax.h '#define FA_NAME bad' '#define FA_ARCH 90' '#define FA_M 64' '#define FA_N 64' '#define FA_WARPS 8'
rejects nvcc "softmax.h with FA_ARCH 90 and FA_M 64 for eight warps" "bad: FA_M is 64, FA_N 64 and FA_WARPS 8: " $arch
# A kernel of one's own: the header cannot tell sm_90 from sm_90a either.
{
    primitive mma.h "$half" '#define FA_ARCH 90' '#define FA_M 64' '#define FA_N 64' '#define FA_K 64' && cat "$work/case.c"
    printf '%s\n' '__global__ void own(const void *a, const void *b, float *c) {' 'bad_acc acc;' 'bad_product(&acc, a, b, (int)threadIdx.x);' \
        '*c = acc.x[0];' '}'
} >"$work/own.c" && mv "$work/own.c" "$work/case.c"
accepts nvcc "a kernel of FA_ARCH 90 primitives for sm_90a" $(gpu_code sm_90a)
compile nvcc -arch=sm_90
[ $? != 0 ] && grep -q 'FA_ARCH_90_needs_nvcc_arch_sm_90a' "$work/log"
ok $? "nvcc: it is refused by name in plain sm_90" "$work/log"
# What has one schedule for every GPU.
for header in $row_kernels; do
    primitive $header "$tile" '#define FA_ARCH 90'; rejects nvcc "$header with FA_ARCH 90" "bad: FA_ARCH is 90: $every_gpu" $arch
done
primitive row.h "$tile" '#define FA_COLS 8192'; rejects nvcc "row.h with 64 vectors a thread" "bad: FA_COLS is 8192 and FA_THREADS is 32: a thread of a GPU holds at most 32 vectors" $arch
primitive row.h "$tile" '#define FA_COLS 16' '#define FA_ARCH 90'; rejects nvcc "row.h with FA_ARCH 90" "bad: FA_ARCH is 90: $every_gpu" $arch
primitive reduce.h '#define FA_NAME bad' '#define FA_ARCH 90'; rejects nvcc "reduce.h with FA_ARCH 90" "bad: FA_ARCH is 90: $every_gpu" $arch
attention; rejects nvcc "sm_75" "compile with -arch=sm_80" -arch=sm_75
# What is no mistake: arguments of one's own that C++ cannot construct, and masks whose names are macros.
hook='FA_HOOK float hook(const struct mine *user, float score, fa_index at) { (void)at; return score + user->x; }'
mask='FA_HOOK int real_keep(const void *user, fa_index at) { (void)user; return at.key % 3 != 0; }
FA_HOOK fa_tile_class real_tile(const void *user, fa_box box) { (void)user, (void)box; return FA_PARTIAL; }
FA_HOOK fa_range real_keys(const void *user, fa_box box) { (void)user; return box.keys; }
FA_HOOK fa_range real_queries(const void *user, fa_box box) { (void)user; return box.queries; }
#define other real'
for by in cc clang c++ nvcc; do
    ! absent $by || continue
    flags=-Werror
    [ $by != nvcc ] || flags="$(gpu_code sm_90a) --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror"
    attention 'struct mine { const float x; };' "$hook" '#define FA_SCORE hook' '#define FA_USER_ARGS struct mine'
    accepts $by "FA_USER_ARGS with a constant member" $flags
    attention '#include <fa/mask.h>' "$mask" 'FA_MASK_AND(both, other, fa_causal)' 'FA_MASK_OR(either, both, other)' '#define FA_MASK either'
    accepts $by "FA_MASK_AND and FA_MASK_OR of a mask whose name is a macro" $flags
    case $by in c++ | nvcc) ;; *) continue ;; esac
    attention 'struct mine { float x = 1; };' "$hook" '#define FA_SCORE hook' '#define FA_USER_ARGS struct mine'
    accepts $by "FA_USER_ARGS with a default member" $flags
    primitive swiglu.h 'struct mine { float x = 1; };' 'FA_HOOK float act(const struct mine *user, float x) { return x * user->x; }' \
        'FA_HOOK float act_grad(const struct mine *user, float x) { (void)x; return user->x; }' "$tile" '#define FA_ACTIVATION act' '#define FA_USER_ARGS struct mine'
    accepts $by "swiglu.h with such arguments" $flags
done
printf '#define FA_USER_ARGS int\n#include <fa/fa.h>\n' >"$work/case.c"; rejects cc "FA_USER_ARGS before fa/fa.h" "include fa/fa.h before FA_USER_ARGS is defined"
tap_end
