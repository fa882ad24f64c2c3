# The persistent shell at the other side; $1 is its folder. The last line is started by itself and runs the others, so that
# the shell counts the lines of a command from 1 in its errors. A line in `in` is the number of a command; its text is in
# N.cmd, its output goes to N.out, its end to N.end, and N.done says that N.end is whole; what has an
# N.out was begun already. The report is written in the
# condition, so that a `continue` in a command cannot skip it.
__tiller_d=$1
__tiller_n=0
trap '' HUP
exec 8<>"$__tiller_d/in" </dev/null >/dev/null 2>/dev/null
echo "$$" >"$__tiller_d/pid"
cd "$(command -p cat "$__tiller_d/folder")" || cd
[ ! -s "$__tiller_d/exports" ] || . "$__tiller_d/exports"
# The exports are those of another shell, with the mark by which what it started is ended.
export TILLER_CHILD="${__tiller_d##*/}"
for __tiller_v in PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER; do export "$__tiller_v=cat"; done
export TERM=dumb EDITOR=false VISUAL=false GIT_EDITOR=true GIT_TERMINAL_PROMPT=0 DEBIAN_FRONTEND=noninteractive
set --
__tiller_rc() { return "$__tiller_st"; }
__tiller_say() {
  { command printf '%s\n%s\n%s\n' "$1" "$__tiller_st" "$PWD"; command export -p; } >"$__tiller_d/$__tiller_n.end"
  : >"$__tiller_d/$__tiller_n.done"
}
trap '{ __tiller_st=$?; __tiller_say x; } 2>/dev/null' EXIT
eval "$(command -p sed '$d' "$1/loop")"; while __tiller_st=$?; set +eux; __tiller_say r; IFS= command read -r __tiller_n <&8; do if [ -e "$__tiller_d/$__tiller_n.out" ]; then __tiller_n=skip; __tiller_rc; else __tiller_cmd=$(command -p cat "$__tiller_d/$__tiller_n.cmd"); case $__tiller_n in p*) __tiller_from=$__tiller_d/input ;; *) __tiller_from=/dev/null ;; esac; __tiller_rc; command eval "$__tiller_cmd" <"$__tiller_from" >>"$__tiller_d/$__tiller_n.out" 2>&1 8<&-; fi; done
