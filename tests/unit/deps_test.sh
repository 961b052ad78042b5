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

# The only programs in PATH; above all no apt-get.
for tool in bash cat comm dirname paste readlink sed sort; do
	ln -s "$(command -v $tool)" "$dir/$tool"
done
run() { PATH=$dir "$deps" "$@" 2>&1; }

# On a system that is not Debian, deps prints one line as a warning, and succeeds.
said=$(run build) || fail "without dpkg it fails: $said"
[[ $said == *"not a Debian system"*" g++ "*" meson "* && $said != *$'\n'* ]] || fail "without dpkg it says: $said"

# The answers of dpkg-query for the group "model", with some names from after Debian 12.
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

# A package that was removed but left its configuration does not count as installed.
installed "ii gcc, " "ii libc6-dev, " "rc spin, "
! said=$(run --check model) || fail "it does not miss spin"
[[ $said == spin ]] || fail "it misses: $said"
