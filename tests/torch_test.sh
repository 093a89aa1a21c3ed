#!/bin/sh
# torch_test.sh: the kernels that work row by row beside PyTorch's functions, where PYTHON (python3) has PyTorch. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
PYTHON=${PYTHON:-python3}
if ! $PYTHON -c 'import torch' >/dev/null 2>&1; then
    skip "companions beside PyTorch's functions: no $PYTHON with PyTorch"
    tap_end
fi
$PYTHON "$root/tests/tools/second_opinion.py" >"$work/log" 2>&1
status=$?
sed -E '/^(ok|not ok|1\.\.)/!s/^/# /' "$work/log"
exit $status
