#!/bin/sh
# headers_test.sh: every public header alone, twice and in any order, in C11 and C++17, under all warnings of every compiler
# that is here; and that templates leave no macro behind. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"

plain="fa.h mask.h score.h math.h activation.h philox.h mbarrier.h"

# instance HEADER N: the parameters of an instance, and the header.
instance() {
    case $1 in
    attention.h) printf '#define FA_NAME attention_%s\n#define FA_DTYPE FA_BF16\n#define FA_HEAD_DIM 64\n#define FA_MASK fa_causal\n#define FA_SCORE fa_alibi\n' "$2" ;;
    tile.h) printf '#define FA_NAME tile_%s\n#define FA_DTYPE FA_BF16\n#define FA_ROWS 64\n#define FA_COLS 64\n' "$2" ;;
    mma.h) printf '#define FA_NAME mma_%s\n#define FA_DTYPE FA_BF16\n#define FA_M 64\n#define FA_N 64\n#define FA_K 64\n' "$2" ;;
    row.h) printf '#define FA_NAME row_%s\n#define FA_DTYPE FA_BF16\n#define FA_COLS 1024\n#define FA_HOLD FA_SHARED\n' "$2" ;;
    reduce.h) printf '#define FA_NAME reduce_%s\n#define FA_BLOCKS 8\n' "$2" ;;
    row_softmax.h) printf '#define FA_NAME row_softmax_%s\n#define FA_DTYPE FA_F16\n' "$2" ;;
    layernorm.h) printf '#define FA_NAME layernorm_%s\n#define FA_DTYPE FA_BF16\n' "$2" ;;
    rmsnorm.h) printf '#define FA_NAME rmsnorm_%s\n#define FA_DTYPE FA_F16\n#define FA_WEIGHT_DTYPE FA_F16\n' "$2" ;;
    swiglu.h) printf '#define FA_NAME swiglu_%s\n#define FA_DTYPE FA_BF16\n#define FA_ACTIVATION fa_gelu\n' "$2" ;;
    cross_entropy.h) printf '#define FA_NAME cross_entropy_%s\n#define FA_DTYPE FA_BF16\n' "$2" ;;
    rope.h) printf '#define FA_NAME rope_%s\n#define FA_DTYPE FA_F16\n' "$2" ;;
    softmax.h) printf '#define FA_NAME softmax_%s\n#define FA_ROWS 2\n#define FA_COLS 16\n' "$2" ;;
    esac
    echo "#include <fa/$1>"
}
templates="attention.h tile.h mma.h softmax.h row.h reduce.h row_softmax.h layernorm.h rmsnorm.h swiglu.h cross_entropy.h rope.h"

