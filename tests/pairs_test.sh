#!/bin/sh
# pairs_test.sh: the table of tested combinations covers every pair of choices.
cd "$(dirname "$0")/.." || exit 1
pairs=${BUILD:-build}/tests/pairs
[ -x "$pairs" ] || { echo "pairs_test.sh: there is no $pairs: make $pairs" >&2; exit 1; }
exec "$pairs" check tests/pairs.h
