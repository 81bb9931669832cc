# shellcheck shell=bash
# What the set-up prints: one line for each step, a progress bar with the remaining time, and
# refusals. Sourced by ./graphproof. Everything goes to standard error. Where that is a terminal,
# the bar is one line that is drawn again and again; otherwise a plain line comes now and then.

bar_width=24
plain_every_s=20   # seconds between two plain lines

terminal=
[ -t 2 ] && terminal=yes
started_s=$SECONDS
steps=0            # of this set-up; set before the first step
step_number=0
bar_started_s=0 bar_plain_s=0 bar_drawn=

fail() {  # what, got, want, why, next
  bar_end
  printf 'graphproof: %s\n  got:  %s\n  want: %s\n  why:  %s\n  next: %s\n' "$@" >&2
  exit 2
}

prefix() { printf '[set-up %s/%s, %d s]' "$step_number" "$steps" $((SECONDS - started_s)); }

step() {  # what begins now
  bar_end
  step_number=$((step_number + 1))
  note "$1"
}

note() {  # more about the current step
  bar_end
  printf '%s %s\n' "$(prefix)" "$1" >&2
}

bar_start() {
  bar_started_s=$SECONDS
  bar_plain_s=$SECONDS
}

duration() {  # seconds, as a person says it
  if (($1 < 90)); then printf '%d s' "$1"; else printf '%d min' $((($1 + 30) / 60)); fi
}

# The remaining time supposes that the rest goes at the average pace so far.
bar() {  # done, total, what is being done
  local done=$1 total=$2 what=$3 elapsed=$((SECONDS - bar_started_s)) left='' filled drawing=''
  ((total > 0)) || return 0
  ((done <= total)) || done=$total
  if ((elapsed >= 3 && done > 0)); then
    left=", about $(duration $((elapsed * (total - done) / done))) left"
  fi
  if [ -n "$terminal" ]; then
    filled=$((bar_width * done / total))
    printf -v drawing '%*s' "$filled" ''
    drawing=${drawing// /#}
    printf -v drawing '%-*s' "$bar_width" "$drawing"
    printf '\r%s %s [%s] %d %%%s\033[K' "$(prefix)" "$what" "${drawing// /.}" \
      $((100 * done / total)) "$left" >&2
    bar_drawn=yes
  elif ((SECONDS - bar_plain_s >= plain_every_s)); then
    printf '%s %s: %d %%%s\n' "$(prefix)" "$what" $((100 * done / total)) "$left" >&2
    bar_plain_s=$SECONDS
  fi
}

bar_end() {  # the next line stands below the bar
  [ -z "$bar_drawn" ] || printf '\r\033[K' >&2
  bar_drawn=
}

# Ninja's lines "[done/total] what" become the bar. Others, such as errors of the compiler, pass.
show_build() {
  local line
  bar_start
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      bar "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" build
    elif [[ $line != 'ninja: Entering directory'* ]]; then
      bar_end
      printf '%s\n' "$line" >&2
    fi
  done
  bar_end
}

# apt-get's status lines ("dlstatus:1:20.5:text": per cent of the download, "pmstatus:...": of the
# installation) become the bar, each as a half. Others go to the file LOG.
show_packages() {  # LOG
  local line percent
  bar_start
  while IFS= read -r line; do
    if [[ $line =~ ^(dl|pm)status:[^:]*:([0-9]+) ]]; then
      percent=${BASH_REMATCH[2]}
      if [ "${BASH_REMATCH[1]}" = pm ]; then percent=$((percent + 100)); fi
      bar "$percent" 200 packages
    else
      printf '%s\n' "$line" >>"$1"
    fi
  done
  bar_end
}

# Draws a bar for a download while the command runs: how large the folders have grown.
with_growth() {  # expected MB, what, folders separated by blanks, then the command
  local total=$1 what=$2 folders=$3 watcher status=0
  shift 3
  bar_start
  (
    before=$(megabytes "$folders")
    most=0
    while kill -0 $$ 2>/dev/null; do  # so it ends with this script, however that ends
      grown=$(($(megabytes "$folders") - before))
      if ((grown > most)); then most=$grown; fi
      # How much it is in the end is an estimate, and only the command knows when it is done.
      if ((most >= total)); then most=$((total - total / 100)); fi
      bar "$most" "$total" "$what"
      sleep 1
    done
  ) &
  watcher=$!
  "$@" || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  bar_drawn=$terminal
  bar_end
  return "$status"
}

megabytes() {  # folders separated by blanks
  local folder sum=0
  for folder in $1; do
    [ ! -d "$folder" ] || sum=$((sum + $(du -sm "$folder" 2>/dev/null | cut -f1)))
  done
  printf '%d' "$sum"
}
