# fa: fused attention from one include. `make` lists what there is to make.
#
# Nothing but make and a C compiler is needed; nvcc, doxygen, clang-format and python3 are used where they are found,
# and what is left out for want of one is said.

CC       ?= cc
CFLAGS   ?= -O3
WARNINGS ?= -Wall -Wextra
BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
PYTHON   ?= python3
VERSION  := $(shell v=$$(sed -n 's/^\#define FA_VERSION //p' include/fa/fa.h); \
              echo $$((v / 10000)).$$((v / 100 % 100)).$$((v % 100)))

# Not empty where python3 has PyTorch. Asked once, when first needed.
ask_torch = import importlib.util as u; print("yes" if u.find_spec("torch") else "")
TORCH = $(eval TORCH := $(shell $(PYTHON) -c '$(ask_torch)' 2>/dev/null))$(TORCH)

.DEFAULT_GOAL := help
.PHONY: help doc install uninstall format clean

help:
	@echo "make run        add noise to a photo and remove it: attention over all its pixels (IMAGE=photo.ppm; ARGS=\"--sigma 0\" if it"
	@echo "                is noisy already)"
	@echo "make test       run every test that this machine can run; make check is the same (FA_SEED=n repeats a run that printed seed n)"
	@echo "make bench      time every instance, and beside PyTorch where there is one (GRID=full for the whole grid on the CPU)"
	@echo "                make bench-cpu, bench-gpu, bench-compare, bench-rows-cpu, bench-rows-gpu, bench-rows-compare: a part of it"
	@echo "make examples   build and run the ladder of examples (examples-cpu, examples-gpu: on one of them)"
	@echo "make doc        write the documentation to $(BUILD)/doc/html (needs doxygen)"
	@echo "make install    copy the headers, fa.pc, the CMake package and LICENSE to $(DESTDIR)$(PREFIX) (PREFIX, DESTDIR)"
	@echo "make uninstall  remove what install put there"
	@echo "make sanitize   run the GPU's tests under compute-sanitizer (TOOLS, SANITIZED: tests/tests.mk)"
	@echo "make mutate     put small faults into the kernels and see that the tests notice"
	@echo "make format     format the lines that you have changed (needs clang-format)"
	@echo "make clean      remove $(BUILD)"
	@echo "BUILD=folder, with any of these: what is made goes there, not into build (where this folder cannot be written, for example)"

include gpu.mk
-include tests/tests.mk
-include examples/examples.mk
-include tests/bench/bench.mk

