#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-manuals.sh MAN MAP PAGE...: fails if groff has anything to say about a page,
# or if the page of the library misses, or makes up, a symbol of its version map MAP.
# man itself exits with 0 whatever it warns about.
man=$1
map=$2
shift 2
status=0

# check_names PAGE FROM TO MACRO: the functions that MACRO names between the two
# lines are those that the library exports.
exported=$(sed -n 's/^[[:space:]]*\(lite_[a-z_]*\);$/\1/p' "$map" | sort)
check_names() {
	named=$(sed -n "/^\\.$2/,/^\\.$3/s/^\\.$4 \\(lite_[a-z_]*\\).*/\\1/p" "$1" | sort -u)
	stray=$(printf '%s\n' "$exported" "$named" | sort | uniq -u)
	if [ -z "$exported" ] || [ -n "$stray" ]; then
		printf '%s: %s: not what is exported:\n%s\n' "$1" "$2" "$stray" >&2
		status=1
	fi
}

for page; do
	case $page in
	*liblite.3)
		check_names "$page" 'Sh NAME' Nd Nm
		check_names "$page" 'Sh SYNOPSIS' 'Sh DESCRIPTION' Fn
		;;
	esac
	said=$(MANWIDTH=80 LC_ALL=C.UTF-8 "$man" --warnings -E UTF-8 -l -Tutf8 "$page" 2>&1 >/dev/null) || status=1
	if [ -n "$said" ]; then
		printf '%s: %s\n' "$page" "$said" >&2
		status=1
	fi
done
exit $status
