#!/bin/sh
# Runs every check and says which fail. Exit status 1 when any does.
here=$(dirname "$0")
failed=0

check() { # OPERATION A B EXPECTED
    got=$(sh "$here/calc.sh" "$1" "$2" "$3")
    if [ "$got" = "$4" ]; then
        echo "ok    $1 $2 $3 = $4"
    else
        echo "FAIL  $1 $2 $3: expected $4, got $got"
        failed=1
    fi
}

check add 2 3 5
check add -4 4 0
check sub 5 3 2
check mul 4 5 20
check div 9 2 4

if [ $failed -ne 0 ]; then
    echo "some checks failed"
    exit 1
fi
echo "all checks passed"
