#!/bin/sh
# A check for `git bisect run`: verdict.sh TIMES BUILD TEST
#   TIMES  how often TEST must pass in a row
#   BUILD  a command line; when it fails, the state is skipped (125). Empty: there is nothing to build
#   TEST   a command line; one failure makes the state bad (1)
# Exits with 128 when it is called wrongly, so that a bisection stops instead of calling every state bad.
usage() {
    echo "usage: verdict.sh TIMES BUILD TEST" >&2
    exit 128
}
[ $# -eq 3 ] || usage
case $1 in
    '' | *[!0-9]* | 0) usage ;;
esac
[ -n "$3" ] || usage
if [ -n "$2" ]; then
    sh -c "$2" || exit 125
fi
run=1
while [ "$run" -le "$1" ]; do
    if ! sh -c "$3"; then
        echo "bad: run $run of $1 failed" >&2
        exit 1
    fi
    run=$((run + 1))
done
exit 0
