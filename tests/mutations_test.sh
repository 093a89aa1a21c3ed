#!/bin/sh
# Every fault of mutations.txt still fits its file: what it changes is there, in as many lines as it says. (`make mutate` puts them in.) Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
awk -v root="$root/" '
    function lines_of(file, line, path) { # kept in text[file, 1..count[file]]
        path = root "include/fa/" file
        if (file in count) return
        count[file] = 0
        while ((getline line < path) > 0) text[file, ++count[file]] = line
        close(path)
    }
    function look(found, i) {
        if (file == "") return
        lines_of(file)
        for (i = 1; i <= count[file]; i++) found += index(text[file, i], from) > 0
        if (from == "" || found != lines) {
            printf "fault %d (%s) in %s: %d lines have what it changes, not %d: %s\n", number, why, file, found, lines, from
            failed = 1
        }
    }
    /^file / { look(); number++; file = substr($0, 6); from = why = ""; lines = 1 }
    /^from / { from = substr($0, 6) }
    /^why / { why = substr($0, 5) }
    /^lines / { lines = substr($0, 7) + 0 }
    END { look(); exit failed || number == 0 }' "$root/tests/mutations.txt" >"$work/log"
ok $? "every fault fits its file" "$work/log"
tap_end
