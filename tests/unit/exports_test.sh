#!/bin/sh
# SPDX-License-Identifier: MIT
#
# exports_test.sh NM LIBRARY MAP: fails unless the library exports exactly what
# the version map lists.
set -eu
listed=$(sed -n '/^global:/,/^local:/s/^[[:space:]]*\([a-z_]*\);$/\1/p' "$3" | sort)
exported=$("$1" -D --defined-only "$2" | sed -n 's/.* [A-Z] \(lite_[a-z_]*\)@@LITE_[0-9.]*$/\1/p' | sort)
stray=$("$1" -D --defined-only "$2" | grep -v -e '@@LITE_' -e ' A LITE_' || true)
if [ "$listed" != "$exported" ] || [ -z "$listed" ] || [ -n "$stray" ]; then
	printf 'listed:\n%s\nexported:\n%s\nwithout a version:\n%s\n' "$listed" "$exported" "$stray" >&2
	exit 1
fi
