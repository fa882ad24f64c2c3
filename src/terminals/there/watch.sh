# Ends a shell ($1: its folder) that has had no connection for $2 seconds: the program that opened it was killed, or its
# machine is gone. It also holds the writing end of a command's input, until that is to be closed.
alive() {
  kill -0 "$1" 2>/dev/null || return 1
  [ -r "/proc/$1/stat" ] || return 0
  read -r stat <"/proc/$1/stat" 2>/dev/null || return 1
  case ${stat##*") "} in Z*) return 1 ;; esac
}
away=0
exec 9<>"$1/input"
while sleep 2; do
  # Without its folder nothing can reach the shell any more.
  [ -d "$1" ] || break
  [ ! -e "$1/closed" ] || exec 9>&-
  relay=$(cat "$1/relay" 2>/dev/null)
  if alive "$relay"; then away=0; else away=$((away + 2)); fi
  [ "$away" -lt "$2" ] || break
done
pid=$(cat "$1/pid" 2>/dev/null)
key=${1##*/}
rm -rf "$1"
[ -z "$pid" ] || kill -KILL -"$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null
# One that forks while they are listed, or is just becoming another program, is not in the list.
none=0 round=0
while [ "$none" -lt 2 ] && [ "$round" -lt 20 ]; do
  none=$((none + 1)) round=$((round + 1))
  for p in $(grep -l "TILLER_CHILD=$key" /proc/[0-9]*/environ 2>/dev/null); do
    p=${p#/proc/}
    kill -KILL "${p%/environ}" 2>/dev/null && none=0
  done
done
