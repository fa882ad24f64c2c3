# Runs a command on a terminal of its own, as a person does: in a shell that goes on reading the terminal afterwards.
import os, pty, shlex, sys

after = 'IFS= read -t 1 -r line && eval "$line"'
pty.spawn(["bash", "-c", shlex.join(sys.argv[1:]) + "; " + after])
