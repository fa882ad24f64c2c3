#!/bin/sh
# Files that changed most often, with the number of authors: hotspots.sh [SINCE] [COUNT]
# Files that no longer exist are left out. Run it in a git repository.
since=${1:-1.year}
count=${2:-20}
git rev-parse --git-dir >/dev/null 2>&1 || { echo "this is not a git repository" >&2; exit 1; }
cd "$(git rev-parse --show-toplevel)" || exit 1
# Each commit gives a line "@author" and then its files.
git -c core.quotePath=false log --since="$since" --no-merges --format='@%ae' --name-only |
    awk '
        /^@/ { author = $0; next }
        NF { changes[$0]++; if (!(($0, author) in seen)) { seen[$0, author] = 1; authors[$0]++ } }
        END { for (file in changes) printf "%d\t%d\t%s\n", changes[file], authors[file], file }
    ' |
    sort -t "$(printf '\t')" -k1,1nr -k3,3 |
    while IFS="$(printf '\t')" read -r changes authors file; do
        [ -f "$file" ] && printf '%5d changes  %3d authors  %s\n' "$changes" "$authors" "$file"
    done |
    head -n "$count"
