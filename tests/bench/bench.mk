# The benchmark. One instance is one shared library whose name says what it is:
#
#     $(BUILD)/bench/cpu/fp32_d64_causal.so          gcc or clang
#     $(BUILD)/bench/gpu/bf16_d128_full_m64_n128_s2_w4.so   nvcc, with the tile chosen by hand
#
# Words: data type, head dimension, variant (a mask, a hook, or both; compare.py times all, bench.cu those of its variant_names),
# then any of v96 (FA_HEAD_DIM_V), a80 (FA_ARCH), m64 n128 s2 w4 (FA_BLOCK_M, FA_BLOCK_N, FA_STAGES, FA_WARPS) and xNAME
# (-DFA_BENCH_NAME=1, for an experiment).
#
# The kernels that work row by row (rows.cu) are $(BUILD)/bench/rows-cpu/bf16_softmax.so and rows-gpu/bf16_softmax.so:
# data type, kernel, and xNAME.

bench_dtype_fp32 := FA_F32
bench_dtype_fp16 := FA_F16
bench_dtype_bf16 := FA_BF16
bench_dtype_tf32 := FA_TF32

bench_variant_full     :=
bench_variant_causal   := -DFA_MASK=fa_causal
bench_variant_window   := -DFA_MASK=fa_sliding_window
bench_variant_prefix   := -DFA_MASK=fa_prefix
bench_variant_document := -DFA_MASK=fa_document
bench_variant_packed   := -DFA_MASK=fa_causal_document
bench_variant_span     := -DFA_MASK=fa_span
bench_variant_packedspan := -DFA_MASK=fa_span
bench_variant_alibi    := -DFA_SCORE=fa_alibi
bench_variant_softcap  := -DFA_SCORE=fa_softcap
bench_variant_bias     := -DFA_SCORE=fa_bias
bench_variant_keybias  := -DFA_SCORE=fa_key_bias
bench_variant_own      := -DFA_SCORE=bench_own
bench_masks := causal window prefix document packed span packedspan
bench_hooks := alibi softcap bias keybias own
$(foreach mask,$(bench_masks),$(foreach hook,$(bench_hooks),$(eval bench_variant_$(mask)$(hook) := $(bench_variant_$(mask)) $(bench_variant_$(hook)))))

bench_comma := ,
bench_space := $(subst x,,x x)
bench_known = $(if $(filter undefined,$(origin $1)),$(error bench: no such $2 in the instance name $3),$($1))
bench_tail = $(filter $1%,$(wordlist 4,99,$(subst _, ,$2)))
bench_strange = $(filter-out v% a% m% n% s% w% x%,$(wordlist 4,99,$(subst _, ,$1)))
bench_flags = $(if $(bench_strange),$(error bench: no such word as $(bench_strange) in the instance name $1)) \
    -DFA_DTYPE=$(call bench_known,bench_dtype_$(word 1,$(subst _, ,$1)),data type,$1) \
    -DFA_HEAD_DIM=$(patsubst d%,%,$(word 2,$(subst _, ,$1))) \
    $(call bench_known,bench_variant_$(word 3,$(subst _, ,$1)),variant,$1) \
    $(patsubst v%,-DFA_HEAD_DIM_V=%,$(call bench_tail,v,$1)) \
    $(patsubst a%,-DFA_ARCH=%,$(call bench_tail,a,$1)) \
    $(patsubst m%,-DFA_BLOCK_M=%,$(call bench_tail,m,$1)) \
    $(patsubst n%,-DFA_BLOCK_N=%,$(call bench_tail,n,$1)) \
    $(patsubst s%,-DFA_STAGES=%,$(call bench_tail,s,$1)) \
    $(patsubst w%,-DFA_WARPS=%,$(call bench_tail,w,$1)) \
    $(patsubst x%,-DFA_BENCH_%=1,$(call bench_tail,x,$1)) $(BENCH_FLAGS)

BENCH_ARCH ?= $(gpu_arch)
BENCH_NVCCFLAGS ?= -O3 -std=c++17

