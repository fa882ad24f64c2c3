# The helper at the other side of a connection: POSIX sh and the base tools. It reads requests from standard input, one
# header line each, some followed by as many bytes as the header says, and answers with frames of the same form.
#   open KEY KEEP FOLDER EXPORTS SHELL WATCH   the persistent shell KEY; the numbers are lengths of what follows
#   run N OFFSET LENGTH                        command N of that shell, its output from an offset, its end; a command that
#                                              was started over an earlier connection is not started again
#   input LENGTH, close                        bytes for the command's standard input; its end
#   kill SIGNAL, quit                          signals to all that the shell started; its end
#   root LENGTH, list, get LENGTH, put LENGTH, remove LENGTH     files below a folder
# Frames: `ready`, `o LENGTH` (output), `e LENGTH` (end and report), `gone`, `d LENGTH` (data), `ok`, `no LENGTH` (reason).
mask=$(umask)
umask 077
unset CDPATH ENV BASH_ENV
tab=$(printf '\t')
# In bytes: the shell itself would count characters.
say() { printf '%s %s\n%s' "$1" "$(($(printf %s "$2" | wc -c)))" "$2"; }
no() { say no "$1"; }
# Exactly this many bytes of standard input. Not more: what follows is the next request.
if printf 'ab' | dd bs=2 count=1 iflag=fullblock >/dev/null 2>&1; then
  take() {
    [ "$(($1 / 65536))" -eq 0 ] || dd bs=65536 count="$(($1 / 65536))" iflag=fullblock 2>/dev/null
    [ "$(($1 % 65536))" -eq 0 ] || dd bs="$(($1 % 65536))" count=1 iflag=fullblock 2>/dev/null
  }
else
  take() { [ "$1" -eq 0 ] || dd bs=1 count="$1" 2>/dev/null; }
fi
if sleep 0.01 2>/dev/null; then fine=1; else fine=0; fi
nap() { if [ "$fine" = 1 ]; then sleep "$1"; else sleep 1; fi; }

# A process that has ended and that its parent has not noticed is not alive.
alive() {
  kill -0 "$1" 2>/dev/null || return 1
  [ -r "/proc/$1/stat" ] || return 0
  read -r stat <"/proc/$1/stat" 2>/dev/null || return 1
  case ${stat##*") "} in Z*) return 1 ;; esac
}

# A folder of this user alone.
base() {
  b=${HOME:-/nonexistent}/.cache/tiller
  mkdir -p "$b" 2>/dev/null && private && return 0
  b=${TMPDIR:-/tmp}/.tiller-$(id -u)
  mkdir -m 700 "$b" 2>/dev/null
  private
}
# Whether the folder $b belongs to this user and only this user writes there: another one could put a shell of theirs in it.
private() {
  [ -d "$b" ] && [ ! -L "$b" ] && [ -O "$b" ] && [ -w "$b" ] || return 1
  case $(ls -ld "$b") in d????w* | d???????w*) [ -z "$(ls -A "$b")" ] && chmod go-w "$b" ;; esac
}
no_base() {
  if [ -e "$b" ] || [ -L "$b" ]; then
    no "$b cannot be used: it is a link, belongs to another user, or others may write there. Remove it"
  else no "no folder can be made in $b"; fi
}

# Starts a program that outlives this connection and leads its own group.
if command -v setsid >/dev/null 2>&1; then
  apart() { setsid "$@" </dev/null >/dev/null 2>&1 & }
else
  apart() { set -m; "$@" </dev/null >/dev/null 2>&1 & set +m; }
fi

