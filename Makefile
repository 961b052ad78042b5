# SPDX-License-Identifier: GPL-2.0
#
# The entry point to LITE. `make help` lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory
# KERNEL and the other variables are for this file only: hide them from the kernel's makefiles and from meson.
MAKEOVERRIDES :=

# Which kernels to build for and to test on: 6.1, 6.12, debug, debug2 (several with commas), or host, the running one.
KERNEL ?= 6.1
# The number of nodes for `make cluster`.
N ?= 2
# Where `make install` installs to.
DESTDIR ?=
prefix ?= /usr/local

# An absolute DESTDIR: meson and this makefile would take a relative one from different directories. It may have blanks.
dest := $(if $(DESTDIR),$(if $(filter /%,$(firstword $(DESTDIR))),,$(CURDIR)/)$(DESTDIR))

# For ccache, if meson finds it: clones in different directories share its cache.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

comma := ,
kernels := $(subst $(comma), ,$(KERNEL))
user := build/user
# For the kernel's makefiles, if given: W=2, C=2, CF=..., V=1.
kbuild_args = $(foreach v,W C CF V,$(if $($(v)),$(v)='$($(v))'))

.PHONY: all
all: module user ## the module for KERNEL (default 6.1) and everything in user space

.PHONY: module $(kernels:%=module-%)
module: $(kernels:%=module-%) ## lite.ko, the examples and kperf.ko in build/kernel-RELEASE; C=2 as for the kernel

$(kernels:%=module-%): module-%: | deps-build
	+@scripts/build-module $* $(kbuild_args)

.PHONY: user
user: $(user)/build.ninja ## library, programs, tests and manual pages in build/user
	@flock build/user.lock ninja -C $(user)

# Ninja notices by itself when the meson files change. It does not notice another ninja in the same directory.
$(user)/build.ninja: | deps-build
	@mkdir -p build
	@flock build/user.lock meson setup $(user) --prefix=$(prefix) $(MESON_ARGS)

.PHONY: test
test: | deps-build deps-vm deps-model ## unit tests, models, and virtual clusters with KERNEL; ends with the counts
	+@scripts/test --kernel $(KERNEL) $(TEST_ARGS)

.PHONY: check
check: | deps-build deps-vm deps-model ## tests of the changed folders, in three minutes; ROOM='memory/io sync' names folders
	+@scripts/check --kernel $(KERNEL) $(ROOM)

.PHONY: demo
demo: ## shows what LITE does, on a virtual cluster
	@KERNEL=$(KERNEL) scripts/demo

.PHONY: bench
bench: all | deps-vm deps-bench ## measures LITE against verbs and TCP, on a virtual cluster; a report with plots
	@KERNEL=$(KERNEL) scripts/bench $(BENCH_ARGS)

.PHONY: cluster
cluster: all | deps-vm ## N machines (default 2) to play with
	@tests/vm/cluster --kernel $(KERNEL) $(N)

.PHONY: lint
lint: | deps-build deps-lint ## static checkers and formatters over everything
	+@KERNEL=$(KERNEL) scripts/lint

.PHONY: debug-kernel
debug-kernel: ## kernels with run-time checkers, for KERNEL=debug and debug2 (ten minutes each, once)
	+@scripts/debug-kernel debug
	+@scripts/debug-kernel debug2

# The module goes to the running kernel, whatever KERNEL says: no other kernel on this machine could load it.
module_dir = /lib/modules/$$(uname -r)/extra
.PHONY: install
install: $(user)/build.ninja ## user space to prefix (/usr/local), the module to the running kernel; DESTDIR for packagers
	+@scripts/build-module host
	+@$(MAKE) install-user
	install -Dm 644 -t '$(dest)'$(module_dir) build/kernel-$$(uname -r)/lite.ko
	$(if $(DESTDIR),,depmod -a)
	@# modprobe prefers the module that DKMS put into updates/dkms: it may be older than the library.
	@$(if $(DESTDIR),,found=$$(modinfo -n lite); [[ $$found -ef $(module_dir)/lite.ko ]] || \
		{ echo "error: modprobe would take $${found:-no module}, not $(module_dir)/lite.ko: remove the former," \
			"with 'dkms remove lite/0.1.0 --all' if DKMS built it, and install again" >&2; exit 1; })

.PHONY: install-user
install-user: $(user)/build.ninja ## as install, without the module: for DKMS, which builds that
	@# An earlier build may have used another prefix.
	@grep -qsF '"prefix", "value": "$(prefix)"' $(user)/meson-info/intro-buildoptions.json || \
		flock build/user.lock meson configure $(user) -Dprefix=$(prefix)
	+@$(MAKE) user
	DESTDIR='$(dest)' meson install -C $(user) --no-rebuild
	$(if $(DESTDIR),,ldconfig)
	@# The group that the device will belong to. If udev runs, it reloads its rules.
	$(if $(DESTDIR),,getent group lite >/dev/null || groupadd --system lite)
	$(if $(DESTDIR),,! command -v udevadm >/dev/null || udevadm control --reload || :)

.PHONY: clean
clean: ## removes build/; the kernels in ~/.cache/lite stay
	rm -rf build

.PHONY: deps-%
deps-%:
	@scripts/deps $*

.PHONY: help
help: ## this list
	@printf 'make [TARGET] [KERNEL=%s] [C=2] [-j]\n\n' '$(KERNEL)'
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
