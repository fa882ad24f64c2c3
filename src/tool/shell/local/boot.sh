# What the persistent shell does before its loop (`loop.sh`, which is one line, so that the shell counts the lines
# of a command from 1 in its errors). Works in bash 3.2 and later, dash and other POSIX shells.
#   fd 0 at start: control pipe, one line each: `I` + code of ours, `U` + a command of the agent,
#   `M` + the file that holds one of several lines; `V` and `N` are the same with the assignments in
#   __tiller_with before them, which hold for this command alone.
#   fd 2 at start: report pipe: `MARKER r|x STATUS NUMBER\nFOLDER\0EXPORTS\0NAMES\0` (r: ready for the next, x: the shell ends;
#   number: of the line that it is about, from 1; names: functions, aliases, traps, builtins that are off, options that
#   change what a pattern stands for). Before a marker stands what others print there: the system and the shell, of a locale
#   or a library that is missing, and what a file of BASH_ENV leaves behind.
# $1: file with exports to take over, or nothing. $2: marker for the environment.
# The report is written in the condition, so that a `continue` in a command cannot skip it. While a
# command runs both pipes are closed for it: nothing that it starts can hold or fake them.
exec 8<&0 9>&2 </dev/null >/dev/null 2>/dev/null
if [ -n "$1" ]; then . "$1"; fi
export TILLER_CHILD="$2"
# Functions, since a command may unset each variable.
eval "__tiller_head() { command printf '$2 %s %s %s\\n%s\\0' \"\$@\"; }"
set --
# The number of the line.
__tiller_no() { __tiller_n=0; }
__tiller_rc() { return "$__tiller_st"; }
# Without another process, which may not be there to be found.
__tiller_load() {
  __tiller_cmd=
  while IFS= command read -r __tiller_in || [ -n "$__tiller_in" ]; do
    __tiller_cmd="$__tiller_cmd$__tiller_in
"
  done <"$1"
}
__tiller_say() {
  __tiller_no
  __tiller_head "$1" "$__tiller_st" "$__tiller_n" "$PWD" >&9
  command export -p >&9
  command printf '\0' >&9
  if [ -n "${BASH_VERSION-}" ]; then
    command declare -F
    command enable -n
    command trap -p DEBUG RETURN ERR
    command shopt -p dotglob nocaseglob extglob globstar
  fi >&9
  command alias >&9
  [ -z "${CDPATH-}" ] || command printf 'cd=CDPATH\n' >&9
  command printf '\0' >&9
}
trap '{ __tiller_st=$?; __tiller_say x; } 2>/dev/null' EXIT
