#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-manuals.sh MAN PAGE...: fails if groff has anything to say about a page.
# man itself exits with 0 whatever it warns about.
man=$1
shift
status=0
for page; do
	said=$(MANWIDTH=80 LC_ALL=C.UTF-8 "$man" --warnings -E UTF-8 -l -Tutf8 "$page" 2>&1 >/dev/null) || status=1
	if [ -n "$said" ]; then
		printf '%s: %s\n' "$page" "$said" >&2
		status=1
	fi
done
exit $status
