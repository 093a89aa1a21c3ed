#!/bin/sh
# make install, and what users do with it: a variant of their own, in a folder of their own, built through pkg-config
# and through CMake. Prints TAP. Environment: CC, NVCC, MAKE.
root=$(cd "$(dirname "$0")/.." && pwd)
CC=${CC:-cc}
make=${MAKE:-make}
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
# PREFIX, which will be in it, takes no blanks and such.
case ${TMPDIR:-/tmp} in *[!a-zA-Z0-9/._+-]*) TMPDIR=/tmp && export TMPDIR ;; esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# These are for the project's own build, not for what it is tested with.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX CFLAGS

count=0
failed=0
ok() { # status name
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - install: $2"
    else
        echo "not ok $count - install: $2"
        failed=1
        sed 's/^/# /' "$work/log"
    fi
}
skip() { # name reason
    count=$((count + 1))
    echo "ok $count # SKIP install: $1: $2"
}
try() { # name command...
    name=$1
    shift
    "$@" >"$work/log" 2>&1
    ok $? "$name"
}

# The user's program: a score hook with arguments of its own and a mask of its own, checked against plain loops.
mkdir -p "$work/user"
cat >"$work/user/variant.c" <<'PROGRAM'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fa/fa.h>
#include <fa/mask.h>

struct recency {
    float slope;
    int stride;
};
#define FA_USER_ARGS struct recency
FA_HOOK float recency_score(const FA_USER_ARGS *user, float score, fa_index at) {
    return score - user->slope * (float)abs(at.query - at.key);
}
FA_HOOK int strided_keep(const FA_USER_ARGS *user, fa_index at) { return (at.query + at.key) % user->stride != 0; }
FA_MASK_FROM_KEEP(strided)
FA_MASK_AND(strided_causal, strided, fa_causal)

#define FA_NAME     recency
#define FA_DTYPE    FA_F32
#define FA_HEAD_DIM 32
#define FA_MASK     strided_causal
#define FA_SCORE    recency_score
#if defined(__CUDACC__)
#define FA_ARCH FA_CPU
#endif
#include <fa/attention.h>

enum { HEADS = 2, SEQLEN = 77, DIM = 32, ALL = HEADS * SEQLEN * DIM };

int main(void) {
    static float q[ALL], k[ALL], v[ALL], o[ALL];
    struct recency user = {0.05f, 3};
    double worst = 0;
    for (int i = 0; i < ALL; i++) q[i] = sinf(0.7f * (float)i), k[i] = cosf(1.3f * (float)i);
    for (int i = 0; i < ALL; i++) v[i] = sinf(2.1f * (float)i);
    fa_attention_args a = fa_attention_defaults();
    a.batch = 1, a.heads = a.heads_kv = HEADS, a.seqlen_q = a.seqlen_k = SEQLEN;
    a.q = fa_tensor_bhsd(q, HEADS, SEQLEN, DIM), a.k = fa_tensor_bhsd(k, HEADS, SEQLEN, DIM);
    a.v = fa_tensor_bhsd(v, HEADS, SEQLEN, DIM), a.o = fa_tensor_bhsd(o, HEADS, SEQLEN, DIM);
    a.user = &user;
    fa_status status = recency_forward(&a, 0);
    if (status != FA_OK) {
        printf("%s: %s\n", fa_status_string(status), fa_last_error());
        return 1;
    }
    for (int row = 0; row < HEADS * SEQLEN; row++) {
        int h = row / SEQLEN, i = row % SEQLEN;
        double sum = 0, ref[DIM] = {0};
        for (int j = 0; j <= i; j++) {
            double dot = 0;
            if ((i + j) % user.stride == 0) continue;
            for (int c = 0; c < DIM; c++) dot += (double)q[row * DIM + c] * k[(h * SEQLEN + j) * DIM + c];
            double p = exp(dot / sqrt((double)DIM) - user.slope * (i - j));
            sum += p;
            for (int c = 0; c < DIM; c++) ref[c] += p * v[(h * SEQLEN + j) * DIM + c];
        }
        for (int c = 0; c < DIM; c++) worst = fmax(worst, fabs(o[row * DIM + c] - (sum > 0 ? ref[c] / sum : 0)));
    }
    printf("largest error %.2e\n", worst);
    return !(worst < 2e-6);
}
PROGRAM
cp "$work/user/variant.c" "$work/user/variant.cpp"
cp "$work/user/variant.c" "$work/user/variant.cu"

