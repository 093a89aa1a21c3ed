/* bind.h: maps the generic names of the templates to one architecture (no guard: a template includes it at
 * its start and arch/unbind.h at its end).
 *
 * Reads FA_ARCH (FA_CPU, 80, 90; without it nvcc means 80 and other compilers FA_CPU) and defines
 *
 *   FA__ARCH            FA_CPU, 80 or 90
 *   FA__FN              how a function of a kernel is declared
 *   FA__FN_CALLED       the same of one that is long and used in many places: on the CPU it is called, not inlined
 *   FA__TARGET          attribute that lets a function use the instructions of the CPU that it is compiled for
 *   FA__UNROLL          unrolls the next loop, where fragments live in registers
 *   FA__ROLL            keeps it a loop
 *   FA__ROW_OWNERS      lanes that share a row of a fragment (the reduction across owners)
 *   FA__CHAINS          independent chains of a row reduction
 *   FA__LANES           threads of a warp
 *   FA__FRAGMENT_ROWS(M, warps), FA__FRAGMENT_COLS(N)  what an owner holds of an M x N product
 *   FA__AT(r, c, R, C)  where element (r, c) of an R x C fragment lies in its array
 *   FA__OP(name)        an operation of the instruction layer: fa_cpu_name, fa_sm80_name, fa_sm90_name
 *   FA__LAYER(part)     the architecture's implementation of a template: tile, mma, row, reduce
 *
 * To add an architecture, add its case here, overriding what differs (doc/porting.md). */
#include <fa/arch/math.h>
#include <fa/arch/targets.h>

#if defined(FA__BIND) /* by a template that has several */
#define FA__ARCH FA__BIND
#elif defined(FA_ARCH)
#define FA__ARCH (FA_ARCH + 0) /* 0 if it is defined as nothing */
#elif defined(__CUDACC__)
#define FA__ARCH 80
#else
#define FA__ARCH FA_CPU
#endif

FA__NOT_PACKED;
FA__STATIC_ASSERT(sizeof FA__STR(FA_NAME) > 1, "fa: FA_NAME is empty: define it as the prefix of every generated name");

/* What cannot be is said once, and the CPU stands in, so that one mistake gives one message. */
#if FA__ARCH == 80 && !defined(__CUDACC__)
FA__REQUIRE(0, "FA_ARCH 80 needs nvcc: compile this file with nvcc, or write FA_ARCH FA_CPU");
#define FA__ARCH_STANDS_IN
#elif FA__ARCH == 90 && !defined(__CUDACC__)
FA__REQUIRE(0, "FA_ARCH 90 needs nvcc: compile this file with nvcc -arch=sm_90a, or write FA_ARCH FA_CPU");
#define FA__ARCH_STANDS_IN
#elif FA__ARCH == 90 && !FA__COMPILES_90
FA__REQUIRE(0, "FA_ARCH 90 needs the instructions of sm_90a: compile with -arch=sm_90a (in CMake CMAKE_CUDA_ARCHITECTURES 90a), or write FA_ARCH 80");
#define FA__ARCH_STANDS_IN
#elif FA__ARCH == 100
FA__REQUIRE(0, "FA_ARCH 100 has no schedule of its own in this version: write FA_ARCH 80, which runs on these GPUs");
#define FA__ARCH_STANDS_IN
#elif FA__ARCH != 80 && FA__ARCH != 90 && FA__ARCH != FA_CPU
FA__REQUIRE(0, "FA_ARCH is " FA__STR(FA_ARCH) ": write FA_CPU, 80 or 90, or leave it out");
#define FA__ARCH_STANDS_IN
#endif
#if defined(FA__ARCH_STANDS_IN)
#undef FA__ARCH
#define FA__ARCH FA_CPU
#endif

#if FA__ARCH == 80 || FA__ARCH == 90
#define FA__FN static __device__ __forceinline__ FA_UNUSED
#define FA__FN_CALLED FA__FN
#define FA__TARGET
#define FA__UNROLL _Pragma("unroll")
#define FA__ROLL _Pragma("unroll 1")
#define FA__ROW_OWNERS 4
#define FA__CHAINS 4
#define FA__LANES 32
#define FA__FRAGMENT_ROWS(M, warps) ((M) / (warps) / 8)
#define FA__FRAGMENT_COLS(N) ((N) / 4)
#if FA__ARCH == 80
#include <fa/arch/sm80/ops.h>
#define FA__AT(r, c, R, C) ((r) * (C) + (c))
#define FA__OP(name) fa_sm80_##name
#define FA__LAYER(part) <fa/arch/sm80/part.h>
#else
#include <fa/arch/sm90/ops.h>
#define FA__AT(r, c, R, C) ((c) / 2 * 4 + (r) * 2 + (c) % 2) /* as wgmma numbers its accumulators */
#define FA__OP(name) fa_sm90_##name
#define FA__LAYER(part) <fa/arch/sm90/part.h>
#endif
#else
#include <fa/arch/cpu/ops.h>
#define FA__FN static inline __attribute__((__always_inline__, __unused__)) FA__TARGET
#define FA__FN_CALLED static __attribute__((FA__NOINLINE, __unused__)) FA__TARGET
#define FA__TARGET FA__CPU_TARGET(FA__ISA)
#define FA__UNROLL
#define FA__ROLL
#define FA__ROW_OWNERS 1
#define FA__CHAINS 1
#define FA__LANES 1
#define FA__FRAGMENT_ROWS(M, warps) (M)
#define FA__FRAGMENT_COLS(N) (N)
#define FA__AT(r, c, R, C) ((c) * (R) + (r))
#define FA__OP(name) fa_cpu_##name
#define FA__LAYER(part) <fa/arch/cpu/part.h>
#endif
