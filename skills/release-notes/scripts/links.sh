#!/bin/sh
# Compares issue numbers of release notes and of the history: links.sh NOTES SINCE [UNTIL]
#   NOTES  file with the notes of this release only, or - for standard input
#   SINCE  tag or commit of the last release; UNTIL is HEAD unless given
# Prints "only in notes: #N" and "only in history: #N". Exit code 1 when there is one, 2 when it was called wrongly.
[ $# -ge 2 ] || { echo "usage: links.sh NOTES SINCE [UNTIL]" >&2; exit 2; }
range="$2..${3:-HEAD}"
git rev-parse --verify --quiet "$2^{commit}" >/dev/null || { echo "there is no commit $2" >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
numbers() { grep -oE '#[0-9]+' | sort -u; }
cat -- "$1" | numbers >"$work/notes"
git log --format=%B "$range" | numbers >"$work/history"
comm -23 "$work/notes" "$work/history" | sed 's/^/only in notes: /' >"$work/out"
comm -13 "$work/notes" "$work/history" | sed 's/^/only in history: /' >>"$work/out"
cat "$work/out"
[ ! -s "$work/out" ]
