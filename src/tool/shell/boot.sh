# The loop of the persistent shell. Works in bash 3.2 and later, dash and other POSIX shells.
#   fd 0 at start: control pipe, one line each: `I` + code of ours, `U` + a command of the agent.
#   fd 2 at start: report pipe: `r|x STATUS\nFOLDER\0EXPORTS\0` (r: ready for the next, x: the shell ends).
# $1: file with exports to take over, or nothing. $2: marker for the environment.
# The report is written in the condition, so that a `continue` in a command cannot skip it. While a
# command runs both pipes are closed for it: nothing that it starts can hold or fake them.
exec 8<&0 9>&2 </dev/null >/dev/null 2>/dev/null
if [ -n "$1" ]; then . "$1"; fi
export TILLER_CHILD="$2"
set --
__tiller_rc() { return "$__tiller_st"; }
__tiller_say() {
  command printf '%s %s\n%s\0' "$1" "$__tiller_st" "$PWD" >&9
  command export -p >&9
  command printf '\0' >&9
}
trap '{ __tiller_st=$?; __tiller_say x; } 2>/dev/null' EXIT
while
  __tiller_st=$?
  set +eux
  __tiller_say r
  IFS= read -r __tiller_in <&8
do
  case $__tiller_in in
    I*) eval "${__tiller_in#?}" >/dev/null 2>&1 ;;
    U*) __tiller_rc; eval "${__tiller_in#?}" </dev/null >"$__tiller_out" 2>&1 8<&- 9>&- ;;
  esac
done