# Every header under include/fa is one of the two kinds.
unknown=
for header in "$FA_INCLUDE"/fa/*.h; do
    case " $plain $templates " in *" $(basename "$header") "*) ;; *) unknown="$unknown $(basename "$header")" ;; esac
done
[ -z "$unknown" ]
ok $? "every public header is tested${unknown:+ (not:$unknown)}"

warnings="-Wall -Wextra -Werror"
checks() { # FILE NAME
    $CC -std=c11 $warnings -Wshadow -I"$FA_INCLUDE" -fsyntax-only "$1" >"$work/log" 2>&1
    ok $? "cc -std=c11: $2" "$work/log"
    if [ -n "$CXX" ]; then
        $CXX -x c++ -std=c++17 $warnings -I"$FA_INCLUDE" -fsyntax-only "$1" >"$work/log" 2>&1
        ok $? "c++ -std=c++17: $2" "$work/log"
    fi
    if [ -n "$CLANG" ]; then
        "$CLANG" -std=c11 $warnings -I"$FA_INCLUDE" -fsyntax-only "$1" >"$work/log" 2>&1
        ok $? "clang -std=c11: $2" "$work/log"
        "$CLANG" -x c++ -std=c++17 $warnings -I"$FA_INCLUDE" -fsyntax-only "$1" >"$work/log" 2>&1
        ok $? "clang -std=c++17: $2" "$work/log"
    fi
}
[ -n "$CXX" ] || skip "headers in C++17: no C++ compiler found"
[ -n "$CLANG" ] || skip "headers under clang: not found"

for header in $plain; do
    echo "#include <fa/$header>" >"$work/alone.c"
    checks "$work/alone.c" "$header alone"
    echo "#include <fa/$header>" >>"$work/alone.c"
    checks "$work/alone.c" "$header twice"
done
for header in $templates; do
    instance $header 1 >"$work/alone.c"
    checks "$work/alone.c" "$header alone"
    instance $header 2 >>"$work/alone.c"
    checks "$work/alone.c" "$header twice"
done

# What programs with stricter rules ask for, and -pedantic, in C: the extensions that the headers use on purpose (attributes) are not warned about.
strict="-Wconversion -Wsign-conversion -Wdouble-promotion -Wundef -Wcast-qual -Wpointer-arith -Wmissing-prototypes -Wstrict-prototypes -Wshadow"
{ for header in $plain; do echo "#include <fa/$header>"; done; for header in $templates; do instance $header 1; done; } >"$work/all.c"
$CC -std=c11 $warnings $strict -pedantic -I"$FA_INCLUDE" -fsyntax-only "$work/all.c" >"$work/log" 2>&1
ok $? "cc -std=c11 -pedantic $strict: all headers" "$work/log"

# Hooks of the program's whose names are those of variables of ours: a wrapper calls them, in which nothing has a name that they may have.
named() { # KIND NAME: the hook, and an instance with it
    case $1 in
    score) printf 'FA_HOOK float %s(const FA_USER_ARGS *u, float y, fa_index i) { (void)u; return y + i.distance; }\n' "$2"
        printf '#define FA_NAME with_%s\n#define FA_DTYPE FA_BF16\n#define FA_HEAD_DIM 8\n#define FA_SCORE %s\n#include <fa/attention.h>\n' "$2" "$2" ;;
    activation) printf 'FA_HOOK float %s(const FA_USER_ARGS *u, float y) { (void)u; return y * y; }\n' "$2"
        printf 'FA_HOOK float %s_grad(const FA_USER_ARGS *u, float y) { (void)u; return 2.0f * y; }\n' "$2"
        printf '#define FA_NAME with_%s\n#define FA_DTYPE FA_F16\n#define FA_ACTIVATION %s\n#include <fa/swiglu.h>\n' "$2" "$2" ;;
    address) printf 'FA_HOOK const void *%s(const FA_USER_ARGS *u, int i) { (void)u, (void)i; return NULL; }\n' "$2"
        printf '#define FA_NAME with_%s\n#define FA_DTYPE FA_F16\n#define FA_ROWS 16\n#define FA_COLS 16\n#define FA_LOADER FA_POINTER\n#define FA_ROW_ADDRESS %s\n#include <fa/tile.h>\n' "$2" "$2" ;;
    esac
}
all_named() { # KIND NAMES
    printf '#include <fa/fa.h>\n#include <fa/score.h>\n' >"$work/$1.c"
    for name in $2; do named $1 $name; done >>"$work/$1.c"
    $CC -std=c11 $warnings -I"$FA_INCLUDE" -fsyntax-only "$work/$1.c" >"$work/log" 2>&1
    ok $? "$1 hooks may be called $2" "$work/log"
}
all_named score "distance masked hooked first box s x p r c at user score row query key edge few cols"
all_named activation "gate gates up ups row piece count held in out place team x y d p d_y at user"
all_named address "row source user tile data"
# And types of the program's for FA_USER_ARGS, which in C++ a struct of ours must not take for its members.
typed() { # NAMES
    printf '#include <fa/fa.h>\n#define FA_NAME act\n#define FA_DTYPE FA_F32\n#define FA_ACTIVATION fa_silu\n#include <fa/swiglu.h>\n'
    for name in $1; do
        printf 'typedef struct { float of[3]; } %s;\n' $name
        printf 'FA_HOOK float %s_hook(const %s *u, float y, fa_index i) { return y + u->of[i.key %% 3]; }\n' $name $name
        printf '#define FA_NAME by_%s\n#define FA_DTYPE FA_BF16\n#define FA_HEAD_DIM 8\n#define FA_USER_ARGS %s\n#define FA_SCORE %s_hook\n#include <fa/attention.h>\n' $name $name $name
        printf 'FA_HOOK float %s_gate(const %s *u, float y) { return y * u->of[0]; }\nFA_HOOK float %s_gate_grad(const %s *u, float y) { (void)y; return u->of[0]; }\n' $name $name $name $name
        printf '#define FA_NAME act_%s\n#define FA_DTYPE FA_BF16\n#define FA_USER_ARGS %s\n#define FA_ACTIVATION %s_gate\n#include <fa/swiglu.h>\n' $name $name $name
        printf 'FA__REQUIRE(sizeof ((by_%s__params *)0)->user == 12 && sizeof ((act_%s__params *)0)->user == 12, "user");\n' $name $name
    done
}
types="args p box at keys user scale q o gate up rows items section"
typed "$types" >"$work/typed.c"
$CC -std=c11 $warnings -I"$FA_INCLUDE" -fsyntax-only "$work/typed.c" >"$work/log" 2>&1
ok $? "cc: FA_USER_ARGS may be called $types" "$work/log"
if [ -n "$CXX" ]; then
    $CXX -x c++ -std=c++17 $warnings -I"$FA_INCLUDE" -fsyntax-only "$work/typed.c" >"$work/log" 2>&1
    ok $? "c++: FA_USER_ARGS may be called $types" "$work/log"
fi
if [ -n "$NVCC" ]; then
    typed "args scale gate" >"$work/typed.cu"
    "$NVCC" -std=c++17 $(gpu_syntax sm_90a) -I"$FA_INCLUDE" -c "$work/typed.cu" -o "$work/typed.o" >"$work/log" 2>&1
    ok $? "nvcc: FA_USER_ARGS may be called args, scale and gate" "$work/log"
fi
if [ -n "$NVCC" ]; then
    { printf '#include <fa/fa.h>\n'; for name in query key distance; do named score $name; done; for name in gate row; do named activation $name; done; } >"$work/named.cu"
    "$NVCC" -std=c++17 $(gpu_syntax sm_90a) -I"$FA_INCLUDE" -c "$work/named.cu" -o "$work/named.o" >"$work/log" 2>&1
    ok $? "nvcc: hooks may be called query, key, distance, gate and row" "$work/log"
fi

# A program's own macros: HEADS, LENGTH or COLS, defined before an instance, would replace a name of ours that is spelt so.
# Spelt like a macro are, in what the preprocessor leaves of our files, only names that start with FA_, and those of pthread.h.
cat >>"$work/all.c" <<'END'
#define FA_NAME attention_2
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 64
#define FA_MASK fa_document
#define FA_SCORE fa_bias
#include <fa/attention.h>
END
unguarded() { # COMMAND...
    "$@" -E -I"$FA_INCLUDE" "$work/all.c" 2>"$work/log" | awk -v ours="$FA_INCLUDE/fa/" '
        /^# *[0-9]+ "/ { split($0, part, "\""); inside = index(part[2], ours) == 1; lines += inside; next }
        !inside || /^#/ { next }
        {
            gsub(/"(\\.|[^"\\])*"/, "")
            n = split($0, word, /[^A-Za-z0-9_]+/)
            for (i = 1; i <= n; i++)
                if (word[i] ~ /^[A-Z][A-Z0-9_]*$/ && word[i] !~ /^(FA|PTHREAD)_/ && !found[word[i]]++) print word[i]
        }
        END { if (!lines) print "no line of ours was seen" }' >>"$work/log"
    [ ! -s "$work/log" ]
}
unguarded $CC -std=c11
ok $? "cc: no name of ours looks like a macro of the program's" "$work/log"
if [ -n "$NVCC" ]; then
    unguarded "$NVCC" -x cu -std=c++17 -arch=sm_90a
    ok $? "nvcc: no name of ours looks like a macro of the program's" "$work/log"
fi

# Any order: random ones, from the seed.
seed=${FA_SEED:-$(date +%s)}
echo "# seed $seed (FA_SEED=$seed repeats this run)"
for round in 1 2 3 4 5 6; do
    order=$(for header in $plain $templates; do echo "$header"; done |
        awk -v seed="$seed$round" 'BEGIN { srand(seed % 2147483647) } { print rand(), $0 }' | sort -n | cut -d' ' -f2)
    : >"$work/order.c"
    n=0
    for header in $order $order; do
        n=$((n + 1))
        case " $plain " in *" $header "*) echo "#include <fa/$header>" ;; *) instance "$header" $n ;; esac >>"$work/order.c"
    done
    $CC -std=c11 $warnings -I"$FA_INCLUDE" -fsyntax-only "$work/order.c" >"$work/log" 2>&1
    ok $? "any order, twice: $(echo $order)" "$work/log"
done

# And lower-case ones: Qt's keywords, minima and maxima, attributes under short names. (Headers of the system do not expect these, so they come
# first; nor do those that nvcc includes behind the program, which has Qt's alone.)
own() { # MACRO...: all headers, in a program with these and Qt's
    printf '#include <fa/fa.h>\n#include <fa/kernel/attention_check.h>\n#if !defined(__CUDACC__)\n#include <fa/arch/cpu/threads.h>\n#endif\n'
    for macro in 'slots' 'signals public' 'emit' 'foreach(a, b) for (a : b)' "$@"; do echo "#define $macro"; done
    cat "$work/all.c"
}
set -- 'min(a, b) ((a) < (b) ? (a) : (b))' 'max(a, b) ((a) > (b) ? (a) : (b))'
for name in noinline always_inline unused weak cold pure packed optimize; do set -- "$@" "$name __attribute__(($name))"; done
own "$@" >"$work/own.c"
$CC -std=c11 -w -I"$FA_INCLUDE" -fsyntax-only "$work/own.c" >"$work/log" 2>&1
ok $? "cc: macros of the program's called slots, emit, min, noinline and such" "$work/log"
if [ -n "$CXX" ]; then
    $CXX -x c++ -std=c++17 -w -I"$FA_INCLUDE" -fsyntax-only "$work/own.c" >"$work/log" 2>&1
    ok $? "c++: macros of the program's called slots, emit, min, noinline and such" "$work/log"
fi
if [ -n "$NVCC" ]; then
    own >"$work/own.cu"
    "$NVCC" -std=c++17 $(gpu_syntax sm_90a) -I"$FA_INCLUDE" -c "$work/own.cu" -o "$work/own.o" >"$work/log" 2>&1
    ok $? "nvcc: macros of the program's called slots and emit" "$work/log"
fi

# Macros: after an instance, as many as before it. The first instance brings in private helper headers, whose own macros
# (FA__...) and documented values (FA_OPERAND_A, ...) stay; a second instance adds nothing at all.
macros() { $CC -std=c11 -I"$FA_INCLUDE" -dM -E "$1" | sort; }
parameters="FA_NAME FA_DTYPE FA_HEAD_DIM FA_HEAD_DIM_V FA_MASK FA_SCORE FA_USER_ARGS FA_API FA_ARCH FA_SUB FA_DECLARE FA_BLOCK_M
    FA_BLOCK_N FA_STAGES FA_WARPS FA_ROWS FA_COLS FA_OPERAND FA_LOADER FA_ROW_ADDRESS FA_M FA_N FA_K FA_A FA_B FA_OWNERS FA_THREADS FA_HOLD FA_KEEP FA_PIECES FA_BLOCKS
    FA_ACTIVATION FA_WEIGHT_DTYPE FA_WIDE FA_WHOLE FA_VECTOR"
public="FA_OPERAND_A FA_OPERAND_B FA_OPERAND_BT FA_BLOCK FA_POINTER FA_TMA FA_SHARED FA_FRAGMENT"
find "$FA_INCLUDE/fa" -name '*.h' -exec sed -n 's/^# *define  *\([A-Za-z_0-9]*\).*/\1/p' {} + | sort -u >"$work/ours.txt"
for header in $templates; do
    { for h in $plain; do echo "#include <fa/$h>"; done; echo '#include <math.h>'; echo '#include <pthread.h>'; echo '#include <stdlib.h>'; echo '#include <unistd.h>'; } >"$work/before.c"
    { cat "$work/before.c"; instance $header 1; } >"$work/after.c"
    { cat "$work/after.c"; instance $header 2; } >"$work/again.c"
    macros "$work/before.c" >"$work/before.txt"
    macros "$work/after.c" >"$work/after.txt"
    macros "$work/again.c" >"$work/again.txt"
    comm -13 "$work/before.txt" "$work/after.txt" | awk '{ sub(/\(.*/, "", $2); print $2 }' | grep -Fxf "$work/ours.txt" >"$work/new.txt"
    : >"$work/leaks.txt"
    for parameter in $parameters; do grep -x "$parameter" "$work/new.txt" >>"$work/leaks.txt"; done
    while read -r macro; do
        case " $(echo $public) " in *" $macro "*) continue ;; esac
        case $macro in FA__* | FA_*_H | _*) ;; *) echo "$macro" >>"$work/leaks.txt" ;; esac
    done <"$work/new.txt"
    [ ! -s "$work/leaks.txt" ]
    ok $? "$header leaves no parameter and no public macro behind" "$work/leaks.txt"
    comm -3 "$work/after.txt" "$work/again.txt" >"$work/leaks.txt"
    [ ! -s "$work/leaks.txt" ]
    ok $? "a second instance of $header changes no macro" "$work/leaks.txt"
