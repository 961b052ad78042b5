#!/bin/bash
# SPDX-License-Identifier: MIT
#
# deps_test.sh DEPS: scripts/deps on machines that are not ours: with another dpkg-query, or with none.
set -euo pipefail
deps=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

# Nothing else is to be had there, apt-get least of all.
for tool in bash cat comm dirname paste readlink sed sort; do
	ln -s "$(command -v $tool)" "$dir/$tool"
done
run() { PATH=$dir "$deps" "$@" 2>&1; }

# What is no Debian system is warned, in a line, and gets on with it.
said=$(run build) || fail "without dpkg it fails: $said"
[[ $said == *"not a Debian system"*" g++ "*" meson "* && $said != *$'\n'* ]] || fail "without dpkg it says: $said"

# What dpkg-query says of the group "model", with some names as after Debian 12.
cat >"$dir/dpkg-query" <<-END
	#!$(command -v bash)
	cat "$dir/packages"
END
chmod +x "$dir/dpkg-query"
installed() { printf '%s\n' "$@" >"$dir/packages"; }

installed "ii gcc, " "ii libc6-dev, libc-dev (= 2.41-12)" "ii spin, "
said=$(run --check model) || fail "it misses: $said"
installed "ii gcc, " "ii libc6-dev, " "ii spin-t64, promela, spin (= 6.5.2)"
said=$(run --check model) || fail "it misses what is provided: $said"

# What was removed and has left its configuration is not installed.
installed "ii gcc, " "ii libc6-dev, " "rc spin, "
! said=$(run --check model) || fail "it does not miss spin"
[[ $said == spin ]] || fail "it misses: $said"
