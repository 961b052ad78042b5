# SPDX-License-Identifier: GPL-2.0
#
# The one door to LITE. `make help` lists what is behind it.

SHELL := /bin/bash
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory
# KERNEL and the rest are ours: the kernel's makefiles and meson must not get to see them.
MAKEOVERRIDES :=

# Which kernels to build for and to test on: 6.1, 6.12, debug, debug2 (several with commas), or host, the running one.
KERNEL ?= 6.1
# The number of nodes for `make cluster`.
N ?= 2
# Where `make install` puts things.
DESTDIR ?=
prefix ?= /usr/local

# For ccache, where meson finds one: what one clone has compiled, another one need not.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

comma := ,
kernels := $(subst $(comma), ,$(KERNEL))
user := build/user
# For the kernel's makefiles, if given: W=1, C=2, CF=..., V=1.
kbuild_args = $(foreach v,W C CF V,$(if $($(v)),$(v)='$($(v))'))

.PHONY: all
all: module user ## the module for KERNEL (default 6.1) and everything in user space

.PHONY: module $(kernels:%=module-%)
module: $(kernels:%=module-%) ## lite.ko, the examples and kperf.ko in build/kernel-RELEASE; W=1, C=2 as for the kernel

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
test: | deps-build deps-vm deps-model ## unit tests, models, and virtual clusters with KERNEL; ends with the sum
	+@scripts/test --kernel $(KERNEL) $(TEST_ARGS)

.PHONY: check
check: | deps-build deps-vm deps-model ## what tests the changed folders in three minutes; ROOM='memory/io sync': these
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

# The module goes to the running kernel, whatever KERNEL says: it could not be loaded anywhere else.
.PHONY: install
install: $(user)/build.ninja ## user space to prefix (/usr/local), the module to the running kernel; DESTDIR for packagers
	@# Who has built before may have had another prefix, or none in mind.
	@grep -qsF '"prefix", "value": "$(prefix)"' $(user)/meson-info/intro-buildoptions.json || \
		flock build/user.lock meson configure $(user) -Dprefix=$(prefix)
	+@$(MAKE) user
	+@scripts/build-module host
	DESTDIR=$(DESTDIR) meson install -C $(user) --no-rebuild
	install -Dm 644 -t $(DESTDIR)/lib/modules/$$(uname -r)/extra build/kernel-$$(uname -r)/lite.ko
	$(if $(DESTDIR),,ldconfig && depmod -a)
	@# The group whose the device will be; udev, where there is one, reads its rules anew.
	$(if $(DESTDIR),,getent group lite >/dev/null || groupadd --system lite)
	$(if $(DESTDIR),,! command -v udevadm >/dev/null || udevadm control --reload || :)

.PHONY: clean
clean: ## removes build/; the kernels in ~/.cache/lite stay
	rm -rf build

.PHONY: deps-%
deps-%:
	@scripts/deps $*

.PHONY: help
help: ## this
	@printf 'make [TARGET] [KERNEL=%s] [W=1] [-j]\n\n' '$(KERNEL)'
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
