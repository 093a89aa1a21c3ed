#!/bin/sh
# torch_test.sh: the kernels that work row by row beside PyTorch's functions, where python3 has PyTorch. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
if ! python3 -c 'import torch' >/dev/null 2>&1; then
    skip "companions beside PyTorch's functions: no python3 with PyTorch"
    tap_end
fi
python3 tests/tools/second_opinion.py >"$work/log" 2>&1
status=$?
sed -E '/^(ok|not ok|1\.\.)/!s/^/# /' "$work/log"
exit $status
