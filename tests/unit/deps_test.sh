#!/bin/bash
# SPDX-License-Identifier: MIT
#
# deps_test.sh DEPS: scripts/deps on other kinds of machines: without dpkg-query, and with a fake one.
set -euo pipefail
deps=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

# The only programs in PATH: neither apt-get nor sudo is among them.
for tool in awk bash cat comm dirname env mkdir paste readlink rm sed sort touch; do
	ln -s "$(command -v $tool)" "$dir/$tool"
done
run() { PATH=$dir LITE_CACHE=$dir/cache LITE_ACCEL=tcg "$deps" "$@" 2>&1; }
# fake PROGRAM: a script for bash, from stdin.
fake() {
	{ echo "#!$(command -v bash)"; cat; } >"$dir/$1"
	chmod +x "$dir/$1"
}

# On a system that is not Debian, deps prints one line as a warning, and succeeds.
said=$(run build) || fail "without dpkg it fails: $said"
[[ $said == *"not a Debian system"*" g++ "*" meson "* && $said != *$'\n'* ]] || fail "without dpkg it says: $said"

# Answers of dpkg-query for the group "model", some with names that are newer than Debian 12.
fake dpkg-query <<<"cat '$dir/packages'"
installed() { printf '%s\n' "$@" >"$dir/packages"; }

installed "ii gcc, " "ii libc6-dev, libc-dev (= 2.41-12)" "ii spin, "
said=$(run --check model) || fail "it misses: $said"
installed "ii gcc, " "ii libc6-dev, " "ii spin-t64, promela, spin (= 6.5.2)"
said=$(run --check model) || fail "it misses what is provided: $said"

# A package that was removed but left its configuration does not count as installed.
installed "ii gcc, " "ii libc6-dev, " "rc spin, "
! said=$(run --check model) || fail "it does not miss spin"
[[ $said == spin ]] || fail "it misses: $said"

# All is installed, but QEMU is old, and backports has a newer one. Users without root or a sudo that works get a warning.
# The upgrade is tried only once.
installed
mapfile -t vm < <(run --check vm)
installed "${vm[@]/#/ii }"
sed -i 's/$/, /' "$dir/packages"
fake dpkg <<<true
fake apt-cache <<<'echo "qemu-system-x86 | 1:8.2 | http://deb.debian.org/debian bookworm-backports/main amd64 Packages"'
fake id <<<'echo 1000'
for sudo in "" "echo \"\$*\" >>'$dir/asked'; exit 1"; do
	rm -rf "$dir/cache"
	[[ -z $sudo ]] || fake sudo <<<"$sudo"
	! said=$(run --check vm) || fail "it does not want to upgrade QEMU"
	[[ $said == qemu-system-x86 ]] || fail "it wants to upgrade: $said"
	said=$(run vm) || fail "an upgrade that fails is an error: $said"
	[[ $said == *"warning: QEMU is older"* && -e $dir/cache/no-newer-qemu ]] || fail "it says of the upgrade: $said"
	said=$(run --check vm) || fail "it wants to upgrade again: $said"
	said=$(run vm) || fail "without another upgrade it fails: $said"
	[[ $said == *"warning: QEMU is older"* && $said != *$'\n'* ]] || fail "it says, the second time: $said"
done
[[ $(<"$dir/asked") == *"install --no-install-recommends -t bookworm-backports qemu-system-x86"* ]] || fail "it ran: $(<"$dir/asked")"
[[ $(wc -l <"$dir/asked") == 1 ]] || fail "it ran more than that: $(<"$dir/asked")"

# Root upgrades, with an apt-get that installs a QEMU that is not old.
rm -rf "$dir/cache" "$dir/asked"
fake id <<<'echo 0'
fake apt-get <<<"echo \"\$*\" >>'$dir/asked'; ln -sf '$dir/not-old' '$dir/dpkg'"
ln -s "$(command -v ln)" "$dir/ln"
fake not-old <<<false
said=$(run vm) || fail "root's upgrade fails: $said"
[[ $(<"$dir/asked") == *" -t bookworm-backports qemu-system-x86" && ! -e $dir/cache/no-newer-qemu ]] || fail "root's: $said"
said=$(run vm) || fail "with a newer QEMU it fails: $said"
[[ -z $said ]] || fail "a newer QEMU is not enough: $said"
