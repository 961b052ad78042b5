#!/bin/bash
# SPDX-License-Identifier: MIT
#
# mallocs_test.sh MALLOCS LIBRARY FAKE NM MAP: liblite-arena.so without a node, and the same with a fake one (FAKE).
set -euo pipefail
program=$1 library=$2 fake=$3 nm=$4 map=$5
unset LITE_ARENA_MIN LITE_ARENA_DEBUG
export LITE_INDEX=1048575  # there is no such node
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

# try LIBRARY WORD...: mallocs says that all is well, and nothing on stderr.
try() {
	local preload=$1
	shift
	LD_PRELOAD=$preload timeout 250 "$program" "$@" >"$work/out" 2>"$work/err" || true
	[[ $(tail -n 1 "$work/out") == good && ! -s $work/err ]] ||
		fail "with ${preload##*/}: mallocs $*: $(tail -n 5 "$work/out" "$work/err")"
}

# Nothing but the malloc family is exported, so nothing of the program is replaced by accident.
listed=$(sed -n 's/^\t\([a-z_]*\);$/\1/p' "$map" | sort)
for file in "$library" "$fake"; do
	exported=$("$nm" -D --defined-only "$file" | sed 's/.* //' | sort)
	[[ $listed && $listed == "$exported" ]] || fail "$file exports: $exported"
done

seed=$RANDOM
echo "seed $seed"
for size in 1M 4096; do
	export LITE_ARENA_MIN=$size
	try "$library" random elsewhere $seed 150 3
	try "$fake" random arena $seed 150 3
	LITE_FAKE_LIMIT=20000000 try "$fake" random arena $seed 100 3
done
unset LITE_ARENA_MIN
try "$library" cases elsewhere
try "$fake" cases arena
LITE_FAKE_NO_READ=1 try "$fake" cases arena
LITE_FAKE_ASKED=$work/asked LITE_FAKE_LIMIT=60000000 try "$fake" limit
# Twice for each of 300 mallocs, if the node were asked for each.
asked=$(stat -c %s "$work/asked")
((asked > 0 && asked < 500)) || fail "mallocs limit: the node was asked $asked times"
try "" cases elsewhere  # what the program wants is what it gets without the library

# There is no memory to copy blocks into for a child, or for it to move the copies.
for cause in LITE_FAKE_NO_COPY LITE_FAKE_NO_MOVE; do
	export $cause=1
	try "$fake" not-copied
	LITE_ARENA_DEBUG=1 LD_PRELOAD=$fake "$program" not-copied >"$work/out" 2>"$work/err" || true
	[[ $(<"$work/out") == good && $(grep -c ': a child lacks large mallocs of its parent: no memory$' "$work/err") == 1 ]] ||
		fail "mallocs not-copied, $cause: $(cat "$work/out" "$work/err")"
	unset $cause
done

# Why, once.
says() {
	local wanted=$1 preload=$2
	shift 2
	LITE_ARENA_DEBUG=1 LD_PRELOAD=$preload "$@" >/dev/null 2>"$work/err"
	[[ $(grep -c '^liblite-arena\[[0-9]*\]: ' "$work/err") == 1 && $(<"$work/err") == *": $wanted"* ]] ||
		fail "it should say '$wanted': $(<"$work/err")"
}
program_of_mallocs='import sys; [bytes(5 << 20) for i in range(5)]'
python=/usr/bin/python3
says "all mallocs are ordinary memory: no such LITE node" "$library" $python -c "$program_of_mallocs"
says "large mallocs come from the LITE node" "$fake" $python -c "$program_of_mallocs"
LITE_FAKE_LIMIT=1000 says "a large malloc is ordinary memory: " "$fake" $python -c "$program_of_mallocs"
for wrong in 1X "1 " "1K "; do
	says "LITE_ARENA_MIN is ignored: $wrong" "$library" env "LITE_ARENA_MIN=$wrong" true
done

# Programs that know nothing of all this.
seq 300000 | rev >"$work/lines"
sort "$work/lines" >"$work/wanted"
cat >"$work/program.py" <<-'END'
	import hashlib, multiprocessing, os, subprocess
	def work(seed):
	    return hashlib.sha256(bytes([seed % 256]) * (3 << 20) + data[seed:]).hexdigest()
	data = bytes(range(256)) * (5 << 12)
	numbers = sorted(i * 7919 % 1000003 for i in range(400000))
	if __name__ == "__main__":
	    with multiprocessing.get_context("fork").Pool(3) as pool:
	        print(pool.map(work, range(8)), numbers[::50000], len("x" * (9 << 20)))
	    print(subprocess.run(["echo", "child"], capture_output=True).stdout, os.system("true"))
END
$python "$work/program.py" >"$work/wanted.py"
for preload in "$library" "$fake"; do
	for size in 1M 16K; do
		export LITE_ARENA_MIN=$size
		LD_PRELOAD=$preload sort --parallel=2 -S 8M "$work/lines" | cmp - "$work/wanted" || fail "sort"
		LD_PRELOAD=$preload $python "$work/program.py" | cmp - "$work/wanted.py" || fail "python3"
		LD_PRELOAD=$preload bash -c 'for i in 1 2 3; do (x=$(seq 20000); echo ${#x}) & done; wait' >"$work/out"
		[[ $(<"$work/out") == $'108893\n108893\n108893' ]] || fail "bash: $(<"$work/out")"
	done
done