open() {
  key=$1 keep=$2
  if ! base; then
    take "$(($3 + $4 + $5 + $6))" >/dev/null
    no_base
    return
  fi
  d=$b/$key
  if [ -d "$d" ]; then
    take "$(($3 + $4 + $5 + $6))" >/dev/null
    echo "$$" >"$d/relay"
    printf 'ready %s\n' again
    return
  fi
  if ! mkdir -m 700 "$d" || ! mkfifo "$d/in" || ! mkfifo "$d/input"; then
    take "$(($3 + $4 + $5 + $6))" >/dev/null
    no "no folder can be made in $b"
    return
  fi
  echo "$$" >"$d/relay"
  take "$3" >"$d/folder"
  take "$4" >"$d/exports"
  take "$5" >"$d/loop"
  take "$6" >"$d/watch"
  umask "$mask"
  if command -v bash >/dev/null 2>&1; then
    apart env "TILLER_CHILD=$key" bash --noprofile --norc -c "$(tail -n 1 "$d/loop")" sh "$d"
  else
    apart env "TILLER_CHILD=$key" sh -c "$(tail -n 1 "$d/loop")" sh "$d"
  fi
  umask 077
  i=0
  while [ ! -e "$d/0.done" ]; do
    i=$((i + 1))
    if [ "$i" -gt 400 ]; then no "the shell did not start"; return; fi
    nap 0.02
  done
  apart sh "$d/watch" "$d" "$keep"
  printf 'ready %s\n' new
}

# Output of command N from an offset, then its end. Runs beside the loop that reads requests.
follow() {
  n=$1 off=$2 quiet=0 pid=$(cat "$d/pid" 2>/dev/null)
  while [ ! -e "$d/$n.out" ] && [ ! -e "$d/$n.done" ] && alive "$pid"; do nap 0.01; done
  [ -e "$d/$n.out" ] || : >"$d/$n.out"
  exec 7<"$d/$n.out"
  if [ "$off" -gt 0 ]; then
    [ "$((off / 65536))" -eq 0 ] || dd bs=65536 count="$((off / 65536))" <&7 >/dev/null 2>&1
    [ "$((off % 65536))" -eq 0 ] || dd bs="$((off % 65536))" count=1 <&7 >/dev/null 2>&1
  fi
  while :; do
    if [ -e "$d/$n.done" ]; then last=done
    elif alive "$pid"; then last=
    elif [ -e "$d/$n.done" ]; then last=done
    else last=gone; fi
    size=$(wc -c <"$d/$n.out" 2>/dev/null) || size=$off
    size=$((size + 0))
    while [ "$size" -gt "$off" ]; do
      len=$((size - off))
      [ "$len" -le 65536 ] || len=65536
      printf 'o %s\n' "$len" && dd bs="$len" count=1 <&7 2>/dev/null || exit 1
      off=$((off + len)) quiet=0
    done
    case $last in
    done)
      len=$(wc -c <"$d/$n.end")
      printf 'e %s\n' "$((len + 0))"
      cat "$d/$n.end"
      return
      ;;
    gone) echo gone; return ;;
    esac
    # A file of this size would fill the disk before it could be read.
    [ "$size" -lt 1073741824 ] || signal KILL
    # The connection is gone.
    alive "$$" || exit 1
    quiet=$((quiet + 1))
    if [ "$quiet" -lt 10 ]; then nap 0.01
    elif [ "$quiet" -lt 30 ]; then nap 0.05
    elif [ "$quiet" -lt 60 ]; then nap 0.2
    else nap 0.5; fi
  done
}

