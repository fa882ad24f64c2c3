#!/bin/sh
# usage: calc.sh OPERATION A B
here=$(dirname "$0")
. "$here/lib/ops.sh"

if [ $# -ne 3 ]; then
    echo "usage: calc.sh OPERATION A B" >&2
    exit 2
fi

case $1 in
    [a-z]*) ;;
    *) echo "calc: '$1' is not an operation" >&2; exit 2 ;;
esac

if command -v "op_$1" >/dev/null 2>&1; then
    "op_$1" "$2" "$3"
else
    echo "calc: unknown operation '$1'" >&2
    exit 2
fi