done
for header in attention.h row_softmax.h layernorm.h rmsnorm.h swiglu.h cross_entropy.h rope.h; do
    { cat "$work/before.c"; printf '#define FA_API FA_EXTERN\n#define FA_DECLARE\n#define FA_NAME declared\n#include <fa/%s>\n' $header; } >"$work/declared.c"
    $CC -std=c11 $warnings -I"$FA_INCLUDE" -fsyntax-only "$work/declared.c" >"$work/log" 2>&1
    ok $? "$header with FA_DECLARE" "$work/log"
    macros "$work/declared.c" | comm -13 "$work/before.txt" - | awk '{ sub(/\(.*/, "", $2); print $2 }' >"$work/new.txt"
    : >"$work/leaks.txt"
    for parameter in $parameters; do grep -x "$parameter" "$work/new.txt" >>"$work/leaks.txt"; done
    [ ! -s "$work/leaks.txt" ]
    ok $? "$header with FA_DECLARE leaves no parameter behind" "$work/leaks.txt"
done

# What is attention's, given to another template, does not reach the next instance, nor does what is a companion's, given to attention.
kept() { # HEADER PARAMETER...: what the instance in after.c, before which they are defined, leaves of them
    header=$1
    shift
    { echo '#include <fa/fa.h>' && printf '#define FA_%s\n' "$@" && instance "$header" 1; } >"$work/after.c"
    macros "$work/after.c" | grep -E "^#define FA_($(printf '%s|' "$@" | sed 's/ [^|]*//g; s/|$//')) " >"$work/leaks.txt"
    [ ! -s "$work/leaks.txt" ]
    ok $? "$header leaves no parameter of other templates behind" "$work/leaks.txt"
}
for header in row_softmax.h layernorm.h rmsnorm.h swiglu.h cross_entropy.h rope.h; do
    kept $header 'USER_ARGS int' 'MASK fa_causal' 'SCORE fa_alibi' 'HEAD_DIM 64' 'HEAD_DIM_V 16' 'BLOCK_M 16' 'BLOCK_N 16' 'STAGES 2' 'WARPS 1'
