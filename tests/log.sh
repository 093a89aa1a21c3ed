#!/bin/sh
# log.sh LOGS PROGRAM: runs a program or a .sh script and keeps its output in LOGS.
log=$1/$(basename "$2").tap
# A simulated machine takes its time.
case $(basename "$2") in simulated_* | simulated90_*) FA_ROUNDS=${FA_ROUNDS:-1} && export FA_ROUNDS ;; esac
case $2 in
*.sh) sh "$2" >"$log" 2>&1 ;;
*) "$2" >"$log" 2>&1 ;;
esac
status=$?
cat "$log"
exit $status
