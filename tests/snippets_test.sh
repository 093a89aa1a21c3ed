#!/bin/sh
# snippets_test.sh: the code in the documentation compiles: blocks of C in the headers' comments (@code{.c}), in README.md
# and in doc/*.md. A block with a main() is linked and run too. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"

extract() {
    rm -f "$work"/snippet_*
    awk -v base="$work/snippet_" '
        /@code\{\.c\}/ || /^```c$/ { inside = 1; n++; file = base n ".c"; printf "" > file; next }
        /@endcode/ || /^```$/ { if (inside) close(file); inside = 0; next }
        inside { sub(/^ \* ?/, ""); print > file }
        END { print n + 0 }' "$1"
}

cd "$root" || exit 1
for file in "$FA_INCLUDE"/fa/*.h "$FA_INCLUDE"/fa/*/*.h tests/tools/*.h README.md doc/*.md examples/README.md; do
    [ -f "$file" ] || continue
    name=${file#"$FA_INCLUDE"/}
    blocks=$(extract "$file")
    i=0
    while [ $i -lt "$blocks" ]; do
        i=$((i + 1))
        snippet=$work/snippet_$i.c
        if grep -qE '[ *]main\(' "$snippet"; then
            $CC -O1 -Wall -Wextra -Werror -I"$FA_INCLUDE" -Itests/tools -o "$work/snippet" "$snippet" -lm -pthread >"$work/log" 2>&1 &&
                (cd "$work" && ./snippet) >>"$work/log" 2>&1
            ok $? "$name: block $i compiles and runs" "$work/log"
        else
            $CC -Wall -Wextra -Werror -Wno-unused-function -I"$FA_INCLUDE" -Itests/tools -c -o "$work/snippet.o" "$snippet" >"$work/log" 2>&1
            ok $? "$name: block $i compiles" "$work/log"
        fi
        # What is for the GPU alone was empty to the C compiler.
        if [ -n "$NVCC" ] && grep -q 'if defined(__CUDACC__)' "$snippet"; then
            "$NVCC" -x cu -std=c++17 $(gpu_code sm_90a) -I"$FA_INCLUDE" -Itests/tools -c -o "$work/snippet.o" "$snippet" >"$work/log" 2>&1
            ok $? "$name: block $i compiles under nvcc for sm_90a" "$work/log"
        fi
    done
done
tap_end
