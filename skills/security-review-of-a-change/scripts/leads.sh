#!/bin/sh
# Added lines of a unified diff that deserve a look: leads.sh [DIFF]   (standard input without one)
# Prints kind, file:line and the line. A lead is no fault, and no lead is no proof.
awk '
    function lead(kind, pattern) {
        if (lower ~ pattern) printf "%-10s %s:%d  %s\n", kind, file, line, text
    }
    BEGIN { six = "[^\"\047]"; six = six six six six six six }
    /^diff / { in_hunk = 0; next }
    # Names are between the header and the first hunk only: a line "++ x" that was added begins with +++ as well.
    !in_hunk && /^\+\+\+ / { file = substr($0, 5); sub(/^b\//, "", file); sub(/\t.*/, "", file); next }
    !in_hunk && /^--- / { next }
    /^@@ / {
        in_hunk = 1
        match($0, /\+[0-9]+/)
        line = substr($0, RSTART + 1, RLENGTH - 1) - 1
        next
    }
    /^-/ || /^\\/ { next }
    { line++ }
    /^\+/ {
        text = substr($0, 2)
        gsub(/[[:cntrl:]]/, " ", text)
        sub(/^ +/, "", text)
        lower = tolower(text)
        lead("command", "(system|popen|exec[lv]*p?e?|spawn|subprocess|child_process|shell *= *true|/bin/sh|invoke-expression)[^a-z_]")
        lead("query", "(select|insert into|update|delete from|order by).*([\"\047`] *(\\+|%|\\.)|\\$\\{|\\{[a-z_]+\\}|format\\()")
        lead("path", "(\\.\\./|path\\.join|os\\.path|open\\(|readfile|sendfile|unlink|extractall|symlink)")
        lead("markup", "(innerhtml|dangerouslyset|mark_safe|\\| *safe|v-html|document\\.write|autoescape)")
        lead("objects", "(pickle|yaml\\.load|unserialize|objectinputstream|marshal\\.load|eval\\()")
        lead("fetch", "(requests\\.|urlopen|fetch\\(|http\\.get|curl |reqwest|verify *= *false|insecure|rejectunauthorized)")
        lead("crypto", "(md5|sha1|[^a-z]des[^a-z]|ecb|math\\.random|rand\\(\\)|random\\.random)")
        # Six characters or more, without an interval expression: mawk reads its braces as text.
        lead("secret", "(api_?key|secret|passw(or)?d|token|private key)[\"\047]? *[:=] *[\"\047]" six)
        lead("access", "(@public|allow_?any|permit_?all|skip_?auth|no_?auth|is_?admin|csrf_exempt|access-control-allow-origin|0?777|chmod)")
        lead("limits", "(maxsize|max_?len|limit|timeout) *[:=] *(0|none|null|-1|inf)")
        lead("supply", "(curl .*\\| *(ba)?sh|postinstall|uses: |^from .*:latest|pip install|npm install|--no-verify)")
    }
' "$@"
