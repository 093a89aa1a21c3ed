# tests.mk: make test, make mutate, make sanitize. Included by the Makefile; also works alone: make -f tests/tests.mk test
#
# FA_SEED=n    repeats a run that printed seed n
# FA_ROUNDS=n  random shapes for each instance (default 6)
# SAMPLE=n     combinations drawn at random from the seed, besides the table (default 6)
# FA_PROVE=0   plain summary, also where prove is found
# FA_FULL=1    compiles every instance for every GPU architecture (default: each for one, a third of them on fewer than four cores), and runs
#              both simulated GPUs on all that is simulated (default: each on a half, and kernels of rows on one, on fewer than four cores a half of them)
# MUTATION=n   make mutate: only the fault that it prints as number n; several are listed with blanks between them
# Q=@          does not print the compilers' commands
# NVCC=        leaves out what needs nvcc
# CXX=         leaves out the simulated GPU

CC         ?= cc
BUILD      ?= build
CFLAGS     ?= -O3
SAMPLE     ?= 6
# Where the library is: another copy may be tested.
FA_INCLUDE ?= include
include gpu.mk

.PHONY: test check mutate sanitize test-programs
.SECONDARY:
T           := $(BUILD)/tests
test_seed   := $(or $(FA_SEED),$(shell date +%s))
ifneq ($(shell echo '$(test_seed)' | grep -cxE '0|[1-9][0-9]*'),1)
$(error FA_SEED is '$(test_seed)': a number is needed without sign and leading zeros, such as a run prints)
endif
test_cores  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# As many at once as make was asked for (whose variables, which may have -j in their values, come after their names), or as there are cores.
test_asked   = $(filter -j% --jobserver%,$(filter-out -- %=%,$(MAKEFLAGS)) $(filter --jobserver%,$(MAKEFLAGS)))
test_jobs    = $(if $(test_asked),,-j$(test_cores))
test_at_once = $(or $(patsubst -j%,%,$(filter -j%,$(test_asked))),$(test_cores))

# The suites and most instances are compiled with -Og, which takes a third of the time of -O3; the instances of the random sample as the
# user's CFLAGS say.
test_flags   = -std=c11 -Wall -Wextra -Werror -I$(FA_INCLUDE) -Itests -pthread
TEST_CFLAGS  = $(test_flags) $(CFLAGS) -Og
TEST_LIBS    = -lm -pthread