done
kept attention.h 'ACTIVATION fa_relu' 'WEIGHT_DTYPE FA_F16'

# Assembly, and functions that only nvcc knows, are for the instruction layer. (Comments show some.)
grep -rnE '(^|[^_a-z])asm *(volatile *)?\(|__((sync|shfl_|reduce_|match_|cvta)[a-z_]*|(ballot|any|all)_sync|ldg|f[a-z]+_r[nzud]|umul(64)?hi|funnelshift_[a-z]+|ffs|popc|clz)\(|(^|[^_])atomic[A-Z][A-Za-z]*\(' \
    "$FA_INCLUDE/fa" | grep -vE '/arch/[a-z0-9]+/(ops|wgmma|math|convert)\.h:|\.h:[0-9]+: \*' >"$work/log"
[ ! -s "$work/log" ]
ok $? "no instruction outside fa/arch/NAME/ops.h, math.h and convert.h" "$work/log"
grep -rn '__asm__' "$FA_INCLUDE/fa" | grep -vE '/arch/cpu/(ops(_[a-z0-9]+)?|isa|amx)\.h:|/attention_cpu_worker\.h:[0-9]+: .*__asm__( volatile)?\(""' >"$work/log"
[ ! -s "$work/log" ]
ok $? "no instruction of the CPU outside fa/arch/cpu/ops*.h, isa.h and amx.h" "$work/log"

