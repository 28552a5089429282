# Shortcuts for the usual tasks. Meson and Ninja do the building; `make help` lists them.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
FUZZ_SECONDS ?= 60

.PHONY: all setup demo check test bench soak fuzz install clean help
# With tests where cmocka is installed, also if it was not when the build folder was made.
TESTS = $$(pkg-config --exists cmocka && echo true || echo false)
all: setup $(BUILD)/build.ninja
	@if [ "$(TESTS)" = true ] && [ "$$(cat "$(BUILD)/.tests" 2>/dev/null)" = false ]; then \
	    meson configure "$(BUILD)" -Dtests=true && echo true > "$(BUILD)/.tests"; fi
	@ninja -C "$(BUILD)"

setup:
	@tools/setup

$(BUILD)/build.ninja: | setup
	@meson setup "$(BUILD)" "-Dprefix=$(PREFIX)" "-Dtests=$(TESTS)"
	@echo "$(TESTS)" > "$(BUILD)/.tests"
	@printf '%s' "$(PREFIX)" > "$(BUILD)/.prefix"

demo: setup $(BUILD)/build.ninja
	@ninja -C "$(BUILD)" tare examples/mlp
	@mkdir -p demo && rm -f demo/mlp.tare demo/mlp.txt demo/mlp.html
	"$(BUILD)/tare" run --quiet -o demo/mlp.tare --html demo/mlp.html -- "$(BUILD)/examples/mlp"
	@"$(BUILD)/tare" report demo/mlp.tare > demo/mlp.txt.part && mv demo/mlp.txt.part demo/mlp.txt
	@cat demo/mlp.txt
	@echo "The trace is demo/mlp.tare; its report, shown above, is demo/mlp.txt; open demo/mlp.html in a browser"

check:
	@tools/setup test
	@tools/test quick

test:
	@tools/setup test
	@tools/test

soak: setup $(BUILD)/build.ninja
	@meson configure "$(BUILD)" -Dtests=true && ninja -C "$(BUILD)"
	@tools/soak --build "$(BUILD)"

bench: setup $(BUILD)/build.ninja
	@meson configure "$(BUILD)" -Dbench=true && ninja -C "$(BUILD)"
	@TARE_BUILD="$(BUILD)" bench/run

fuzz:
	@tools/setup test
	@tools/test --fuzz-seconds "$(FUZZ_SECONDS)" fuzz

# The loader's cache knows the new library only after ldconfig; a staged install must not touch it.
install: all
	@case "$(PREFIX)" in /*) ;; *) echo "PREFIX must be an absolute path, not '$(PREFIX)'" >&2; exit 2;; esac
	@if [ "$$(cat "$(BUILD)/.prefix" 2>/dev/null)" != "$(PREFIX)" ]; then \
	    meson configure "$(BUILD)" "-Dprefix=$(PREFIX)" && ninja -C "$(BUILD)" && \
	    printf '%s' "$(PREFIX)" > "$(BUILD)/.prefix"; fi
	@meson install -C "$(BUILD)" --no-rebuild --quiet --destdir "$(DESTDIR)"
	@case "$(DESTDIR):$(PREFIX):$$(id -u)" in \
	    :/usr:0|:/usr/local:0) PATH="$$PATH:/usr/sbin:/sbin" ldconfig;; esac
	@echo "Installed under $(DESTDIR)$(PREFIX)"

clean:
	rm -rf "$(BUILD)" demo

help:
	@echo "make                     build tare and libtare into $(BUILD)/"
	@echo "make demo                profile examples/mlp and show the report; both stay in demo/"
	@echo "make check               unit tests, the main paths of the command, lint: for every change"
	@echo "make test                all tests: gcc, the page in Chromium, clang, sanitizers, the Python package, fuzzers, lint"
	@echo "make soak                two hours of recording under random kills, limits and load"
	@echo "make bench               the figures of docs/PERFORMANCE.md on this machine"
	@echo "make fuzz                fuzz every parser, FUZZ_SECONDS=$(FUZZ_SECONDS) each"
	@echo "make install PREFIX=DIR  bin/tare, tare.h, libtare, libtare-engine, tare.pc, man pages; DESTDIR is honoured"
	@echo "make clean               remove $(BUILD)/ and demo/"
