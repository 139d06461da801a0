#!/usr/bin/env bash
# Gives continuous integration a Docker engine: `engine.sh start DIR` prints export lines, `engine.sh stop DIR` ends it.
#
# An engine that answers already is used as it is. Otherwise, as root on Debian, what is missing is installed from
# Debian's packages and an engine of our own runs with all it writes below DIR, so that it disturbs no other.
set -euo pipefail

fail() { echo "engine.sh: $*" >&2; exit 1; }

usage="usage: engine.sh start DIR | engine.sh stop DIR"
[[ $# -eq 2 ]] || fail "$usage"
action=$1 dir=$2
log=$dir/dockerd.log pid_file=$dir/dockerd.pid socket=$dir/docker.sock

install_missing() {
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io)
  command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1 || missing+=(docker-compose)
  command -v debootstrap >/dev/null || missing+=(debootstrap)
  [[ ${#missing[@]} -gt 0 ]] || return 0
  [[ $EUID -eq 0 ]] || fail "no Docker engine answers and only root can install one; start Docker and run this again"
  command -v apt-get >/dev/null ||
    fail "no Docker engine answers and without apt-get none can be installed; start Docker and run this again"
  echo "engine.sh: installing ${missing[*]}" >&2
  {
    apt-get -qq update &&
      DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=120 \
        install "${missing[@]}"
  } >"$dir/apt.log" 2>&1 || { tail -20 "$dir/apt.log" >&2; fail "apt-get could not install ${missing[*]}, see above"; }
}

# Prints the address of an engine that is there already.
find_engine() {
  docker info >/dev/null 2>&1 || return 1
  echo "export DOCKER_HOST=${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}')}"
}

start() {
  mkdir -p "$dir"
  ! find_engine || return 0
  install_missing
  # Where services are started on installation, there is one now.
  ! find_engine || return 0
  [[ $EUID -eq 0 ]] || fail "no Docker engine answers and only root can start one; start Docker and run this again"
  # A session of its own, so that an interrupt at the terminal leaves the engine to `stop`.
  setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$pid_file" \
    --host "unix://$socket" >"$log" 2>&1 </dev/null &
  local started=$!
  for _ in $(seq 120); do
    if docker --host "unix://$socket" info >/dev/null 2>&1; then
      # Debian's packages have the classic builder only. What testcontainers cleans up with is an image to be pulled,
      # and here the engine's whole data is removed anyway.
      echo "export DOCKER_HOST=unix://$socket DOCKER_BUILDKIT=0 TESTCONTAINERS_RYUK_DISABLED=true"
      return
    fi
    kill -0 "$started" 2>/dev/null || break
    sleep 0.5
  done
  tail -20 "$log" >&2
  fail "dockerd did not come up within 60 seconds; the end of its log is above, all of it in $log"
}

stop() {
  if [[ -s $pid_file ]]; then
    local pid
    pid=$(<"$pid_file")
    docker --host "unix://$socket" ps --quiet | xargs -r docker --host "unix://$socket" kill >/dev/null || true
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 60); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.5
    done
    ! kill -0 "$pid" 2>/dev/null || fail "dockerd (process $pid) did not end within 30 seconds; $dir is left in place"
    # A killed container can leave its mounts behind, and nothing below a mount may be deleted.
    awk -v dir="$dir/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount --lazy
  fi
  rm -rf -- "$dir"
}

case $action in
  start | stop) "$action" ;;
  *) fail "$usage" ;;
esac
