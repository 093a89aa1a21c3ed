/**
 * @file sm90/ops.h
 * @brief The instruction layer of sm_90a, in addition to that of sm_80: barriers with a phase, copies by tensor maps,
 * products of a warpgroup.
 *
 * One small function a machine instruction, named after the PTX ISA. Shared-memory addresses are 32-bit offsets in the
 * shared window. Where an operand must be an immediate, the function is a macro.
 */
#ifndef FA_ARCH_SM90_OPS_H
#define FA_ARCH_SM90_OPS_H

#include <fa/arch/sm90/same.h>
#include <fa/arch/sm90/wgmma.h>

/** @cond PRIVATE */
/* The way back of ldmatrix: four 8 x 8 matrices of 16-bit elements from fragments to rows, of which each lane has the
 * address of one (PTX ISA, stmatrix). */
FA__DEVICE void fa_sm90_stmatrix(uint32_t address, const uint32_t *from) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

/* What sm_90a alone has. nvcc -arch=sm_90a compiles for the generic compute_90 as well, only to keep it as PTX: there,
 * such an instruction is a call of a function that does not exist. The assembler of any real GPU refuses that, and
 * says its name. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FA__SM90A(...) asm volatile(__VA_ARGS__)
#else
extern "C" __device__ void FA_ARCH_90_needs_nvcc_arch_sm_90a(void);
#define FA__SM90A(...) FA_ARCH_90_needs_nvcc_arch_sm_90a()
#endif

/* Does nothing, since no thread's number is negative. But the assembler takes it for a way out of the kernel: it
 * moves nothing across one, and waits there for all products. */
FA__DEVICE void fa_sm90_keep_apart(int thread) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.s32 p, %0, 0;\n\t@p exit;\n\t}" ::"r"(thread) : "memory");
}

/* The value of lane 0, for all: afterwards the compiler may take it for the same in the whole warp. */
FA__DEVICE int fa_sm90_uniform(int x) { return __shfl_sync(0xFFFFFFFFu, x, 0); }

/* Adds 1 to a counter in memory, once for the whole warp, and returns to all lanes what it was. */
FA__DEVICE uint32_t fa_sm90_take_number(uint32_t *counter) {
    uint32_t number = 0;
    if (threadIdx.x % 32 == 0) number = atomicAdd(counter, 1u);
    return __shfl_sync(0xFFFFFFFFu, number, 0);
}

/* ---- between the blocks of a cluster ---- */

/* Sends a float to where `to` is in another block of the cluster, whose `barrier` counts its bytes (PTX ISA,
 * st.async). */
FA__DEVICE void fa_sm90_send(uint32_t to, float x, uint32_t barrier, int block) {
    asm volatile("{\n.reg .b32 there, counter;\n"
                 "mapa.shared::cluster.u32 there, %0, %3;\n"
                 "mapa.shared::cluster.u32 counter, %2, %3;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [there], %1, [counter];\n}" ::"r"(to),
                 "f"(x), "r"(barrier), "r"(block)
                 : "memory");
}

/* ---- barriers in shared memory that count arrivals and bytes (PTX ISA, mbarrier) ---- */

FA__DEVICE void fa_sm90_mbarrier_init(uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* Makes initialised barriers visible to the copy engine. */
FA__DEVICE void fa_sm90_mbarrier_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
FA__DEVICE void fa_sm90_mbarrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* The same if a condition holds, without a branch. */
FA__DEVICE void fa_sm90_mbarrier_arrive_if(uint32_t barrier, int condition) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(barrier), "r"(condition) : "memory");
}
/* Arrives, and adds the bytes that copies will bring to what the phase waits for. */
FA__DEVICE void fa_sm90_mbarrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
#define FA__MBARRIER_WAIT(order)                                                                                             \
    asm volatile("{\n.reg .pred done;\nagain: mbarrier.try_wait.parity" order ".shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" \
                 ::"r"(barrier), "r"(parity)                                                                                   \
                 : "memory")
/* Returns when the phase of that parity has completed. */
FA__DEVICE void fa_sm90_mbarrier_wait(uint32_t barrier, int parity) { FA__MBARRIER_WAIT(""); }
/* The same, where what it stands for was sent by other thread blocks of the cluster. */
FA__DEVICE void fa_sm90_mbarrier_wait_cluster(uint32_t barrier, int parity) { FA__MBARRIER_WAIT(".acquire.cluster"); }
#undef FA__MBARRIER_WAIT