# FA_API static: no warning of the functions that the file does not call.
{
    echo '#include <fa/fa.h>'
    for header in attention.h row_softmax.h layernorm.h rmsnorm.h swiglu.h cross_entropy.h rope.h; do
        echo '#define FA_API static' && instance $header 1
    done
} >"$work/static.c"
$CC -std=c11 $warnings -I"$FA_INCLUDE" -c -o "$work/static.o" "$work/static.c" >"$work/log" 2>&1
ok $? "cc -std=c11: FA_API static" "$work/log"
if [ -n "$CXX" ]; then
    $CXX -x c++ -std=c++17 $warnings -I"$FA_INCLUDE" -c -o "$work/static.o" "$work/static.c" >"$work/log" 2>&1
    ok $? "c++ -std=c++17: FA_API static" "$work/log"
fi
# Later standards find fault with sums of numbers of different enumerations.
if [ -n "$CXX" ]; then
    $CXX -x c++ -std=c++2a $warnings -I"$FA_INCLUDE" -fsyntax-only "$work/all.c" >"$work/log" 2>&1
    ok $? "c++ -std=c++2a: all headers" "$work/log"
fi

# The schedule for every GPU has tiles that fit into the shared memory of the smallest, with one stage (a C++ compiler knows their sizes).
if [ -n "$CXX" ]; then
    echo '#include <fa/fa.h>' >"$work/small.cu"
    for dtype in F32 TF32 BF16; do
        for head_dim in 8 64 72 96 104 128 136 192 200 224 256; do
            for hooks in 0 1; do
                name=small_${dtype}_${head_dim}_$hooks
                printf '#define %s\n' "FA_NAME $name" 'FA_ARCH 80' "FA_DTYPE FA_$dtype" "FA_HEAD_DIM $head_dim"
                [ $hooks = 0 ] || printf '#define %s\n' 'FA_MASK fa_document' 'FA_SCORE fa_bias'
                echo '#include <fa/attention.h>'
                echo "static_assert(${name}_sm80_less_shared <= 99 * 1024, \"$name\");"
            done
        done
    done >>"$work/small.cu"
    $CXX -x c++ -std=c++17 -w -I"$root/tests/simulator/include" -I"$root/tests/simulator" -include cuda_runtime.h -D__CUDACC__ -D__CUDA_ARCH__=800 -D__CUDA_ARCH_LIST__=800 \
        -I"$FA_INCLUDE" -fsyntax-only "$work/small.cu" >"$work/log" 2>&1
    ok $? "c++: the tiles of the schedule for every GPU fit into 99 KB with one stage" "$work/log"
