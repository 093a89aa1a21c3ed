# tests.mk: make test, make mutate. Included by the Makefile; also works alone: make -f tests/tests.mk test
#
# FA_SEED=n    repeats a run that printed seed n
# FA_ROUNDS=n  random shapes for each instance (default 6)
# SAMPLE=n     combinations drawn at random from the seed, besides the table (default 6)
# FA_PROVE=0   plain summary, also where prove is found

CC       ?= cc
BUILD    ?= build
CFLAGS   ?= -O3
NVCC     ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
GPU      ?= $(shell nvidia-smi -L 2>/dev/null | grep GPU | head -n 1)
SAMPLE   ?= 6

.PHONY: test mutate test-programs
T           := $(BUILD)/tests
test_seed   := $(or $(FA_SEED),$(shell date +%s))
test_cores  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
test_jobs    = $(if $(findstring -j,$(MAKEFLAGS))$(findstring --jobserver,$(MAKEFLAGS)),,-j$(test_cores))

# -O2 is what the tests need; the user's CFLAGS come last and win.
TEST_CFLAGS  = -std=c11 -O2 -Wall -Wextra -Werror -Iinclude -Itests -pthread $(CFLAGS)
TEST_LIBS    = -lm -pthread

test_headers := $(shell find include/fa -name '*.h') $(wildcard tests/harness/*.h tests/suites/*.h tests/tools/*.h)
test_harness := $(patsubst tests/harness/%.c,$(T)/harness/%.o,$(wildcard tests/harness/*.c))

# ---- instances: the pair table in chunks, and a random sample ----

test_chunks  := 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15
test_forward := $(test_chunks:%=$(T)/forward_%) $(T)/forward_random

$(T)/pairs: tests/tools/pairs.c tests/harness/tap.c tests/harness/rng.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ tests/tools/pairs.c tests/harness/tap.c tests/harness/rng.c $(TEST_LIBS)

$(T)/forward_%.c: $(T)/pairs tests/pairs.h
	$(Q)$< emit tests/pairs.h $(patsubst 0%,%,$*) $(words $(test_chunks)) > $@

# Made anew for each seed.
$(T)/random_$(SAMPLE)_$(test_seed).list: $(T)/pairs
	@rm -f $(T)/random_*.list
	$(Q)$< random $(SAMPLE) $(test_seed) > $@
$(T)/forward_random.c: $(T)/random_$(SAMPLE)_$(test_seed).list
	$(Q)$(T)/pairs emit $< 0 1 > $@

# ---- programs ----

test_suites  := $(T)/types $(T)/masks
test_scripts := tests/pairs.sh

$(T)/harness/%.o: tests/harness/%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -c -o $@ $<

$(T)/%.o: tests/suites/%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -c -o $@ $<

$(T)/forward_%.o: $(T)/forward_%.c $(test_headers)
	$(Q)$(CC) $(TEST_CFLAGS) -c -o $@ $<

$(test_forward): $(T)/forward_%: $(T)/forward_%.o $(T)/forward.o $(test_harness)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ $^ $(TEST_LIBS)

$(test_suites): $(T)/%: $(T)/%.o $(test_harness)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ $^ $(TEST_LIBS)

test-programs: $(test_suites) $(test_forward)

test:
	@echo "test: compiling the test programs on $(test_cores) cores"
	@$(MAKE) --no-print-directory $(test_jobs) FA_SEED=$(test_seed) test-programs
	@CC="$(CC)" NVCC="$(NVCC)" BUILD="$(BUILD)" FA_SEED=$(test_seed) sh tests/run.sh $(T)/log $(test_cores) \
	    $(test_suites) $(test_forward) $(test_scripts)
