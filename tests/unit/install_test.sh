#!/bin/bash
# SPDX-License-Identifier: MIT
#
# install_test.sh BUILD PREFIX HELLO.C CC...: tests the installed files: a program builds with them and starts, and the
# systemd unit joins as documented. Everything is installed in a temporary directory.
set -euo pipefail
build=$1 prefix=$2 source=$3
shift 3
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

DESTDIR=$root meson install -C "$build" --no-rebuild --quiet
for file in bin/lite sbin/litectl share/man/man1/lite.1 share/man/man8/litectl.8 lib/systemd/system/lite.service \
	share/bash-completion/completions/lite lib/udev/rules.d/60-lite.rules lib/sysusers.d/lite.conf; do
	[[ -s $root$prefix/$file ]] || fail "not installed: $prefix/$file"
done

# As in the README: cc prog.c $(pkg-config --cflags --libs lite)
pc=$(find "$root" -name lite.pc)
read -ra flags < <(PKG_CONFIG_LIBDIR=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs lite)
"$@" "$source" -o "$root/hello" "${flags[@]}"
libraries=$(dirname "$(find "$root" -name liblite.so.2)")
export LD_LIBRARY_PATH=$libraries LITE_INDEX=1048575
linked=$(ldd "$root/hello")
[[ $linked == *"liblite.so.2 => $libraries/"* ]] || fail "not linked with what is installed: $linked"
! said=$("$root/hello" 1 2>&1) || fail "there is no such node, but: $said"
[[ $said == "hello: open: no such LITE node"* ]] || fail "it says: $said"

# For LD_PRELOAD; not built with all compilers' options.
if [[ -s $build/ulib/malloc/liblite-arena.so ]]; then
	said=$(LITE_ARENA_DEBUG=1 LITE_ARENA_MIN=4096 LD_PRELOAD=$libraries/liblite-arena.so bash -c 'echo {1..5000}' 2>&1 >/dev/null)
	[[ $said == liblite-arena*": no such LITE node"* ]] || fail "liblite-arena.so says: $said"
fi

# The unit, with a fake litectl that can join only through member b. Member r refuses; member t, a start with -t, and one
# with -T and without --idle take so long that systemd stops the unit meanwhile. A start with -f fails.
unit=$root$prefix/lib/systemd/system/lite.service
cat >"$root/litectl" <<-END
	#!/bin/sh
	echo "\$*" >>"$root/log"
	case "\$*" in
	"join -t 5s t" | start*" -t" | "start --index 0 -T") kill -TERM \$PPID ;;
	esac
	case "\$*" in
	"join -t 5s b") ;;
	"join -t 5s r" | start*" -f"*) exit 1 ;;
	join*) exit 3 ;;
	esac
END
chmod +x "$root/litectl"
command=$(sed -n ':more; /\\$/ { N; s/\\\n/ /; b more }; s/^ExecStart=//p' "$unit")
command=${command//"$prefix/sbin/litectl"/$root/litectl}
# boot JOIN FIRST WANTED START...: runs the unit's command; WANTED: its exit status, and the calls of litectl.
boot() {
	local status=0
	: >"$root/log"
	LITE_JOIN=$1 LITE_FIRST=$2 LITE_START=${*:4} sh -c "${command//'$$'/$}" || status=1
	[[ $status:$(<"$root/log") == "$3" ]] || fail "to join '$1' it did, $status being the end:"$'\n'"$(<"$root/log")"
}
boot "" "" "0:start --index 0"
boot "a b c" "" $'0:start --index 0 --idle -m 1G\njoin -t 5s a\njoin -t 5s b' -m 1G
boot "a c" yes $'0:start --index 0 --idle\njoin -t 5s a\njoin -t 5s c\nstop\nstart --index 0'
boot "a c" "" $'1:start --index 0 --idle\njoin -t 5s a\njoin -t 5s c\nstop'
boot "r c" yes $'1:start --index 0 --idle\njoin -t 5s r\njoin -t 5s c\nstop'
# The unit stops the node that it has started, not one that was there before.
boot "a" "" $'1:start --index 0 --idle -f' -f
boot "a" "" $'1:start --index 0 --idle -f -t' -f -t
boot "" "" $'1:start --index 0 -t\nstop' -t
boot "a t b" yes $'1:start --index 0 --idle\njoin -t 5s a\njoin -t 5s t\nstop'
boot "a" yes $'1:start --index 0 --idle -T\njoin -t 5s a\nstop\nstart --index 0 -T\nstop' -T