# To the shell's group, and to what has left it and still has its mark.
signal() {
  pid=$(cat "$d/pid" 2>/dev/null) || return
  kill -"$1" -"$pid" 2>/dev/null || kill -"$1" "$pid" 2>/dev/null
  # One that forks while they are listed, or is just becoming another program, is not in the list: KILL goes on until
  # two lists are empty.
  none=0 round=0
  while [ "$none" -lt 2 ] && [ "$round" -lt 20 ]; do
    none=$((none + 1)) round=$((round + 1))
    for p in $(grep -l "TILLER_CHILD=$key" /proc/[0-9]*/environ 2>/dev/null); do
      p=${p#/proc/}
      kill -"$1" "${p%/environ}" 2>/dev/null && none=0
    done
    [ "$1" = KILL ] || return
    nap 0.01
  done
}

finish() {
  [ -n "$d" ] || return
  echo quit >"$d/relay"
  signal TERM
  i=0
  while alive "$(cat "$d/pid" 2>/dev/null)" && [ "$i" -lt 20 ]; do i=$((i + 1)); nap 0.05; done
  signal KILL
  rm -rf "$d"
}

# Whether the folder of a path really lies below the root: a link in between may lead elsewhere.
inside() {
  case $1 in */*) in_dir=${1%/*} ;; *) in_dir=. ;; esac
  [ "$in_dir" != "$known" ] || return 0
  in_real=$(cd "$root/$in_dir" 2>/dev/null && pwd -P) || return 1
  case $in_real in "$root" | "$root"/*) known=$in_dir; return 0 ;; esac
  return 1
}

# Mode, size, times and path of each file. What is neither a file nor a folder nor a link is named and never opened.
if stat -c %a / >/dev/null 2>&1; then stat=-c form="%a$tab%s$tab%y %z$tab%n"
else stat=-f form="%Lp$tab%z$tab%Fm %Fc$tab%N"; fi
list() {
  find . -name .git -prune -o -type f ! -name "*
*" -exec stat "$stat" "$form" {} + >"$t/list" 2>/dev/null
  find . -name .git -prune -o \( -type p -o -type s -o -type b -o -type c \) ! -name "*
*" -print 2>/dev/null | sed "s/^/special${tab}0${tab}-$tab/" >>"$t/list"
  data "$t/list"
}

data() {
  len=$(wc -c <"$1")
  printf 'd %s\n' "$((len + 0))"
  cat "$1"
  rm -f "$1"
}

put() {
  take "$1" >"$t/put"
  rm -rf "$t/new" && mkdir "$t/new" && (umask 022; tar xof "$t/put" -C "$t/new" 2>"$t/why")
  if [ "$?" -ne 0 ]; then no "$(cat "$t/why")"; return; fi
  rm -f "$t/put"
  # The time of the change is that of the clock there, by which builds compare.
  find "$t/new" -type f -exec touch {} +
  (cd "$t/new" && find . -type f) >"$t/names"
  known= refused=
  while IFS= read -r name; do
    name=${name#./}
    case $name in */*) (umask "$mask"; inside "$name" || mkdir -p "$root/${name%/*}" 2>/dev/null) ;; esac
    if inside "$name" && mv -f "$t/new/$name" "$root/$name" 2>"$t/why"; then :; else refused=$name; fi
  done <"$t/names"
  rm -rf "$t/new"
  if [ -n "$refused" ]; then no "$refused could not be written: $(cat "$t/why")"; else echo ok; fi
}

d= t= f=
while IFS=' ' read -r verb a b_ c_ d_ e_ f_; do
  case $verb in
  open) open "$a" "$b_" "$c_" "$d_" "$e_" "$f_" ;;
  run)
    take "$c_" >"$d/new"
    # The answers to earlier ones have arrived: the next one would not come without them.
    for old in "$d"/*.done; do
      old=${old%.done}
      [ "$old" = "$d/$a" ] || rm -f "$old".*
    done
    mv -f "$d/new" "$d/$a.cmd"
    # The shell leaves out what it has begun already.
    [ -e "$d/$a.out" ] || echo "$a" >"$d/in"
    follow "$a" "$b_" &
    f=$!
    ;;
  input) take "$a" >"$d/input" ;;
  close) : >"$d/closed" ;;
  kill) signal "$a" ;;
  quit)
    finish
    exit 0
    ;;
  root)
    root=$(take "$a")
    case $root in "~") root=$HOME ;; "~/"*) root=$HOME/${root#"~/"} ;; esac
    if ! base; then no_base
    elif ! mkdir -p "$root" 2>/dev/null || ! cd "$root" 2>/dev/null; then
      no "the folder $root cannot be used there"
    else
      root=$(pwd -P) t=$b/files-$$
      rm -rf "$t"
      mkdir -m 700 "$t"
      say d "$root"
    fi
    ;;
  list) list ;;
  get)
    take "$a" >"$t/names"
    # Not `-T`, which BusyBox may lack.
    set --
    while IFS= read -r name; do set -- "$@" "./$name"; done <"$t/names"
    tar cf "$t/get" "$@" 2>/dev/null
    data "$t/get"
    ;;
  put) put "$a" ;;
  remove)
    take "$a" >"$t/names"
    known=
    while IFS= read -r name; do
      inside "$name" && rm -f "$root/$name"
    done <"$t/names"
    echo ok
    ;;
  esac
done
[ -z "$f" ] || kill "$f" 2>/dev/null
[ -z "$t" ] || rm -rf "$t"