/* Whether the phase of that parity has completed. */
FA__DEVICE int fa_sm90_mbarrier_test(uint32_t barrier, int parity) {
    int done;
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.s32 %0, 1, 0, done;\n"
                 "}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}
/* What is at an address of shared memory, or 0 unless a condition holds: without a branch. */
FA__DEVICE int fa_sm90_load_if(uint32_t address, int condition) {
    int x;
    asm volatile("{\n"
                 ".reg .pred holds;\n"
                 "setp.ne.s32 holds, %2, 0;\n"
                 "mov.b32 %0, 0;\n"
                 "@holds ld.shared.b32 %0, [%1];\n"
                 "}"
                 : "=&r"(x)
                 : "r"(address), "r"(condition)
                 : "memory");
    return x;
}

/* ---- named barriers of some of a block's threads (PTX ISA, bar) ---- */

FA__DEVICE void fa_sm90_bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
FA__DEVICE void fa_sm90_bar_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

/* ---- copies of boxes of a tensor by the copy engine (PTX ISA, cp.async.bulk.tensor) ---- */

FA__DEVICE void fa_sm90_prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/* The box at coordinates c0 (contiguous) to c3 into shared memory; its bytes complete at the barrier. One thread
 * calls. */
FA__DEVICE void fa_sm90_load_box(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
/* The same box into the L2 cache only. */
FA__DEVICE void fa_sm90_prefetch_box(const void *map, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
/* The way back, from shared memory to the box, but for what lies outside the tensor; if a condition holds, without a
 * branch. It belongs to the group of copies that the thread closes next. */
FA__DEVICE void fa_sm90_store_box_if(uint32_t from, const void *map, int condition, int c0, int c1, int c2, int c3) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n"
                 "@p cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%1, {%3, %4, %5, %6}], [%0];\n}" ::"r"(from),
                 "l"(map), "r"(condition), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
FA__DEVICE void fa_sm90_store_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Returns when the thread's stores have read shared memory. */
FA__DEVICE void fa_sm90_store_read(void) { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
/* Orders what the caller has written to shared memory, and its copies that have landed, before what the copy engine
 * and wgmma read of it after a barrier, and what it has read before what the engine then writes (PTX ISA, "Async
 * proxy"). */
FA__DEVICE void fa_sm90_proxy_fence(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* All threads of the block; what they have written is there for the copy engine and wgmma, too. */
FA__DEVICE void fa_sm90_barrier(void) {
    fa_sm90_proxy_fence();
    __syncthreads();
}

/* ---- registers of a warpgroup: all its warps call (PTX ISA, setmaxnreg) ---- */

#define fa_sm90_registers_raise(n) FA__SM90A("setmaxnreg.inc.sync.aligned.u32 " FA__STR(n) ";")
#define fa_sm90_registers_lower(n) FA__SM90A("setmaxnreg.dec.sync.aligned.u32 " FA__STR(n) ";")

/* ---- products of a warpgroup (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions")
 * ---- */

/* Before the first product that touches registers which the threads have written. */
FA__DEVICE void fa_sm90_wgmma_fence(void) { FA__SM90A("wgmma.fence.sync.aligned;" ::: "memory"); }
FA__DEVICE void fa_sm90_wgmma_commit(void) { FA__SM90A("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Returns when all but the latest `pending` (at most 2) groups are done. */
FA__DEVICE void fa_sm90_wgmma_wait(int pending) {
    if (pending <= 0) FA__SM90A("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    else if (pending == 1) FA__SM90A("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    else FA__SM90A("wgmma.wait_group.sync.aligned 2;" ::: "memory");
}

/* A matrix descriptor from its halves (PTX ISA, "Matrix Descriptor Format"). */
FA__DEVICE uint64_t fa_sm90_descriptor(uint32_t low, uint32_t high) {
    uint64_t d;
    asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(low), "r"(high));
    return d;
}

#define FA__SM90_INPUT0(a, b, c, d, e, f) a
#define FA__SM90_INPUT1(a, b, c, d, e, f) b
#define FA__SM90_INPUT2(a, b, c, d, e, f) c
#define FA__SM90_INPUT3(a, b, c, d, e, f) d
#define FA__SM90_INPUT4(a, b, c, d, e, f) e
#define FA__SM90_INPUT5(a, b, c, d, e, f) f
#define FA__SM90_INPUT(i, list) FA__SM90_INPUT_(i, list)
#define FA__SM90_INPUT_(i, ...) FA__SM90_INPUT##i(__VA_ARGS__)
#define FA__SM90_SHAPE(n, type) "wgmma.mma_async.sync.aligned.m64n" FA__STR(n) "k16.f32." type "." type " {" FA__CAT(FA__SM90_NAMES_, n) "}, "
#define FA__SM90_ACCUMULATE(n, i) "{\n.reg .pred p;\nsetp.ne.b32 p, " FA__SM90_INPUT(i, FA__CAT(FA__SM90_INPUTS_, n)) ", 0;\n"

/* d (64 x n) = a (64 x 16) b (16 x n), plus d if `accumulate`; type "bf16" or "f16". a and b are descriptors; b_major
 * "0": n rows of k, "1": k rows of n. */
#define fa_sm90_wgmma_shared(n, type, b_major, d, a, b, accumulate)                                                         \
    FA__SM90A(FA__SM90_ACCUMULATE(n, 2) FA__SM90_SHAPE(n, type) FA__SM90_INPUT(0, FA__CAT(FA__SM90_INPUTS_, n)) ", "        \
                  FA__SM90_INPUT(1, FA__CAT(FA__SM90_INPUTS_, n)) ", p, 1, 1, 0, " b_major ";\n}"                           \
              : FA__CAT(FA__SM90_OUT_, n)(d)                                                                                \
              : "l"(a), "l"(b), "r"((int)(accumulate)))
/* The same with a in four registers a thread, as mma.sync has it. */
#define fa_sm90_wgmma_registers(n, type, b_major, d, a, b, accumulate)                                                      \
    FA__SM90A(FA__SM90_ACCUMULATE(n, 5) FA__SM90_SHAPE(n, type) "{" FA__SM90_INPUT(0, FA__CAT(FA__SM90_INPUTS_, n)) ", "    \
                  FA__SM90_INPUT(1, FA__CAT(FA__SM90_INPUTS_, n)) ", " FA__SM90_INPUT(2, FA__CAT(FA__SM90_INPUTS_, n)) ", " \
                  FA__SM90_INPUT(3, FA__CAT(FA__SM90_INPUTS_, n)) "}, " FA__SM90_INPUT(4, FA__CAT(FA__SM90_INPUTS_, n))     \
                  ", p, 1, 1, " b_major ";\n}"                                                                              \
              : FA__CAT(FA__SM90_OUT_, n)(d)                                                                                \
              : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "r"((int)(accumulate)))
/* Ties an accumulator to this place: what reads it stays behind the wait before it. */
#define fa_sm90_wgmma_arrived(n, d) asm volatile("" : FA__CAT(FA__SM90_OUT_, n)(d)::"memory")
/** @endcond */

#endif
