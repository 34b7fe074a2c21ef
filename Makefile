# The front door. The build itself is CMakeLists.txt; `make help` lists what can be asked for.
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
MAKEFLAGS += --no-print-directory

build = tools/configure $(1) >/dev/null && cmake --build --preset $(1) -j $(JOBS)

.PHONY: all start test test-programs test-vm test-fresh test-long test-fork-long asan tsan fuzz bench sdk format lint install clean help

all: ## build the programs into build/bin and the libraries into build/lib
	@$(call build,release)

start: ## install what is missing, build, start the server and run a first cell through it
	@tools/install-deps --build --runtime
	@$(MAKE) all
	@tools/start

test: ## install what is missing, build, run every test
	@tools/install-deps --build --runtime --test
	@JOBS=$(JOBS) tools/test-all

test-programs: all ## test every program of tests/programs: versions of E2B's packages, frameworks, agents
	@tools/install-deps --runtime --test
	@tests/programs/run

test-vm: all ## test with Debian's own kernel and cgroup v2, in a virtual machine
	@tools/install-deps --vm
	@tests/vm/run

test-fresh: ## try `make start` on fresh machines: /root, /opt, a user with sudo
	@tests/fresh/run

test-long: all ## test what takes long and fetches much: frameworks and the desktop, in a world of their own
	@tools/install-deps --runtime --test
	@tests/long/run

test-fork-long: all ## live fork against a model, 20,000 random sequences
	@tools/install-deps --runtime
	@tests/fork/run --long

asan tsan: ## unit tests and corpora under the sanitizers
	@$(call build,$@)
	@ctest --preset $@

fuzz: ## search for bugs, 60 s for each fuzz target
	@tools/install-deps --build --test
	@$(call build,fuzz)
	@tools/fuzz-all

bench: all ## speed and memory, as ratios
	@tools/install-deps --build --runtime --bench
	@$(call build,dev)
	@tests/perf/run

sdk: ## build the JavaScript package into build/sdk; the Python one, sdk/python, needs no building
	@tools/install-deps --test
	@tools/sdk-js

format: ## bring all C files into the house format
	@clang-format -i $$(tools/lint --list-c)

lint: ## check format, layering, sizes and scripts
	@tools/lint

install: ## build, and install below $(DESTDIR)$(PREFIX)
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) tools/install

clean: ## remove everything that was built
	@rm -rf build

help: ## show this list
	@sed -n 's/^\([a-z -]*\):.*## /\1\t/p' Makefile | expand -t 16