try "make install" $make -C "$root" --no-print-directory install PREFIX="$work/first"
try "every header is there, unchanged" diff -r "$root/include/fa" "$work/first/include/fa"
try "and the licence" diff "$root/LICENSE" "$work/first/share/doc/fa/LICENSE"
# From here on the prefix lies elsewhere, as after unpacking an archive: the CMake package still finds its headers.
mv "$work/first" "$work/prefix"

strict="-std=c11 -O2 -Wall -Wextra -Werror"
if command -v pkg-config >/dev/null; then
    pc() { PKG_CONFIG_PATH="$work/prefix/share/pkgconfig" pkg-config --define-variable=prefix="$work/prefix" "$@" fa; }
    flags=$(pc --cflags)
    libs=$(pc --libs)
    # shellcheck disable=SC2086
    try "pkg-config: a variant compiles" $CC $strict $flags "$work/user/variant.c" -o "$work/user/variant" $libs
    try "pkg-config: and is right" "$work/user/variant"
    if [ -n "$NVCC" ] && command -v c++ >/dev/null; then
        # shellcheck disable=SC2086
        try "pkg-config: nvcc takes the same flags" "$NVCC" -arch=sm_80 $flags "$work/user/variant.cu" -o "$work/user/variant" $libs
    else
        skip "pkg-config: nvcc" "no nvcc"
    fi
    version=$(pc --modversion)
    number=$(sed -n 's/^#define FA_VERSION //p' "$root/include/fa/fa.h")
    [ "$version" = "$((number / 10000)).$((number / 100 % 100)).$((number % 100))" ]
    ok $? "pkg-config: the version is that of fa.h"
else
    skip "pkg-config" "no pkg-config"
    try "without pkg-config: a variant compiles" $CC $strict -I"$work/prefix/include" \
        "$work/user/variant.c" -o "$work/user/variant" -lm -pthread
    try "without pkg-config: and is right" "$work/user/variant"
fi

# A shared library with an instance, whose symbols are hidden: its messages reach the program.
cat >"$work/user/library.c" <<'LIBRARY'
#include <fa/fa.h>
#define FA_NAME shared
#define FA_DTYPE FA_F32
#define FA_API __attribute__((visibility("default")))
#include <fa/row_softmax.h>
LIBRARY
cat >"$work/user/program.c" <<'PROGRAM'
#include <fa/fa.h>
#define FA_NAME shared
#define FA_DECLARE
#include <fa/row_softmax.h>
int main(void) {
    fa_row_softmax_args a = {0};
    a.rows = -1;
    return !(shared_forward(&a, 0) == FA_ERROR_ARGUMENT && !strncmp(fa_last_error(), "shared_forward: rows is -1", 26));
}
PROGRAM
try "a shared library with hidden symbols compiles" $CC -std=c11 -O1 -shared -fPIC -fvisibility=hidden -I"$work/prefix/include" \
    "$work/user/library.c" -o "$work/user/libshared.so" -lm -pthread
try "a program that calls it compiles" $CC -std=c11 -fvisibility=hidden -I"$work/prefix/include" "$work/user/program.c" \
    -o "$work/user/program" -L"$work/user" -lshared -Wl,-rpath,"$work/user"
try "and reads its messages" "$work/user/program"

# The program's name is that of a library which fa::fa links with.
cmake_project() { # folder languages source version
    mkdir -p "$work/$1"
    cp "$work/user/$3" "$work/$1"
    cat >"$work/$1/CMakeLists.txt" <<PROJECT
cmake_minimum_required(VERSION 3.18)
project(variant LANGUAGES $2)
find_package(fa $4 REQUIRED)
add_executable(m $3)
target_link_libraries(m PRIVATE fa::fa)
PROJECT
}
configure() { # folder options...
    folder=$1
    shift
    cmake -S "$work/$folder" -B "$work/$folder/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release "$@"
}
if command -v cmake >/dev/null; then
    cmake_project c C variant.c 0.1
    try "CMake, C: find_package" configure c -DCMAKE_C_COMPILER="$CC"
    try "CMake, C: a variant compiles" cmake --build "$work/c/build"
    try "CMake, C: and is right" "$work/c/build/m"
    if command -v c++ >/dev/null; then
        cmake_project cxx CXX variant.cpp ""
        try "CMake, C++: find_package" configure cxx
        try "CMake, C++: a variant compiles" cmake --build "$work/cxx/build"
        try "CMake, C++: and is right" "$work/cxx/build/m"
    else
        skip "CMake, C++" "no C++ compiler"
    fi
    if [ -n "$NVCC" ] && command -v c++ >/dev/null; then
        cmake_project cuda CUDA variant.cu ""
        try "CMake, CUDA alone: find_package" configure cuda -DCMAKE_CUDA_COMPILER="$NVCC" -DCMAKE_CUDA_ARCHITECTURES=80
        try "CMake, CUDA alone: a variant compiles" cmake --build "$work/cuda/build"
        try "CMake, CUDA alone: its CPU instance is right" "$work/cuda/build/m"
    else
        skip "CMake, CUDA" "no nvcc"
    fi
    cmake_project future C variant.c 99
    ! configure future -DCMAKE_C_COMPILER="$CC" >"$work/log" 2>&1
    ok $? "CMake: version 99 is refused"
    cmake_project parts C variant.c "COMPONENTS nonsense"
    ! configure parts -DCMAKE_C_COMPILER="$CC" >"$work/log" 2>&1 && grep -q "no components" "$work/log"
    ok $? "CMake: components are refused"

    mkdir -p "$work/bare" "$work/sources"
    cp -R "$work/prefix/share" "$work/bare"
    cat >"$work/bare/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.18)
