# tap.awk: is this TAP complete and without a failure? Takes the program's exit status as `code`.
/^ok/ { tests++ }
/^not ok/ { tests++; failures++ }
/^1\.\.[0-9]+/ { sub(/^1\.\./, ""); planned = $1 + 0; plans++ }
/^Bail out/ { failures++ }
END { exit !(plans == 1 && planned == tests && !failures && code == 0) }
