#!/bin/sh
# pairs_test.sh: the table of tested combinations covers every pair of choices.
exec "${BUILD:-build}/tests/pairs" check tests/pairs.h
