# gpu.mk: nvcc, the GPU at hand, and what to compile for it; and what notes how it was compiled. Included by the Makefile and by
# tests/tests.mk, which also works alone. Everything is asked for once, when first needed.
#
# NVCC=      leaves out what needs nvcc

ifneq ($(words $(BUILD)),1)
$(error BUILD is '$(BUILD)': one folder is needed, without blanks in its name)
endif
.DELETE_ON_ERROR:

# The end of a recipe that writes $@.new: what it makes is new only where it differs.
if_new    = if diff $@.new $@ >/dev/null 2>&1; then rm $@.new; else mv $@.new $@; fi
# $(call note,TEXT): the recipe of a file that says by what compiler and with what flags those that depend on it are made: with others
# they are made anew.
define note
@mkdir -p $(@D)
@printf '%s\n' '$(subst ','\'',$1)' > $@.new
@$(if_new)
endef
.PHONY: FORCE

# It is of no use without g++, unless it was told to take another (NVCC_CCBIN).
ifeq ($(origin NVCC),undefined)
NVCC     := $(if $(NVCC_CCBIN)$(shell command -v g++ 2>/dev/null),$(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc)))
endif

# Not empty where nvidia-smi lists a GPU that the headers are for.
GPU       = $(eval GPU := $(if $(gpu_old),,$(shell nvidia-smi -L 2>/dev/null | grep GPU | head -n 1)))$(GPU)
no_gpu    = nvidia-smi lists none of compute capability 8.0 or newer
# Its compute capability, as 90.
gpu_cap   = $(eval gpu_cap := $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .))$(gpu_cap)
# nvcc's name for it: with the instructions that it alone has, which -arch=native leaves out. Without a GPU, one that is to compile.
gpu_arch  = $(if $(and $(GPU),$(gpu_cap)),sm_$(gpu_cap)$(if $(filter 90 100,$(gpu_cap)),a),sm_90a)
# Not empty where there is one, but it is older.
gpu_old   = $(if $(gpu_cap),$(shell [ $(gpu_cap) -lt 80 ] 2>/dev/null && echo 1))
# Machine code for one architecture. -arch=sm_90a would compile PTX of compute_90 besides, and takes 1.6 times as long.
gpu_code  = -gencode arch=$(1:sm_%=compute_%),code=$1