# What `make bench` runs: attention and the kernels of rows_instance.cu, or only those named: make bench BENCH=softmax.
bench_kernels := softmax layernorm layernorm_residual rmsnorm rmsnorm_residual cross_entropy swiglu rope
BENCH ?= attention $(bench_kernels)
bench_unknown := $(filter-out attention $(bench_kernels),$(BENCH))
bench_attention := $(filter attention,$(BENCH))
bench_rows := $(filter $(bench_kernels),$(BENCH))
BENCH_ROWS_CPU ?= $(foreach k,$(bench_rows),fp32_$k bf16_$k fp16_$k)
BENCH_ROWS_GPU ?= $(bench_rows:%=bf16_%)
bench_rows_cpu_so = $(BENCH_ROWS_CPU:%=$(BUILD)/bench/rows-cpu/%.so)
bench_rows_gpu_so = $(BENCH_ROWS_GPU:%=$(BUILD)/bench/rows-gpu/%.so)
bench_rows_flags = \
    -DFA_DTYPE=$(call bench_known,bench_dtype_$(word 1,$(subst _, ,$1)),data type,$1) \
    -DBENCH_$(subst $(bench_space),_,$(filter-out x%,$(wordlist 2,99,$(subst _, ,$1))))=1 \
    $(patsubst x%,-DFA_BENCH_%=1,$(filter x%,$(wordlist 2,99,$(subst _, ,$1)))) $(BENCH_FLAGS)

# GRID=full asks for the whole grid on the CPU too.
GRID ?= default
BENCH_DIMS ?= 64 128 256
BENCH_VARIANTS ?= window document span alibi softcap keybias bias own
BENCH_REPEAT ?= 15
bench_grid = $(foreach t,$1,$(foreach d,$(BENCH_DIMS),$(t)_d$(d)_full $(t)_d$(d)_causal)) \
    $(addprefix $(firstword $1)_d$(firstword $(BENCH_DIMS))_,$(BENCH_VARIANTS))
BENCH_CPU ?= $(call bench_grid,fp32 bf16 fp16)
BENCH_GPU ?= $(call bench_grid,bf16 fp16 fp32 tf32)
bench_cpu_so = $(BENCH_CPU:%=$(BUILD)/bench/cpu/%.so)
bench_gpu_so = $(BENCH_GPU:%=$(BUILD)/bench/gpu/%.so)
bench_headers := $(shell find $(FA_INCLUDE)/fa -name '*.h')
# What needs nvcc says so where there is none.
bench_nvcc = $(or $(NVCC),$(error bench: the GPU's part needs nvcc, on PATH or as NVCC=...))

# What instances and programs were compiled with.
bench_with_cpu = $(CC) $(CFLAGS) -I$(FA_INCLUDE) $(BENCH_FLAGS)
bench_with_gpu = $(NVCC) $(BENCH_NVCCFLAGS) $(BENCH_ARCH) -I$(FA_INCLUDE) $(BENCH_FLAGS)
$(BUILD)/bench/with-%: FORCE
	$(call note,$(bench_with_$*))

$(BUILD)/bench/measure: tests/bench/measure.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARNINGS) $< -o $@

$(BUILD)/bench/plot: tests/bench/plot.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARNINGS) $< -o $@ -lm

# measure runs the compiler and notes the seconds, the memory, the registers and the spills in NAME.compile.
$(BUILD)/bench/cpu/%.so: tests/bench/instance.cu $(bench_headers) $(BUILD)/bench/measure $(BUILD)/bench/with-cpu
	@mkdir -p $(@D)
	@echo "  instance $(@:$(BUILD)/bench/%.so=%)"
	@$(BUILD)/bench/measure $(@:.so=.compile) $(CC) $(CFLAGS) -I$(FA_INCLUDE) $(call bench_flags,$*) \
	    -fPIC -x c -c tests/bench/instance.cu -o $(@:.so=.o)
	@$(CC) $(CFLAGS) -shared $(@:.so=.o) -o $@ -lm -pthread

$(BUILD)/bench/gpu/%.so: tests/bench/instance.cu $(bench_headers) $(BUILD)/bench/measure $(BUILD)/bench/with-gpu
	@mkdir -p $(@D)
	@echo "  instance $(@:$(BUILD)/bench/%.so=%)"
	@$(BUILD)/bench/measure $(@:.so=.compile) $(bench_nvcc) $(BENCH_NVCCFLAGS) $(call gpu_code,$(BENCH_ARCH)) -Xptxas -v -I$(FA_INCLUDE) \
	    $(call bench_flags,$*) -Xcompiler -fPIC -x cu -c tests/bench/instance.cu -o $(@:.so=.o)
	@$(NVCC) -shared $(call gpu_code,$(BENCH_ARCH)) $(@:.so=.o) -o $@

$(BUILD)/bench/rows-cpu/%.so: tests/bench/rows_instance.cu $(bench_headers) $(BUILD)/bench/measure $(BUILD)/bench/with-cpu
	@mkdir -p $(@D)
	@echo "  instance $(@:$(BUILD)/bench/%.so=%)"
	@$(BUILD)/bench/measure $(@:.so=.compile) $(CC) $(CFLAGS) -I$(FA_INCLUDE) $(call bench_rows_flags,$*) \
	    -fPIC -x c -c tests/bench/rows_instance.cu -o $(@:.so=.o)
	@$(CC) $(CFLAGS) -shared $(@:.so=.o) -o $@ -lm -pthread

