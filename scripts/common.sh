# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Shared by the scripts in this directory. Source it; it changes only the shell options.

set -euo pipefail

PROGRAM=${0##*/}
# The cache for large files that can be downloaded or built again, outside the tree. Some service managers set no HOME.
LITE_CACHE=${LITE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lite}

say() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# A mirror behind a CDN sometimes fails in the middle of a transfer: three attempts, with growing pauses.
retry() {
	local attempt
	for attempt in 1 2 3; do
		"$@" && return 0
		[[ $attempt == 3 ]] || { say "attempt $attempt failed: $*"; sleep $((attempt * 5)); }
	done
	return 1
}

as_root() {
	if [[ $(id -u) == 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root (no sudo here): $*"
	fi
}

# apt waits for another apt instead of failing, asks nothing, and repeats what a mirror dropped.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" >&2
}

apt_update() {
	say "updating the package lists"
	retry apt update || die "apt-get update failed: is there a network and a Debian mirror in /etc/apt?"
}

# One builder at a time per cache entry; others wait here and then find it built. The script holds the lock, through its
# descriptor 9, until it ends. A child that outlives the script would keep the lock: run such children with 9>&-.
lock_cache() {
	mkdir -p "$LITE_CACHE/lock"
	exec 9>"$LITE_CACHE/lock/$1"
	flock -n 9 && return
	say "waiting for another process that prepares $1"
	flock -w 3600 9 || die "gave up waiting for $LITE_CACHE/lock/$1"
}
