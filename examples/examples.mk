# Targets of the examples: `make examples` and `make run`. Included by the Makefile, whose CC, CFLAGS, WARNINGS and BUILD
# it uses, with NVCC, GPU and gpu_arch of gpu.mk. Every program is one .cu file: with nvcc and a GPU it is built for that, else by CC for
# the CPU.

NVCCFLAGS ?= -O3
IMAGE     ?=
ARGS      ?=
# The photo's name as one word of the shell's, whatever characters it has ($(value): make would look for variables behind its dollars).
photo      = '$(subst ','\'',$(or $(value IMAGE),examples/images/coffee.ppm))'

ladder         := $(basename $(notdir $(sort $(wildcard examples/[0-9]*.cu))))
example_sources := $(wildcard examples/*.cu examples/*.h) $(shell find include/fa -name '*.h')
# What they were compiled with.
examples_with_cpu = $(CC) $(CFLAGS) $(WARNINGS)
examples_with_gpu = $(NVCC) $(NVCCFLAGS) $(gpu_arch)
$(BUILD)/examples/with-%: FORCE
	$(call note,$(examples_with_$*))

# "gpu" where these programs can be built for and run on one, else "cpu"; examples-gpu and examples-cpu have their own.
example_kind    = $(if $(and $(NVCC),$(GPU)),gpu,cpu)

.PHONY: examples examples-cpu examples-gpu examples-compile run

$(BUILD)/examples/%.cpu: examples/%.cu $(example_sources) $(BUILD)/examples/with-cpu
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARNINGS) -Iinclude -x c $< -o $@ -pthread -lm

$(BUILD)/examples/%.gpu: examples/%.cu $(example_sources) $(BUILD)/examples/with-gpu
	$(if $(NVCC),,$(error nvcc was not found, which examples for a GPU need: put it on PATH, or write NVCC=/path/to/nvcc; make examples-cpu does without))
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 $(NVCCFLAGS) $(call gpu_code,$(gpu_arch)) -Iinclude $< -o $@

examples:
	@$(MAKE) --no-print-directory examples-$(example_kind)

examples-gpu: example_kind = gpu
examples-gpu: examples-compile
	$(if $(GPU),$(run_examples),@echo "examples: they were compiled for a GPU but not run: $(no_gpu)" >&2; exit 1)

examples-cpu: example_kind = cpu
examples-cpu: $(ladder:%=$(BUILD)/examples/%.cpu) $(BUILD)/examples/denoise.cpu $(if $(NVCC),examples-compile)
	$(run_examples)
	@echo "On the CPU: $(if $(NVCC),$(if $(GPU),,no GPU was found; )for a GPU they were compiled but not run,nvcc was not found). Left out: 04 to 09, a GPU's own."
	@echo "24 and 36 use what the compiler is told of the CPU: make examples BUILD=$(BUILD)/native CFLAGS=\"-O3 -march=native\" shows them at their best."

# See that everything compiles for a GPU, on the CPU too where nvcc is.
examples-compile: $(ladder:%=$(BUILD)/examples/%.gpu) $(BUILD)/examples/denoise.gpu

# Two tables, since rows (30 and on) count bytes: the programs in order, of which only the first of a table prints its heading. Then
# the denoiser in its quick mode.
define run_examples
@failed=; \
table() { \
    unset EXAMPLES_NO_HEADING; \
    for name; do \
        $(BUILD)/examples/$$name.$(example_kind) || failed="$$failed $$name"; \
        EXAMPLES_NO_HEADING=1; export EXAMPLES_NO_HEADING; \
    done; \
    echo; \
}; \
table $(filter-out 3%,$(ladder)); table $(filter 3%,$(ladder)); \
$(BUILD)/examples/denoise.$(example_kind) --window 10 --out $(BUILD)/examples $(photo) || failed="$$failed denoise"; \
if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi
endef

run:
	@$(MAKE) --no-print-directory --silent $(BUILD)/examples/denoise.$(example_kind)
	@$(BUILD)/examples/denoise.$(example_kind) --out $(BUILD)/run $(ARGS) $(photo)
