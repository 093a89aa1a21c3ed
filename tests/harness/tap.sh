# tap.sh: TAP for the scripts; sourced by tests/*_test.sh, which end with tap_end.
# Sets root, FA_INCLUDE, CC, work (a directory that goes away), CLANG, CXX and NVCC ("" where not found).
# What compilers say is looked for in English.
LC_ALL=C && export LC_ALL
# Lists of files are split at blanks.
case ${TMPDIR:-/tmp} in *[!a-zA-Z0-9/._+-]*) TMPDIR=/tmp && export TMPDIR ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
FA_INCLUDE=$(cd "$root" && cd "${FA_INCLUDE:-include}" && pwd)
CC=${CC:-cc}
CXX=${CXX:-$(command -v c++ || command -v g++)}
CLANG=$(command -v clang)
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tap_count=0 tap_failed=0

# nvcc's flags for machine code that nobody looks at, of which little is optimised: half the time; and for none at all, where this nvcc can do that.
gpu_less="-Xcicc -O1 -Xptxas -O1"
gpu_code() { echo "-gencode arch=compute_${1#sm_},code=$1 $gpu_less"; } # ARCH
gpu_syntax() { # ARCH
    gpu_code "$1"
    "$NVCC" --help | grep -q fdevice-syntax-only && echo -fdevice-syntax-only
}

# ok STATUS NAME [FILE]: a test; on failure the file's first lines become notes.
ok() {
    tap_count=$((tap_count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_count - $2"
    else
        tap_failed=1
        [ -z "$3" ] || head -n 12 "$3" | sed 's/^/# /'
        echo "not ok $tap_count - $2"
    fi
}
skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count # SKIP $1"
}
tap_end() {
    echo "1..$tap_count"
    exit $tap_failed
}
