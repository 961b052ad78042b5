#!/bin/bash
# SPDX-License-Identifier: MIT
#
# check-completion.sh PROGRAM COMPLETION: check that bash completes exactly the program's commands and the options that
# its help names, and that it does not take the value of an option for an argument.
set -uo pipefail
program=$1
# shellcheck source=/dev/null
. "$2"
name=${program##*/}
common=(-i --index)
[[ $name == litectl ]] || common+=(--priority)
status=0

fail() {
	echo "$*" >&2
	status=1
}

# bash's own compopt fails outside of a real completion.
# shellcheck disable=SC2317  # _lite calls it
compopt() { :; }

# The completions after these words, one per line.
offered() {
	COMP_WORDS=("$name" "$@") COMP_CWORD=$# COMPREPLY=()
	"_$name"
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

# The options of a help text, as -x or --long; the first column of its tables.
options() { sed -nE 's/^  +(-[^ ]*).*/\1/p' | tr , '\n' | sort -u; }
# The options that have a value: help shows its type after the names. "Excludes" is no type.
valued() { sed -nE '/^  +-[^ ]* Excludes/d; s/^  +(-[^ ]*) [^ ].*/\1/p' | tr , '\n'; }

commands() { sed -n '/^Options/,$s/^  \([a-z][a-z-]*\)  .*/\1/p' | sort; }

# check_command COMMAND [SUBCOMMAND]: compares what its help says with what is offered.
check_command() {
	local help option
	help=$("$program" "$@" --help)
	# The help of a command need not name the options that all commands have.
	diff <({ options <<<"$help"; printf '%s\n' "${common[@]}"; } | sort -u) <(offered "$@" - | sort -u) >&2 ||
		fail "options of $name $*"
	while read -r option; do
		# The word after such an option is its value, so "-" must not be completed to an option.
		[[ $(offered "$@" "$option" -) != *-* ]] || fail "$name $* $option has a value"
	done < <(valued <<<"$help")
	while read -r option; do
		[[ $(offered "$@" "$option" -) ]] || fail "$name $* $option has no value"
	done < <(comm -23 <(options <<<"$help") <(valued <<<"$help" | sort -u))
	mapfile -t subcommands < <(commands <<<"$help")
	((!${#subcommands[@]})) || diff <(printf '%s\n' "${subcommands[@]}") <(offered "$@" '') >&2 || fail "commands of $name $*"
}

mapfile -t names < <("$program" --help | commands)
((${#names[@]} > 7)) || fail "$name --help names no commands"
diff <(printf '%s\n' "${names[@]}") <(offered '') >&2 || fail "commands of $name"
for command in "${names[@]}"; do
	subcommands=()
	check_command "$command"
	for subcommand in "${subcommands[@]}"; do
		check_command "$command" "$subcommand"
	done
done
exit $status