fi

if [ -z "$NVCC" ]; then
    skip "headers under nvcc: not found"
else
    for arch in sm_80 sm_90a; do
        "$NVCC" -x cu -std=c++17 $(gpu_syntax $arch) --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I"$FA_INCLUDE" -c -o "$work/all.o" "$work/order.c" \
            >"$work/log" 2>&1
        ok $? "nvcc -std=c++17 for $arch --Werror all-warnings: all headers twice, in the last order" "$work/log"
    done
    { echo '#include <fa/mask.h>' && echo '#include <fa/score.h>' && instance attention.h 1; } >"$work/host.c"
    "$NVCC" -Xcompiler -Wall,-Wextra,-Werror -I"$FA_INCLUDE" -c -o "$work/all.o" "$work/host.c" >"$work/log" 2>&1
    ok $? "nvcc, of a file in C, which it gives to the host's compiler" "$work/log"
    # clang behind nvcc: where this nvcc takes this clang.
    echo >"$work/empty.cu"
    if [ -n "$CLANG" ] && "$NVCC" -ccbin "$CLANG" -arch=sm_80 -c -o "$work/all.o" "$work/empty.cu" >"$work/log" 2>&1; then
        { echo '#include <fa/mask.h>' && echo '#include <fa/score.h>' && instance attention.h 1 && instance swiglu.h 1; } >"$work/hooks.cu"
        for arch in sm_80 sm_90a; do
            "$NVCC" -ccbin "$CLANG" -std=c++17 $(gpu_syntax $arch) --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I"$FA_INCLUDE" -c -o "$work/all.o" \
                "$work/hooks.cu" >"$work/log" 2>&1
            ok $? "nvcc -ccbin clang for $arch: hooks" "$work/log"
        done
    else
        skip "hooks under nvcc -ccbin clang: not found, or not for this nvcc"
    fi
fi
tap_end