doc:
	@command -v doxygen >/dev/null || { echo "make doc needs doxygen, and there is none on PATH" >&2; exit 1; }
	@case "$$PWD" in *[[:space:]]*) \
	    echo "make doc: doxygen does not find its own pages in a path with blanks, '$$PWD': copy the project to one without" >&2; exit 1 ;; esac
	@mkdir -p $(BUILD)/doc
	@{ cat doc/Doxyfile; echo "OUTPUT_DIRECTORY = $(BUILD)/doc"; echo "PROJECT_NUMBER = $(VERSION)"; } | doxygen -
	@! grep -n '<p>| \|@image\|@section\|@ref \|&lt;tt&gt;' $(BUILD)/doc/html/*.html || \
	    { echo "make doc: the pages have this text, in which doxygen has seen no markup (a link over two lines, say)" >&2; exit 1; }
	@echo "doc: open $(BUILD)/doc/html/index.html"

# Not whole files: it puts the calls of generated names, FA__LOOP(_run)(...), over two lines.
format:
	@command -v git-clang-format >/dev/null || \
	    { echo "make format needs clang-format with git-clang-format, and there is none on PATH" >&2; exit 1; }
	git clang-format --force --extensions h,c,cu HEAD

clean:
	rm -rf $(BUILD)
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL: # with other goals: they come after it
endif

# ------------------------------------------------------------------ install

headers     := $(patsubst include/%,%,$(shell find include/fa -name '*.h'))
includedir   = $(PREFIX)/include
pkgconfigdir = $(PREFIX)/share/pkgconfig
cmakedir     = $(PREFIX)/share/cmake/fa
licensedir   = $(PREFIX)/share/doc/fa
# All that install writes and uninstall removes. (In quotes for a shell: PREFIX may have parentheses.)
installed    = $(addprefix $(includedir)/,$(headers)) $(pkgconfigdir)/fa.pc \
               $(addprefix $(cmakedir)/,fa-config.cmake fa-config-version.cmake) $(licensedir)/LICENSE
directories  = $(sort $(dir $(installed)))

# What other projects call PREFIX, and our own names above: fa.pc and the CMake package would not follow them.
elsewhere = $(foreach name,prefix exec_prefix includedir INCLUDEDIR datadir datarootdir docdir pkgconfigdir cmakedir licensedir,$(if \
    $(filter command,$(origin $(name))),$(name)))

# fa.pc and the paths below hold PREFIX as it is. Quotes and dollars are looked for before a shell sees them.
quotes_in = $(findstring ',$1)$(findstring ",$1)$(findstring `,$1)$(findstring $$,$1)
prefix-is-usable:
	$(if $(strip $(elsewhere)),$(error where to install is said by PREFIX and DESTDIR, not by $(strip $(elsewhere))))
	$(foreach name,PREFIX DESTDIR,$(if $(call quotes_in,$($(name))),$(error $(name) is $($(name)): there must be no quotes and no dollar in it)))
	@case "$(PREFIX)" in /*) ;; *) echo "PREFIX is '$(PREFIX)': an absolute path is needed" >&2; exit 1 ;; esac
	@case "$(PREFIX)" in *[[:space:]]*) echo "PREFIX is '$(PREFIX)': pkg-config takes no blanks in it" >&2; exit 1 ;; esac
	@case "$(PREFIX)" in *['&|\\#;']*) echo "PREFIX is '$(PREFIX)': there must be none of & | \\ # ; in it" >&2; exit 1 ;; esac
.PHONY: prefix-is-usable

install: prefix-is-usable
	@umask 022; for directory in $(directories:%='%'); do mkdir -p "$(DESTDIR)$$directory" || exit 1; done
	@for header in $(headers); do cp include/$$header "$(DESTDIR)$(includedir)/$$header" || exit 1; done
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' cmake/fa.pc.in \
	    > "$(DESTDIR)$(pkgconfigdir)/fa.pc"
	@sed -e 's|@VERSION@|$(VERSION)|' cmake/fa-config-version.cmake.in > "$(DESTDIR)$(cmakedir)/fa-config-version.cmake"
	@cp cmake/fa-config.cmake "$(DESTDIR)$(cmakedir)/fa-config.cmake"
	@cp LICENSE "$(DESTDIR)$(licensedir)/LICENSE"
	@for file in $(installed:%='%'); do chmod 644 "$(DESTDIR)$$file" || exit 1; done
	@echo "install: fa $(VERSION) is in $(DESTDIR)$(PREFIX)"

# Removes the files that install wrote, then the directories of ours that this leaves empty. What lies there else, of another version or
# the user's own, stays, and is named.
uninstall: prefix-is-usable
	@for file in $(installed:%='%'); do rm -f "$(DESTDIR)$$file" || exit 1; done
	@for directory in $(patsubst %,'%',$(filter-out $(pkgconfigdir)/,$(directories))); do \
	        echo "$(DESTDIR)$$directory"; done | sort -r \
	    | while read -r directory; do rmdir "$$directory" 2>/dev/null || true; done
	@rest=$$(find "$(DESTDIR)$(includedir)/fa" "$(DESTDIR)$(cmakedir)" "$(DESTDIR)$(licensedir)" ! -type d 2>/dev/null); \
	if [ -z "$$rest" ]; then echo "uninstall: fa is gone from $(DESTDIR)$(PREFIX)"; else \
	    echo "uninstall: fa $(VERSION) is gone from $(DESTDIR)$(PREFIX); these files, which it does not have, remain:"; echo "$$rest"; fi
