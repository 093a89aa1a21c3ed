#!/bin/sh
# log.sh LOGS PROGRAM: runs a program or a .sh script and keeps its output in LOGS.
log=$1/$(basename "$2").tap
case $2 in
*.sh) sh "$2" >"$log" 2>&1 ;;
*) "$2" >"$log" 2>&1 ;;
esac
status=$?
cat "$log"
exit $status