test_headers := $(shell find $(FA_INCLUDE)/fa -name '*.h') $(wildcard tests/harness/*.h tests/suites/*.h tests/tools/*.h)
# What everything is compiled with: with other compilers, flags or rules it is made anew.
test_with     = $(CC) $(TEST_CFLAGS) | $(CXX) | $(NVCC) $(if $(NVCC),$(gpu_arch))
test_headers += $(T)/with tests/tests.mk
$(T)/with: FORCE
	$(call note,$(test_with))
test_harness := $(patsubst tests/harness/%.c,$(T)/harness/%.o,$(wildcard tests/harness/*.c))

# ---- instances: the pair table in chunks, shipped hooks, and a random sample ----

test_chunks  := 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23
# Of instances on the simulated GPU, and, on one with a schedule of its own, of the other: the shipped hooks, a sample, and a chunk, by the seed.
some_chunks   = forward_hooks forward_random forward_$(shell printf %02d $$(($(test_seed) % $(words $(test_chunks)))))
test_forward := $(test_chunks:%=$(T)/forward_%) $(T)/forward_hooks $(T)/forward_random

$(T)/pairs: tests/tools/pairs.c tests/harness/tap.c tests/harness/rng.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ tests/tools/pairs.c tests/harness/tap.c tests/harness/rng.c $(TEST_LIBS)

$(T)/hooks.list: $(T)/pairs
	$(Q)$< hooks > $@
$(T)/forward_hooks.c: $(T)/hooks.list
	$(Q)$(T)/pairs emit $< 0 1 > $@
# Half types, of all kinds of tiles that GPUs with 99 KB of shared memory have for them.
$(T)/forward_scarce.c: $(T)/pairs
	$(Q)printf 'PAIR(%s)\n' '0, window, bias, BF16, 48, 48' '1, causal, softcap, F16, 80, 80' '2, document, none, BF16, 112, 112' '3, span, alibi, F16, 160, 160' > $(T)/scarce.list
	$(Q)$< emit $(T)/scarce.list 0 1 > $@
# Biases of half types in the schedule for every GPU, of tiles that they have only where all targets have 227 KB.
$(T)/forward_roomy.c: $(T)/pairs
	$(Q)printf 'PAIR(%s)\n' '0, causal, bias, BF16, 80, 80' '1, document, bias, F16, 112, 112' '2, full, bias, BF16, 96, 96' '3, window, bias, F16, 88, 104' > $(T)/roomy.list
	$(Q)$< emit $(T)/roomy.list 0 1 > $(T)/roomy.c
	$(Q)awk '/^.define FA_NAME/ { print "#define FA_ARCH 80" } { print }' $(T)/roomy.c > $@
$(T)/forward_%.c: $(T)/pairs tests/pairs.h
	$(Q)$< emit tests/pairs.h $(patsubst 0%,%,$*) $(words $(test_chunks)) > $@

# Drawn every time, and new where it differs.
$(T)/random.list: $(T)/pairs FORCE
	$(Q)$< random $(SAMPLE) $(test_seed) > $@.new
	@$(if_new)
$(T)/forward_random.c: $(T)/random.list
	$(Q)$(T)/pairs emit $< 0 1 > $@

# ---- programs ----

# The suites of the templates that work row by row, which every machine runs.
row_suites   := row_softmax layernorm swiglu cross_entropy rope
test_suites  := $(patsubst %,$(T)/%,types masks contracts primitives rows $(row_suites))

$(T)/harness/%.o: tests/harness/%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -O3 -c -o $@ $<

$(T)/%.o: tests/suites/%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -c -o $@ $<

# Every second chunk as with -march=native, which leaves out the instruction sets below the machine's. (Added to TEST_CFLAGS, of which
# $(T)/with is made, it would be in there whenever a chunk is asked for first: what a target sets holds for what it depends on, too.)
native_chunks := $(filter %1 %3 %5 %7 %9,$(test_chunks))
$(native_chunks:%=$(T)/forward_%.o): test_native = $(shell $(CC) -march=native -x c -E /dev/null >/dev/null 2>&1 && echo -march=native)

$(T)/forward_random.o: $(T)/forward_random.c $(test_headers)
	$(Q)$(CC) $(test_flags) $(CFLAGS) -c -o $@ $<

$(T)/forward_%.o: $(T)/forward_%.c $(test_headers)
	$(Q)$(CC) $(TEST_CFLAGS) $(test_native) -c -o $@ $<

$(test_forward): $(T)/forward_%: $(T)/forward_%.o $(T)/forward.o $(test_harness)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ $^ $(TEST_LIBS)

$(T)/contracts: $(T)/contracts_elsewhere.o
$(test_suites): $(T)/%: $(T)/%.o $(test_harness)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ $^ $(TEST_LIBS)

# ---- the same on the GPU, with nvcc ----

# Without a GPU only the status that says so; tests/nvcc_test.sh compiles the instances.
TEST_NVFLAGS = -x cu -std=c++17 --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I$(FA_INCLUDE) -Itests
TEST_CODE    = $(call gpu_code,$(gpu_arch))
# An architecture that the GPU at hand is not.
gpu_other    = $(if $(filter 90,$(gpu_cap)),sm_80,sm_90a)
gpu_harness := $(filter-out %/memory.o,$(test_harness)) $(T)/gpu/memory.o
gpu_forward := $(test_forward:$(T)/%=$(T)/gpu_%)
# Where instances have a schedule of their own, the one for every GPU runs on a part of them, which changes with the seed.
gpu_plain_forward = $(patsubst %,$(T)/gpu_plain_%,$(some_chunks) forward_roomy)
gpu_present  = $(patsubst %,$(T)/gpu_%,contracts primitives rows $(row_suites) gpu other) \
               $(if $(filter 90,$(gpu_cap)),$(T)/gpu_sm90 $(T)/gpu_plain $(gpu_plain_forward)) $(gpu_forward)
gpu_suites   = $(if $(NVCC),$(if $(GPU),$(gpu_present),$(T)/gpu_$(if $(gpu_old),too_old,no_device)))
$(T)/gpu_too_old:
	@mkdir -p $(@D)
	@printf '#!/bin/sh\necho 1..1\necho "ok 1 # SKIP kernels on the GPU: its compute capability, $(gpu_cap), is below 80"\n' > $@ && chmod +x $@

$(T)/gpu/memory.o: tests/harness/memory.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(TEST_NVFLAGS) $(TEST_CODE) -c -o $@ $<
$(T)/gpu/%.o: tests/suites/%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(TEST_NVFLAGS) $(TEST_CODE) -c -o $@ $<
$(T)/gpu/other.o: tests/suites/gpu.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(TEST_NVFLAGS) $(call gpu_code,$(gpu_other)) -DTEST_WRONG_ARCHITECTURE -DTEST_SCHEDULE=80 -c -o $@ $<
# The schedule that an instance chooses: by the GPU, and plain sm_90 has not got the newer one.
gpu_schedule = $(if $(filter 90,$(gpu_cap)),90,80)
$(T)/gpu/gpu.o: TEST_NVFLAGS += -DTEST_SCHEDULE=$(gpu_schedule)
$(T)/gpu/plain.o: tests/suites/gpu.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(TEST_NVFLAGS) --use_fast_math -arch=sm_90 -DTEST_SCHEDULE=80 -c -o $@ $<
$(T)/gpu/plain_forward_%.o: $(T)/forward_%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(TEST_NVFLAGS) -arch=sm_90 -c -o $@ $<
# What is sm_90a's alone.
sm90_chunks := 0 1 2 3 4 5 6 7
SM90_FLAGS   = $(TEST_NVFLAGS) $(call gpu_code,sm_90a)
$(T)/products_%.c: tests/tools/products.sh
	@mkdir -p $(@D)
	$(Q)sh $< $* $(words $(sm90_chunks)) > $@
$(T)/gpu/products_%.o: $(T)/products_%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(SM90_FLAGS) -c -o $@ $<
$(T)/gpu/sm90.o: tests/suites/sm90.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(SM90_FLAGS) -c -o $@ $<
# The contract on numbers holds under --use_fast_math too (plain.o has it as well).
$(T)/gpu/forward_00.o $(T)/gpu/forward_01.o: TEST_NVFLAGS += --use_fast_math
$(T)/gpu/forward_%.o: $(T)/forward_%.c $(test_headers)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(TEST_NVFLAGS) $(TEST_CODE) -c -o $@ $<

$(T)/gpu_contracts: $(T)/gpu/contracts_elsewhere.o
$(T)/gpu_sm90: $(sm90_chunks:%=$(T)/gpu/products_%.o)
$(gpu_forward) $(gpu_plain_forward): $(T)/forward.o
$(T)/gpu_%: $(T)/gpu/%.o $(gpu_harness)
	$(Q)$(NVCC) $(TEST_CODE) -o $@ $^ $(TEST_LIBS:-pthread=-lpthread)

# ---- FA_BF16 on a CPU with AMX, whose instruction layer is in C, on any that rounds to it (tests/simulator/amx) ----

amx_suites = $(if $(shell grep -sw avx512_bf16 /proc/cpuinfo | head -n 1),$(patsubst %,$(T)/amx_%,$(filter-out forward_hooks,$(some_chunks))),$(T)/amx_nothing)
$(T)/amx/forward_%.o: $(T)/forward_%.c $(test_headers) tests/simulator/amx/fa/arch/cpu/amx.h
	@mkdir -p $(@D)
	$(Q)$(CC) -Itests/simulator/amx $(TEST_CFLAGS) -c -o $@ $<
$(T)/amx_forward_%: $(T)/amx/forward_%.o $(T)/forward.o $(test_harness)
	$(Q)$(CC) $(TEST_CFLAGS) -o $@ $^ $(TEST_LIBS)
$(T)/amx_nothing:
	@mkdir -p $(@D)
	@printf '#!/bin/sh\necho 1..1\necho "ok 1 # SKIP the code for AMX, with the unit in C: no processor with AVX512-BF16"\n' > $@ && chmod +x $@

# ---- the same on a simulated GPU, with a C++ compiler (tests/simulator) ----

# make's default is g++ alone.
ifeq ($(origin CXX),default)
CXX          := $(or $(notdir $(firstword $(shell command -v g++) $(shell command -v c++) $(shell command -v clang++))),g++)
endif
# Code for sm_80, and of some instances for sm_89 and sm_90a, whose instruction layer is in C++.
have_cxx     := $(if $(CXX),$(shell command -v $(CXX) >/dev/null 2>&1 && echo 1))
# Of the two slowest programs one runs on either, by the seed; and kernels of rows on one of them, where cores are few only the slowest or the others.
both_slow     = contracts forward_hooks
slow_first    = $(filter 0,$(shell echo $$(($(test_seed) % 2))))
slow_80       = $(if $(filter 1,$(FA_FULL)),$(both_slow),$(if $(slow_first),contracts,forward_hooks))
slow_90       = $(if $(filter 1,$(FA_FULL)),$(both_slow),$(filter-out $(slow_80),$(both_slow)))
few_cores     = $(filter 1 2 3,$(test_cores))
simulated_rows = $(if $(filter 1,$(FA_FULL))$(if $(few_cores),,all),$(row_suites),$(if $(slow_first),$(filter-out layernorm,$(row_suites)),layernorm))
rows_on       = $(if $(filter 1,$(FA_FULL)),full,$(shell echo $$(($(test_seed) / 2 % 2))))
simulated     = primitives rows $(if $(filter 0 full,$(rows_on)),$(simulated_rows)) $(slow_80) $(filter-out $(both_slow),$(some_chunks))
simulated_90  = primitives rows $(if $(filter 1 full,$(rows_on)),$(simulated_rows)) order $(slow_90) $(filter-out $(both_slow),$(some_chunks))
simulated_suites = $(if $(have_cxx),$(simulated:%=$(T)/simulated_%) $(simulated_90:%=$(T)/simulated90_%) $(T)/simulated89_forward_scarce $(T)/simulated90_forward_roomy,$(T)/simulated_nothing)
SIMULATOR     = -std=c++17 -Wno-psabi -Itests/simulator/include -Itests/simulator -Itests -pthread
# (The flag: what is thread_local elsewhere needs no call to be found; gcc only.)
SIMULATED     = $(SIMULATOR) -x c++ -O1 -w $(simulated_tls) -include cuda_runtime.h -DTEST_SIMULATOR -D__CUDACC__ -D__CUDA_ARCH__=800 -D__CUDA_ARCH_LIST__=800
SIMULATED_89  = $(subst =800,=890,$(SIMULATED))
SIMULATED_90  = $(subst =800,=900,$(SIMULATED)) -D__CUDA_ARCH_FEAT_SM90_ALL
simulated_tls := $(if $(have_cxx),$(shell $(CXX) -fno-extern-tls-init -x c++ -E /dev/null >/dev/null 2>&1 && echo -fno-extern-tls-init))
simulator_headers := $(shell find tests/simulator -name '*.h')
simulated_harness := $(filter-out %/memory.o,$(test_harness)) $(T)/simulated/memory.o

$(T)/simulated/memory.o: tests/harness/memory.c $(test_headers) $(simulator_headers)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(SIMULATED) -I$(FA_INCLUDE) -c -o $@ $<
# simulated_rules NAME,MACHINE,FLAGS: programs for one of the GPUs, whose names begin with NAME_.
define simulated_rules
$(T)/$1/machine.o: tests/simulator/machine.cpp $(simulator_headers)
	@mkdir -p $$(@D)
	$(Q)$(CXX) $(SIMULATOR) $2 -O2 -U_FORTIFY_SOURCE -Wall -Wextra -Werror -c -o $$@ $$<
$(T)/$1/forward_%.o: $(T)/forward_%.c $(test_headers) $(simulator_headers)
	@mkdir -p $$(@D)
	$(Q)$(CXX) $3 -I$(FA_INCLUDE) -c -o $$@ $$<
$(T)/$1/%.o: tests/suites/%.c $(test_headers) $(simulator_headers)
	@mkdir -p $$(@D)
	$(Q)$(CXX) $3 -I$(FA_INCLUDE) -c -o $$@ $$<
$(T)/$1_forward_%: $(T)/$1/forward_%.o $(T)/$1/machine.o $(T)/forward.o $(simulated_harness)
	$(Q)$(CXX) $(CFLAGS) -o $$@ $$^ $(TEST_LIBS)
$(T)/$1_contracts: $(T)/$1/contracts_elsewhere.o
$(T)/$1_%: $(T)/$1/%.o $(T)/$1/machine.o $(simulated_harness)
	$(Q)$(CXX) $(CFLAGS) -o $$@ $$^ $(TEST_LIBS)
endef
$(eval $(call simulated_rules,simulated,,$(SIMULATED)))
$(eval $(call simulated_rules,simulated89,-DMACHINE_MINOR=9,$(SIMULATED_89)))
$(eval $(call simulated_rules,simulated90,-DMACHINE_MAJOR=9,$(SIMULATED_90)))
$(T)/simulated_nothing:
	@mkdir -p $(@D)
	@printf '#!/bin/sh\necho 1..1\necho "ok 1 # SKIP kernels of GPUs on a simulated one: no C++ compiler ($(CXX))"\n' > $@ && chmod +x $@

# ---- targets ----

# Slow compilations first.
test-programs: $(T)/contracts $(gpu_suites) $(simulated_suites) $(amx_suites) $(test_forward) $(test_suites)

test:
	@sh tests/run.sh
	@echo "test: compiling the test programs, $(test_at_once) at a time (seed $(test_seed))"
	@$(MAKE) --no-print-directory $(test_jobs) FA_SEED=$(test_seed) test-programs
	@CC="$(CC)" FA_INCLUDE="$(FA_INCLUDE)" NVCC="$(NVCC)" PYTHON="$(PYTHON)" BUILD="$(BUILD)" FA_SEED=$(test_seed) sh tests/run.sh $(T)/log $(test_at_once) \
	    $(simulated_suites) $(amx_suites) $(test_suites) $(gpu_suites) $(test_forward) $(sort $(wildcard tests/*_test.sh))
check: test

# With a GPU; SANITIZED="gpu_rope gpu_forward_03" for some programs, TOOLS=racecheck for one tool.
SANITIZED    ?= $(patsubst %,gpu_%,primitives rows $(row_suites) forward_00 $(if $(filter 90,$(gpu_cap)),sm90))
sanitized     = $(if $(NVCC),$(if $(GPU),$(SANITIZED:%=$(T)/%)))
sanitize:
	@$(if $(sanitized),$(MAKE) --no-print-directory $(test_jobs) $(sanitized))
	@CC="$(CC)" sh tests/sanitize.sh $(sanitized)

mutate: $(T)/pairs
	@CC="$(CC)" CXX="$(if $(have_cxx),$(CXX))" SIMULATOR="$(SIMULATOR)" SIMULATED="$(SIMULATED)" SIMULATED_90="$(SIMULATED_90)" NVCC="$(NVCC)" GPU="$(GPU)" GPU_ARCH="$(gpu_arch)" BUILD="$(BUILD)" sh tests/mutate.sh $(MUTATION)