project(bare LANGUAGES NONE)
find_package(fa)
if(fa_FOUND OR TARGET fa::fa)
  message(FATAL_ERROR "fa::fa without headers")
endif()
PROJECT
    try "CMake: without its headers it is not found, and there is no target" configure bare -DCMAKE_PREFIX_PATH="$work/bare"

    # From the sources, with the lines of the documentation.
    cp "$work/user/variant.c" "$work/sources"
    {
        printf '%s\n' 'cmake_minimum_required(VERSION 3.18)' 'project(sources LANGUAGES C)' 'add_executable(program variant.c)'
        sed -n '/^    include(FetchContent)/,/^$/p' "$root/doc/instantiate.md"
    } >"$work/sources/CMakeLists.txt"
    try "CMake, from the sources" configure sources -DCMAKE_C_COMPILER="$CC" -DFETCHCONTENT_SOURCE_DIR_FA="$root"
    try "CMake, from the sources: a variant compiles" cmake --build "$work/sources/build"
    try "CMake, from the sources: and is right" "$work/sources/build/program"
else
    skip "CMake" "no cmake"
fi

$make -C "$root" --no-print-directory install DESTDIR="$work/stage" PREFIX=/usr >"$work/log" 2>&1 &&
    [ -f "$work/stage/usr/include/fa/attention.h" ] &&
    grep -q '^prefix=/usr$' "$work/stage/usr/share/pkgconfig/fa.pc" &&
    ! grep -rq "$work" "$work/stage"
ok $? "DESTDIR stages the files and stays out of them"

for name in prefix includedir INCLUDEDIR cmakedir; do
    ! $make -C "$root" --no-print-directory install DESTDIR="$work/other" PREFIX=/usr $name=/elsewhere >"$work/log" 2>&1 &&
        grep -q "said by PREFIX and DESTDIR, not by $name" "$work/log" && [ ! -e "$work/other" ]
    ok $? "$name= is refused"
done
for wrong in "PREFIX=$work/a#b" "PREFIX=$work/a;b" "PREFIX=$work/a&b" "PREFIX=$work/a b" "PREFIX=$work/a\"b" PREFIX=here "DESTDIR=$work/a\"b" "DESTDIR=$work/a\`b"; do
    ! $make -C "$root" --no-print-directory install "$wrong" >"$work/log" 2>&1 && grep -q "${wrong%%=*} is" "$work/log" && [ -z "$(ls -d "$work"/a[!-z]b 2>/dev/null)" ]
    ok $? "$(echo "$wrong" | sed "s|$work|...|" | tr '#' '%') is refused"
done

mkdir -p "$work/stage/usr/include/fa/mine"
echo keep >"$work/stage/usr/include/fa/mine/keep.h"
$make -C "$root" --no-print-directory uninstall DESTDIR="$work/stage" PREFIX=/usr >"$work/log" 2>&1 &&
    [ "$(cd "$work/stage" && find . -type f)" = ./usr/include/fa/mine/keep.h ] &&
    ! grep -q "fa is gone" "$work/log" && grep -q 'fa/mine/keep.h$' "$work/log"
ok $? "uninstall removes what install put there and nothing else, and names what remains"
rm -r "$work/stage/usr/include/fa/mine"
$make -C "$root" --no-print-directory install uninstall DESTDIR="$work/stage" PREFIX=/usr >"$work/log" 2>&1 &&
    [ -z "$(find "$work/stage" -name 'fa*')" ] && grep -q "fa is gone" "$work/log"
ok $? "uninstall leaves no folder of ours"

echo "1..$count"
exit $failed