# An instance of rows has several kernels, over which nvcc's optimizer can have several threads (doc/instantiate.md): one instance at a time.
bench_split = $(if $(shell $(NVCC) --help 2>/dev/null | grep -e '--split-compile '),--split-compile=0)
$(BUILD)/bench/rows-gpu/%.so: tests/bench/rows_instance.cu $(bench_headers) $(BUILD)/bench/measure $(BUILD)/bench/with-gpu
	@mkdir -p $(@D)
	@echo "  instance $(@:$(BUILD)/bench/%.so=%)"
	@$(BUILD)/bench/measure --alone $(BUILD)/bench/lock $(@:.so=.compile) $(bench_nvcc) $(BENCH_NVCCFLAGS) $(bench_split) \
	    $(call gpu_code,$(BENCH_ARCH)) -Xptxas -v -I$(FA_INCLUDE) $(call bench_rows_flags,$*) -Xcompiler -fPIC -x cu -c tests/bench/rows_instance.cu -o $(@:.so=.o)
	@$(NVCC) -shared $(call gpu_code,$(BENCH_ARCH)) $(@:.so=.o) -o $@

$(BUILD)/bench/rows-cpu/rows: tests/bench/rows.cu tests/bench/rows_kernels.h tests/bench/bench.h $(bench_headers) $(BUILD)/bench/with-cpu
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARNINGS) -I$(FA_INCLUDE) -x c $< -o $@ -lm -ldl -pthread

$(BUILD)/bench/rows-gpu/rows: tests/bench/rows.cu tests/bench/rows_kernels.h tests/bench/bench.h $(bench_headers) $(BUILD)/bench/with-gpu
	@mkdir -p $(@D)
	$(bench_nvcc) $(BENCH_NVCCFLAGS) $(call gpu_code,$(BENCH_ARCH)) -I$(FA_INCLUDE) -x cu $< -o $@ -ldl

$(BUILD)/bench/bench-cpu: tests/bench/bench.cu tests/bench/bench.h tests/bench/peak.h $(bench_headers) $(BUILD)/bench/with-cpu
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARNINGS) -I$(FA_INCLUDE) -x c $< -o $@ -lm -ldl -pthread

$(BUILD)/bench/bench-gpu: tests/bench/bench.cu tests/bench/bench.h $(bench_headers) $(BUILD)/bench/with-gpu
	@mkdir -p $(@D)
	$(bench_nvcc) $(BENCH_NVCCFLAGS) $(call gpu_code,$(BENCH_ARCH)) -I$(FA_INCLUDE) -x cu $< -o $@ -ldl -lpthread

.PHONY: bench bench-build bench-cpu bench-gpu bench-compare bench-clean-results
.PHONY: bench-rows-cpu bench-rows-gpu bench-rows-compare
ifneq ($(filter bench%,$(MAKECMDGOALS)),)
ifneq ($(bench_unknown),)
$(error bench: no such kernel as $(bench_unknown) in BENCH=$(BENCH): there are attention $(bench_kernels))
endif
$(foreach name,BENCH BENCH_CPU BENCH_DIMS,$(if $(strip $($(name))),,$(error bench: $(name) is empty: leave it out, or name what is to be timed)))
ifeq ($(filter default full,$(GRID)),)
$(error bench: GRID is '$(GRID)': default or full is needed)
endif
endif
ifneq ($(filter bench-rows-%,$(MAKECMDGOALS)),)
ifeq ($(bench_rows),)
$(error bench: BENCH=$(BENCH) names no kernel that works row by row, which $(filter bench-rows-%,$(MAKECMDGOALS)) needs: there are $(bench_kernels))
endif
endif
ifneq ($(filter bench bench-build,$(MAKECMDGOALS)),)
bench_machines := cpu $(if $(NVCC),$(if $(GPU),gpu)) $(if $(TORCH),compare)
bench_parts := $(if $(bench_attention),$(bench_machines)) $(if $(bench_rows),$(bench_machines:%=rows-%))
bench_left_out := $(if $(NVCC),$(if $(GPU),,no GPU ($(no_gpu)): the GPU was not timed.), \
    no nvcc (neither on PATH nor as NVCC=...): the GPU was not timed.) \
    $(if $(TORCH),,no python3 with PyTorch: the comparison with it was left out.)
endif

# Compiles as many at a time as make may, then runs one part after the other, so that nothing disturbs what is timed.
bench-build: $(BUILD)/bench/plot \
    $(if $(filter cpu,$(bench_parts)),$(bench_cpu_so) $(BUILD)/bench/bench-cpu) \
    $(if $(filter gpu,$(bench_parts)),$(bench_gpu_so) $(BUILD)/bench/bench-gpu) \
    $(if $(filter rows-cpu,$(bench_parts)),$(bench_rows_cpu_so) $(BUILD)/bench/rows-cpu/rows) \
    $(if $(filter rows-gpu,$(bench_parts)),$(bench_rows_gpu_so) $(BUILD)/bench/rows-gpu/rows)
