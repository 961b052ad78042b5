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
		# A script that draws over the terminal sets LITE_NO_PROMPT: sudo fails instead of showing a prompt there.
		sudo ${LITE_NO_PROMPT:+-n} "$@"
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

# Adds bookworm-backports to a Debian 12 that lacks it, from the mirror that is already in use.
BACKPORTS=/etc/apt/sources.list.d/lite-backports.sources
add_backports() {
	local mirror
	[[ ! -e $BACKPORTS ]] || return 0
	mirror=$(LC_ALL=C apt-cache policy | sed -nE 's/^ *[0-9]+ ((https?|file|copy|mirror[^ :]*):[^ ]*) bookworm\/main .*/\1/p' | sed -n 1p)
	say "adding bookworm-backports of ${mirror:=http://deb.debian.org/debian} in $BACKPORTS"
	as_root tee "$BACKPORTS" >/dev/null <<-END
		# Added by LITE's scripts. Nothing is upgraded from here unless asked for.
		Types: deb
		URIs: $mirror
		Suites: bookworm-backports
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
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
