#!/bin/bash
# SPDX-License-Identifier: MIT
#
# check-completion.sh PROGRAM COMPLETION: bash completes every command of the program, and every option that its help
# names; and none that there is not. Of options that take a value the value is not taken for an argument.
set -uo pipefail
program=$1
# shellcheck source=/dev/null
. "$2"
name=${program##*/}
status=0

fail() {
	echo "$*" >&2
	status=1
}

# There is no readline to set options of.
# shellcheck disable=SC2317  # _lite calls it
compopt() { :; }

# What is offered after these words, one per line.
offered() {
	COMP_WORDS=("$name" "$@") COMP_CWORD=$# COMPREPLY=()
	"_$name"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

# The options of a help text, as -x or --long; the first column of its tables.
options() { sed -nE 's/^  +(-[^ ]*).*/\1/p' | tr , '\n' | sort -u; }
# Those among them that have a value: after the names and a blank there is its type, and not what the option excludes.
valued() { sed -nE '/^  +-[^ ]* Excludes/d; s/^  +(-[^ ]*) [^ ].*/\1/p' | tr , '\n'; }

mapfile -t commands < <("$program" --help | sed -n '/^Options/,$s/^  \([a-z][a-z-]*\)  .*/\1/p' | sort)
((${#commands[@]} > 7)) || fail "$name --help names no commands"
diff <(printf '%s\n' "${commands[@]}") <(offered '') >&2 || fail "commands of $name"
for command in "${commands[@]}"; do
	help=$("$program" "$command" --help)
	# --index is of all commands, whether or not their own help says so.
	diff <({ options <<<"$help"; printf '%s\n' -i --index; } | sort -u) <(offered "$command" - | sort -u) >&2 ||
		fail "options of $name $command"
	while read -r option; do
		[[ -z $(offered "$command" "$option" -) ]] || fail "$name $command $option has a value"
	done < <(valued <<<"$help")
	while read -r option; do
		[[ $(offered "$command" "$option" -) ]] || fail "$name $command $option has no value"
	done < <(comm -23 <(options <<<"$help") <(valued <<<"$help" | sort -u))
done
exit $status