bench: bench-build bench-clean-results
	@for part in $(bench_parts); do $(MAKE) --no-print-directory bench-$$part || exit 1; done
	@for reason in $(if $(strip $(bench_left_out)),"$(strip $(bench_left_out))"); do echo "bench: $$reason"; done
	@{ printf '{'; sep=; for part in cpu gpu compare rows-cpu rows-gpu rows-compare; do if [ -f $(BUILD)/bench/$$part.json ]; then \
	    printf '%s"%s":\n' "$$sep" $$part; cat $(BUILD)/bench/$$part.json; sep=','; fi; done; \
	    printf '}\n'; } > $(BUILD)/bench.json
	@cat $(BUILD)/bench/*.tsv | $(BUILD)/bench/plot > $(BUILD)/bench.svg
	@echo "bench: wrote $(BUILD)/bench.json, $(BUILD)/bench.svg and tables in $(BUILD)/bench/*.md"

bench-clean-results:
	@rm -f $(BUILD)/bench/*.json $(BUILD)/bench/*.tsv $(BUILD)/bench/*.md $(BUILD)/bench.json $(BUILD)/bench.svg

.PHONY: bench-needs-gpu bench-needs-torch bench-gpu-run bench-rows-gpu-run
bench-needs-gpu:
	@test -n "$(NVCC)" || { echo "bench: the GPU's part needs nvcc, on PATH or as NVCC=..." >&2; exit 1; }
	@test -n "$(GPU)" || { echo "bench: the GPU's part needs a GPU: $(no_gpu)" >&2; exit 1; }
bench-needs-torch:
	@test -n "$(TORCH)" || { echo "bench: this part needs a python3 with PyTorch, as PYTHON=..." >&2; exit 1; }

bench-cpu: $(bench_cpu_so) $(BUILD)/bench/bench-cpu $(BUILD)/bench/plot
	$(BUILD)/bench/bench-cpu --grid $(GRID) --repeat $(BENCH_REPEAT) \
	    --json $(BUILD)/bench/cpu.json --tsv $(BUILD)/bench/cpu.tsv \
	    --markdown $(BUILD)/bench/cpu.md $(bench_cpu_so)

bench-gpu: bench-needs-gpu
	@$(MAKE) --no-print-directory bench-gpu-run
bench-gpu-run: $(bench_gpu_so) $(BUILD)/bench/bench-gpu $(BUILD)/bench/plot
	$(BUILD)/bench/bench-gpu --repeat $(BENCH_REPEAT) \
	    --json $(BUILD)/bench/gpu.json --tsv $(BUILD)/bench/gpu.tsv \
	    --markdown $(BUILD)/bench/gpu.md $(bench_gpu_so)

# PyTorch brings what it needs of CUDA, and may find a GPU for which nothing of ours can be compiled.
bench_device = $(if $(and $(NVCC),$(GPU)),,--device cpu)
bench-compare: bench-needs-torch
	$(PYTHON) tests/bench/compare.py $(bench_device) --grid $(GRID) --dims $(subst $(bench_space),$(bench_comma),$(strip $(BENCH_DIMS))) \
	    --repeat $(BENCH_REPEAT) --json $(BUILD)/bench/compare.json --tsv $(BUILD)/bench/compare.tsv \
	    --markdown $(BUILD)/bench/compare.md

bench_rows_results = --repeat $(BENCH_REPEAT) --json $(BUILD)/bench/$1.json --tsv $(BUILD)/bench/$1.tsv \
    --markdown $(BUILD)/bench/$1.md

bench-rows-cpu: $(bench_rows_cpu_so) $(BUILD)/bench/rows-cpu/rows
	$(BUILD)/bench/rows-cpu/rows --grid $(GRID) $(call bench_rows_results,rows-cpu) $(bench_rows_cpu_so)

bench-rows-gpu: bench-needs-gpu
	@$(MAKE) --no-print-directory bench-rows-gpu-run
bench-rows-gpu-run: $(bench_rows_gpu_so) $(BUILD)/bench/rows-gpu/rows
	$(BUILD)/bench/rows-gpu/rows $(call bench_rows_results,rows-gpu) $(bench_rows_gpu_so)

bench-rows-compare: bench-needs-torch
	$(PYTHON) tests/bench/compare_rows.py $(bench_device) --grid $(GRID) --kernels $(subst $(bench_space),$(bench_comma),$(strip $(bench_rows))) \
	    $(call bench_rows_results,rows-compare)
