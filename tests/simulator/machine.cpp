/* machine.cpp: a GPU of compute capability 8.0 (MACHINE_MAJOR and MACHINE_MINOR: or 8.9, or 9.0) on the CPU, for
 * tests: kernels are compiled by the host's compiler, with the library's instruction layer replaced (include/), and
 * run here.
 *
 * A block's threads are fibers that give each other the turn where a warp or the block meets; the blocks of a
 * cluster take turns, too, with shared memory at the same place, which is put aside meanwhile. A thread runs as far
 * as it can, and the order of blocks, of warps and of lanes changes by chance, as does when a copy lands, or a
 * product is computed: at once, or only when it is waited for. So a barrier or a wait that is missing is seen, and
 * threads that wait for each other are. Shared memory and new device memory begin as NaN; behind both it is noticed
 * if somebody reads or writes. There is no weak memory order, of fences only the one between stmatrix and the copy
 * engine, and no clock. */
#include "machine.h"

#ifndef MACHINE_MAJOR
#define MACHINE_MAJOR 8
#endif
#ifndef MACHINE_MINOR
#define MACHINE_MINOR 0
#endif

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

enum {
    PARAMETER_BYTES = MACHINE_MAJOR == 9 ? 2048 : 1024, /* copied for every thread of a block */
    THREADS = 1024,
    STACK_BYTES = 256 * 1024,
    PAGE = 4096,
    SHARED_OF_BLOCK = (MACHINE_MAJOR == 9 ? 227 : MACHINE_MINOR ? 99 : 163) * 1024,
    SHARED_OF_PROCESSOR = SHARED_OF_BLOCK + 1024,
    PROCESSORS = 3,
    FENCE = 64, /* bytes behind a block's shared memory */
    NAMEABLE = 256 * 1024, /* bytes: a matrix descriptor has 18 bits of an address */
    COPIES = 256,
    NAMED = 16, /* barriers of some of a block's threads */
    CLUSTERED = 8, /* blocks of a cluster */
    BOX_BYTES = 128, /* of a row of a box */
    POISONED = 256 << 20 /* bytes; of more only what is used takes memory */
};

dim3 threadIdx, blockIdx, blockDim, gridDim;
thread_local __align__(1024) unsigned char fa__shared[SHARED_OF_BLOCK + FENCE];

void machine_must(int condition, const char *what) {
    if (condition) return;
    printf("Bail out! simulator: block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, what);
    fflush(stdout);
    _Exit(1);
}

static uint64_t chance_state;
static uint32_t chance(void) { /* xorshift64* (Vigna, arXiv 1402.6246) */
    if (!chance_state) {
        const char *seed = getenv("FA_SEED");
        chance_state = (seed ? strtoull(seed, NULL, 10) : 1) * 2 + 1;
    }
    chance_state ^= chance_state >> 12, chance_state ^= chance_state << 25, chance_state ^= chance_state >> 27;
    return (uint32_t)((chance_state * 0x2545F4914F6CDD1DULL) >> 32);
}

/* ---- threads ---- */

struct __align__(64) parameters {
    unsigned char bytes[PARAMETER_BYTES];
};
typedef void (*kernel_function)(parameters); /* of which a kernel reads what it has */

/* Where a thread goes on, or who gives it the turn. context_new(): at the beginning of a function, on a stack whose
 * end is a multiple of 16. context_switch() keeps this place, and goes on at the other. In assembly where there is
 * some, since most of the time is spent on these: by setjmp() and longjmp() tests take 1.3 times as long, and
 * swapcontext() asks the system each time. */
#if defined(__x86_64__)
typedef void *context; /* its stack, where what a call must leave as it is lies on top */
extern "C" void context_switch(context *own, const context *other);
__asm__(".text\n.globl context_switch\n.type context_switch, @function\ncontext_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq (%rsi), %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size context_switch, .-context_switch\n");
static void context_new(context *of, char *, char *end, void (*begin)(void)) {
    uintptr_t *top = (uintptr_t *)(void *)end - 8;
    memset(top, 0, 8 * sizeof *top); /* six registers, where to begin, and nowhere to return to */
    top[6] = (uintptr_t)begin;
    *of = top;
}
#else
typedef ucontext_t context;
static void context_switch(context *own, const context *other) { swapcontext(own, other); }
static void context_new(context *of, char *stack, char *end, void (*begin)(void)) {
    getcontext(of);
    of->uc_stack.ss_sp = stack;
    of->uc_stack.ss_size = (size_t)(end - stack);
    makecontext(of, begin, 0);
}
#endif

enum thread_state : unsigned char { READY, MEETS_WARP, SHOWS_WARP, MEETS_BLOCK, WAITS, ENDED };
struct copy {
    unsigned char *to;
    const void *from;
    int size, bytes, group; /* of what is written; of what is read, after which zeros follow */
};
struct written { /* 16 bytes of shared memory */
    uint32_t at;
    int fenced; /* for the copy engine */
};
typedef std::vector<std::shared_ptr<written>> writings;
struct thread {
    context goes_on;
    int shared, group, copies;
    int met; /* the cluster: how often before its arrival, or -1 if it waits for nobody */
    copy later[COPIES];
    std::function<int()> over; /* what it waits for */
    std::deque<std::pair<int, std::function<void()>>> products; /* with their groups */
    int product_group;
    std::vector<std::function<void()>> stores;
    size_t committed; /* of the stores */
    writings unfenced; /* what it has written, or learnt of at barriers, since its last fence */
};
struct named_barrier {
    int arrived, threads, generation;
};
struct block {
    thread_state states[THREADS]; /* together: nothing is looked at more often */
    thread *threads[THREADS];
    machine_words shown[THREADS / 32][2][32];
    named_barrier named[NAMED];
    std::vector<std::function<void()>> coming; /* to its shared memory: boxes, and what other blocks send */
    writings all; /* of its threads */
    std::map<uint32_t, writings> told; /* for each mbarrier, what its arrivals bring: unfenced writings (of later phases, too, so that a missing fence may be overlooked) */
    std::vector<unsigned char> aside;          /* its shared memory, while another block of the cluster has the turn */
    unsigned index;
    int ended;
};
static struct {
    block *blocks[CLUSTERED];
    unsigned count, threads, arrived;
    int met;
    size_t shared_bytes; /* dynamic, of a block */
} cluster;
static block *own; /* that has the turn */
static thread *current;
static context scheduler;
static kernel_function running;
static const parameters *running_on;

static void give_turn(thread_state state) {
    own->states[threadIdx.x] = state;
    context_switch(&current->goes_on, &scheduler);
}
static void wait_until(const std::function<int()> &over) {
    if (over()) return;
    current->over = over;
    give_turn(WAITS);
}
static void live(void) {
    for (;;) {
        running(*running_on);
        machine_must(current->products.empty(), "the kernel ends before its products");
        machine_must(current->stores.empty(), "the kernel ends before what it stores has been read");
        give_turn(ENDED);
    }
}
static void turn(unsigned index) {
    current = own->threads[index];
    threadIdx.x = index;
    context_switch(&scheduler, &current->goes_on);
}
static thread *thread_of(unsigned index) {
    if (own->threads[index]) return own->threads[index];
    thread *t = own->threads[index] = new thread();
    char *stack = (char *)mmap(NULL, STACK_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    machine_must(stack != MAP_FAILED && !mprotect(stack, PAGE, PROT_NONE), "no memory for a stack");
    /* Stacks end at different places of their pages, or all would meet in the same few sets of the cache. */
    context_new(&t->goes_on, stack + PAGE, stack + PAGE + STACK_BYTES - index * 17 % 64 * 64, live);
    return t;
}

/* Those who have met go on. */
static void go_on(unsigned first, unsigned end) {
    for (unsigned i = first; i < end; i++)
        if (own->states[i] != ENDED) own->states[i] = READY;
}
/* Runs a warp until nobody there can go on; returns whether somebody did. */
static int run_warp(unsigned first, unsigned end) {
    for (int went_on = 0;;) {
        const unsigned lanes = end - first, turned = chance() % lanes;
        unsigned alive = 0, warp = 0, shows = 0, block = 0, went = 0;
        for (unsigned i = 0; i < lanes; i++) {
            const unsigned index = first + (i + turned < lanes ? i + turned : i + turned - lanes);
            if (own->states[index] == READY || (own->states[index] == WAITS && own->threads[index]->over())) turn(index), went = went_on = 1;
            const thread_state now = own->states[index];
            alive += now != ENDED, warp += now == MEETS_WARP, shows += now == SHOWS_WARP, block += now == MEETS_BLOCK;
        }
        machine_must((warp > 0) + (shows > 0) + (block > 0) < 2, "lanes of a warp wait for the warp, others show it something, or wait for the block");
        machine_must(!(warp + shows) || alive == lanes, "lanes of a warp wait for others that have ended");
        if (warp == lanes || shows == lanes) go_on(first, end);
        else if (!went) return went_on;
    }
}

static void begin_block(void) {
    for (unsigned i = 0; i < cluster.threads; i++) {
        thread *t = thread_of(i);
        own->states[i] = READY;
        t->shared = t->group = t->copies = t->product_group = 0;
        t->met = -1;
        t->committed = 0;
        t->unfenced.clear();
    }
    memset(own->named, 0, sizeof own->named);
    own->all.clear();
    own->told.clear();
    own->ended = 0;
}
/* Gives each warp the turn once; returns whether anything happened. */
static int run_block(void) {
    const unsigned threads = cluster.threads, warps = (threads + 31) / 32, turned = chance() % warps, backwards = chance() & 1;
    int went_on = 0;
    for (unsigned i = 0; i < warps; i++) {
        const unsigned warp = ((backwards ? warps - 1 - i : i) + turned) % warps, end = 32 * warp + 32;
        went_on |= run_warp(32 * warp, end < threads ? end : threads);
    }
    while (!own->coming.empty() && (!went_on || chance() & 1)) {
        const size_t which = chance() % own->coming.size();
        const std::function<void()> arrive = own->coming[which];
        own->coming.erase(own->coming.begin() + (long)which);
        arrive();
        went_on = 1;
    }
    unsigned alive = 0, waiting = 0;
    for (unsigned i = 0; i < threads; i++) alive += own->states[i] != ENDED, waiting += own->states[i] == MEETS_BLOCK;
    machine_must(!waiting || alive == threads, "threads of a block wait for others that have ended");
    if (waiting == threads) go_on(0, threads), went_on = 1;
    own->ended = !alive;
    machine_must(alive || own->coming.empty(), "the block ends before what it has asked the copy engine for, or is sent, has come");
    for (const named_barrier &b : own->named) machine_must(alive || !b.arrived, "the block ends before all have come to a named barrier");
    return went_on;
}

int machine_lane(void) { return (int)(threadIdx.x & 31); }
void machine_warp_barrier(void) { give_turn(MEETS_WARP); }
void machine_barrier(void) { give_turn(MEETS_BLOCK); }
const machine_words *machine_share(const uint32_t *words, int count) {
    machine_words *all = own->shown[threadIdx.x / 32][current->shared++ & 1];
    memcpy(all[threadIdx.x & 31].word, words, 4 * (size_t)count);
    give_turn(SHOWS_WARP);
    return all;
}

/* ---- memory ---- */

/* Static shared variables are thread_local, as fa__shared is, and lie before or behind it among the program's
 * variables of this kind, in a section whose ends the linker names, if there are any. Addresses count all of these
 * first, and then dynamic shared memory, as a GPU's do. */
extern "C" const char __start_shared[] __attribute__((weak)), __stop_shared[] __attribute__((weak));
static struct {
    ptrdiff_t before, behind; /* bytes, multiples of 1024 */
    ptrdiff_t end;            /* from fa__shared on, of what lies behind it */
    unsigned char *variables;
} of_static;
static int find_static(struct dl_phdr_info *object, size_t, void *) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const unsigned char *begin = (const unsigned char *)object->dlpi_tls_data, *end = begin + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type != PT_TLS || !begin || fa__shared < begin || fa__shared >= end) continue;
        of_static.variables = (unsigned char *)begin + ((uintptr_t)__start_shared - object->dlpi_addr - object->dlpi_phdr[i].p_vaddr);
        of_static.before = fa__shared - begin;
        of_static.end = end - fa__shared;
        of_static.behind = (of_static.end - SHARED_OF_BLOCK + 1023) / 1024 * 1024; /* with the fence */
        return 1;
    }
    return 0;
}

static size_t static_bytes(void) { return (size_t)(__stop_shared - __start_shared); }
static void poison_shared(void) {
    if (static_bytes() > 0) memset(of_static.variables, 0xFF, static_bytes());
    memset(fa__shared, 0xFF, cluster.shared_bytes + FENCE);
}

uint32_t machine_address(const void *pointer) {
    const ptrdiff_t at = (const unsigned char *)pointer - fa__shared;
    machine_must(at >= -of_static.before && at < of_static.end, "an address of what is not shared memory");
    const ptrdiff_t address = of_static.before + (at < 0 ? at : at < SHARED_OF_BLOCK + FENCE ? at + of_static.behind : at - SHARED_OF_BLOCK);
    return (uint32_t)address;
}
unsigned char *machine_at(uint32_t address, int alignment) {
    const ptrdiff_t at = (ptrdiff_t)address - of_static.before;
    machine_must(at < of_static.behind + SHARED_OF_BLOCK + FENCE, "an address behind shared memory");
    return (unsigned char *)machine_aligned(fa__shared + (at < 0 ? at : at < of_static.behind ? at + SHARED_OF_BLOCK : at - of_static.behind), alignment);
}
const void *machine_aligned(const void *pointer, int alignment) {
    machine_must(((uintptr_t)pointer & (uintptr_t)(alignment - 1)) == 0, "an address that is not aligned");
    return pointer;
}

static void land(const copy *c) {
    memcpy(c->to, c->from, (size_t)c->bytes);
    memset(c->to + c->bytes, 0, (size_t)(c->size - c->bytes));
}
void machine_copy(unsigned char *to, const void *from, int size, int bytes) {
    const copy c = {to, machine_aligned(from, bytes ? size : 1), size, bytes, current->group};
    machine_must(size == 4 || size == 16, "a copy of other than 4 or 16 bytes");
    machine_must(bytes >= 0 && bytes <= size, "a copy of less than 0 bytes or more than its size");
    if (current->copies == COPIES || chance() & 1) land(&c);
    else current->later[current->copies++] = c;
}
void machine_copy_commit(void) { current->group++; }
void machine_copy_wait(int pending) {
    int left = 0;
    for (int i = 0; i < current->copies; i++) {
        if (current->later[i].group < current->group - pending) land(&current->later[i]);
        else current->later[left++] = current->later[i];
    }
    current->copies = left;
}

/* ---- barriers that count, the copy engine, products of a warpgroup ---- */

#define MBARRIER_MARK 0x5A3u
struct mbarrier { /* 8 bytes in shared memory */
    int32_t bytes;
    uint32_t pending : 9, arrivals : 9, phase : 1, mark : 13;
};
static mbarrier *mbarrier_at(uint32_t address) {
    mbarrier *b = (mbarrier *)(void *)machine_at(address, 8);
    machine_must(b->mark == MBARRIER_MARK, "an mbarrier that nobody has initialised");
    return b;
}
static void mbarrier_ends(mbarrier *b) {
    if (b->pending) return;
    machine_must(b->bytes >= 0, "more bytes at an mbarrier than were expected");
    if (b->bytes) return;
    b->phase ^= 1;
    b->pending = b->arrivals;
}
static writings *unfenced(writings *of) {
    of->erase(std::remove_if(of->begin(), of->end(), [](const std::shared_ptr<written> &w) { return w->fenced; }), of->end());
    return of;
}
void machine_mbarrier_init(uint32_t barrier, int arrivals) {
    const mbarrier b = {0, (uint32_t)arrivals, (uint32_t)arrivals, 0, MBARRIER_MARK};
    machine_must(arrivals > 0 && arrivals < 512, "an mbarrier of no arrivals, or too many");
    memcpy(machine_at(barrier, 8), &b, sizeof b);
}
void machine_mbarrier_arrive(uint32_t barrier, int bytes) {
    mbarrier *b = mbarrier_at(barrier);
    machine_must(b->pending > 0, "more arrivals at an mbarrier than it waits for");
    if (!unfenced(&current->unfenced)->empty()) {
        writings &told = own->told[barrier];
        told.insert(told.end(), current->unfenced.begin(), current->unfenced.end());
    }
    b->bytes += bytes;
    b->pending--;
    mbarrier_ends(b);
}
static int mbarrier_passed(uint32_t barrier, int parity) { return (int)mbarrier_at(barrier)->phase != parity; }
int machine_mbarrier_test(uint32_t barrier, int parity) {
    if (!mbarrier_passed(barrier, parity)) return 0;
    const auto told = own->told.find(barrier);
    if (told == own->told.end()) return 1;
    const writings *of = unfenced(&told->second);
    current->unfenced.insert(current->unfenced.end(), of->begin(), of->end());
    return 1;
}
void machine_mbarrier_wait(uint32_t barrier, int parity) {
    wait_until([=] { return mbarrier_passed(barrier, parity); });
    machine_mbarrier_test(barrier, parity);
}

void machine_bar(int id, int threads, int waits) {
    machine_must(id > 0 && id < NAMED && threads % 32 == 0, "a named barrier that is none");
    named_barrier *b = &own->named[id];
    machine_must(!b->arrived || b->threads == threads, "a named barrier of two numbers of threads");
    b->threads = threads;
    const int generation = b->generation;
    if (++b->arrived == threads) b->arrived = 0, b->generation++;
    machine_must(b->arrived < threads, "more threads at a named barrier than it waits for");
    if (waits) wait_until([=] { return b->generation != generation; });
}

/* ---- clusters ---- */

int machine_cluster_rank(void) { return (int)(own->index % cluster.count); }
void machine_cluster_arrive(void) {
    machine_must(current->met < 0, "a thread arrives twice at the barrier of the cluster");
    current->met = cluster.met;
    if (++cluster.arrived == cluster.count * cluster.threads) cluster.arrived = 0, cluster.met++;
}
void machine_cluster_wait(void) {
    const int met = current->met;
    machine_must(met >= 0, "a thread waits for the cluster that has not arrived itself");
    wait_until([=] { return cluster.met != met; });
    current->met = -1;
}
void machine_send(uint32_t to, float x, uint32_t barrier, int to_block) {
    machine_must(to_block >= 0 && to_block < (int)cluster.count, "something is sent to a block that is not in the cluster");
    machine_must(cluster.met > 0, "something is sent to a block that may not have started");
    machine_must(!cluster.blocks[to_block]->ended, "something is sent to a block that has ended");
    cluster.blocks[to_block]->coming.push_back([=] {
        memcpy(machine_at(to, 4), &x, sizeof x);
        mbarrier *b = mbarrier_at(barrier);
        b->bytes -= (int32_t)sizeof x;
        mbarrier_ends(b);
    });
}

/* What cuTensorMapEncodeTiled makes of its arguments, for 16-bit elements in the 128-byte swizzle. */
struct tensor_map {
    char *address;
    uint64_t size[4], stride[3]; /* elements; bytes */
    uint32_t rows;               /* of a box, 128 bytes from each other, */
    int cols;                    /* and their elements, up to 64 */
};
static int encode_tiled(void *map, int, uint32_t rank, void *address, const uint64_t *size, const uint64_t *stride, const uint32_t *box, const uint32_t *step,
                        int interleave, int swizzle, int, int outside) {
    tensor_map m = {(char *)address, {}, {}, box[1], (int)box[0]};
    if (rank != 4 || (uintptr_t)address % 16 || box[0] < 8 || box[0] > 64 || box[0] % 8 || box[1] < 1 || box[1] > 256 || box[2] != 1 || box[3] != 1 || interleave || swizzle != 3 || outside) return 1;
    for (int i = 0; i < 4; i++) {
        if (!size[i] || size[i] > (uint64_t)1 << 32 || step[i] != 1) return 1;
        m.size[i] = size[i];
        if (i < 3 && (stride[i] % 16 || stride[i] >= (uint64_t)1 << 40)) return 1;
        if (i < 3) m.stride[i] = stride[i];
    }
    memcpy(map, &m, sizeof m);
    return 0;
}
/* Whether an element is there, and where. */
static char *box_element(const tensor_map *m, int64_t c0, int64_t c1, int64_t c2, int64_t c3) {
    const int64_t at[4] = {c0, c1, c2, c3};
    char *element = m->address + 2 * c0;
    for (int i = 0; i < 4; i++) {
        if (at[i] < 0 || at[i] >= (int64_t)m->size[i]) return NULL;
        if (i) element += at[i] * (int64_t)m->stride[i - 1];
    }
    return element;
}
static unsigned char *box_place(unsigned char *box, uint32_t row, int col) { return box + row * BOX_BYTES + ((col / 8 ^ row % 8) * 16) + col % 8 * 2; }

void machine_load_box(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2, int c3) {
    tensor_map m;
    memcpy(&m, map, sizeof m);
    unsigned char *box = machine_at(to, 1024);
    machine_must((uintptr_t)map % 64 == 0, "a tensor map that is not aligned");
    const std::function<void()> arrive = [=] {
        static const uint16_t zero = 0;
        mbarrier *b = mbarrier_at(barrier);
        for (uint32_t row = 0; row < m.rows; row++)
            for (int col = 0; col < m.cols; col++) {
                const char *from = box_element(&m, (int64_t)c0 + col, (int64_t)c1 + row, c2, c3);
                memcpy(box_place(box, row, col), from ? (const void *)from : &zero, 2);
            }
        b->bytes -= (int32_t)m.rows * m.cols * 2;
        machine_must(b->bytes >= 0, "more bytes at an mbarrier than were expected");
        mbarrier_ends(b);
    };
    if (chance() & 1) arrive();
    else own->coming.push_back(arrive);
}
static void read_stores(size_t count) {
    thread *t = current;
    for (size_t i = 0; i < count; i++) t->stores[i]();
    t->stores.erase(t->stores.begin(), t->stores.begin() + (long)count);
    t->committed -= count < t->committed ? count : t->committed;
}
void machine_store_box(uint32_t from, const void *map, int c0, int c1, int c2, int c3) {
    tensor_map m;
    memcpy(&m, map, sizeof m);
    unsigned char *box = machine_at(from, 1024);
    machine_must(c1 >= 0, "a box is stored from a negative row on");
    for (const std::shared_ptr<written> &w : *unfenced(&own->all))
        machine_must(w->at < from || w->at >= from + m.rows * BOX_BYTES, "a box is stored that was written without a fence");
    current->stores.push_back([=] {
        for (uint32_t row = 0; row < m.rows; row++)
            for (int col = 0; col < m.cols; col++) {
                char *to = box_element(&m, (int64_t)c0 + col, (int64_t)c1 + row, c2, c3);
                if (to) memcpy(to, box_place(box, row, col), 2);
            }
    });
    if (chance() & 1) read_stores(current->stores.size());
}
void machine_store_commit(void) { current->committed = current->stores.size(); }
void machine_store_read(void) { read_stores(current->committed); }

void machine_wrote(uint32_t address) {
    current->unfenced.push_back(std::make_shared<written>(written{address, 0}));
    own->all.push_back(current->unfenced.back());
}
/* Of what the thread has written itself, and of what it has learnt at barriers that others had written before they
 * arrived. */
void machine_proxy_fence(void) {
    for (const std::shared_ptr<written> &w : current->unfenced) w->fenced = 1;
    current->unfenced.clear();
}

static void compute_products(thread *t, int before) {
    while (!t->products.empty() && t->products.front().first < before) {
        t->products.front().second();
        t->products.pop_front();
    }
}
void machine_product(const std::function<void()> &product) {
    machine_must(of_static.before + of_static.behind + (ptrdiff_t)cluster.shared_bytes <= NAMEABLE, "static shared variables of all kernels and dynamic shared memory are more than 256 KB");
    current->products.push_back({current->product_group, product});
    if (chance() & 1) compute_products(current, INT32_MAX);
}
void machine_products_commit(void) { current->product_group++; }
/* A product is its whole warpgroup's: it is done for all of them. */
void machine_products_wait(int pending) {
    thread **const group = own->threads + threadIdx.x / 128 * 128;
    const int before = current->product_group - pending;
    wait_until([=] {
        for (int i = 0; i < 128; i++)
            if (group[i]->product_group < before) return 0;
        return 1;
    });
    for (int i = 0; i < 128; i++) compute_products(group[i], before);
}

struct allocation {
    char *base;
    size_t bytes;
};
static std::map<void *, allocation> allocations;
static std::recursive_mutex machine_is_used;

cudaError_t cudaMalloc(void **data, size_t bytes) {
    std::lock_guard<std::recursive_mutex> lock(machine_is_used);
    const size_t used = (bytes + 15) / 16 * 16, inner = (used + PAGE - 1) / PAGE * PAGE;
    char *base = (char *)mmap(NULL, inner + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || (inner && mprotect(base + PAGE, inner, PROT_READ | PROT_WRITE))) return cudaErrorInvalidValue;
    *data = base + PAGE + inner - used;
    if (used <= POISONED) memset(*data, 0xFF, used);
    allocations[*data] = {base, inner + 2 * PAGE};
    return cudaSuccess;
}
cudaError_t cudaFree(void *data) {
    std::lock_guard<std::recursive_mutex> lock(machine_is_used);
    if (!data) return cudaSuccess;
    if (!allocations.count(data)) return cudaErrorInvalidValue;
    munmap(allocations[data].base, allocations[data].bytes);
    allocations.erase(data);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
    memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemset(void *data, int value, size_t bytes) {
    memset(data, value, bytes);
    return cudaSuccess;
}

/* ---- streams: what is launched runs at once, or when the graph does that it is captured in ---- */

struct CUstream_st {
    simulator_graph *captured;
};
struct simulator_graph {
    std::vector<std::function<void()>> work;
};
static void enqueue(cudaStream_t stream, const std::function<void()> &work) {
    if (stream && stream->captured) stream->captured->work.push_back(work);
    else work();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    *stream = new CUstream_st();
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    stream->captured = new simulator_graph();
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    *graph = stream->captured;
    stream->captured = NULL;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *launchable, cudaGraph_t graph, unsigned long long) {
    *launchable = new simulator_graph(*graph);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t launchable, cudaStream_t) {
    for (const auto &work : launchable->work) work();
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t launchable) {
    delete launchable;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return cudaGraphExecDestroy(graph); }
cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream) {
    enqueue(stream, [=] { memset(data, value, bytes); });
    return cudaSuccess;
}

/* ---- launches ---- */

static cudaError_t last_error = cudaSuccess;
static cudaError_t says(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

/* Shared memory, dynamic and static, of the block that has the turn is put aside, or taken from there, unless the
 * block is its cluster. */
static void put_aside(void) {
    if (cluster.count == 1) return;
    const size_t dynamic_bytes = cluster.shared_bytes + FENCE;
    own->aside.resize(dynamic_bytes + static_bytes());
    memcpy(own->aside.data(), fa__shared, dynamic_bytes);
    memcpy(own->aside.data() + dynamic_bytes, of_static.variables, static_bytes());
}
static void give_turn_to(block *b) {
    const size_t dynamic_bytes = cluster.shared_bytes + FENCE;
    own = b, blockIdx.x = b->index;
    if (cluster.count == 1) return;
    memcpy(fa__shared, b->aside.data(), dynamic_bytes);
    memcpy(of_static.variables, b->aside.data() + dynamic_bytes, static_bytes());
}
static void run_cluster(unsigned index) {
    cluster.arrived = 0, cluster.met = 0;
    for (unsigned i = 0; i < cluster.count; i++) {
        if (!cluster.blocks[i]) cluster.blocks[i] = new block();
        own = cluster.blocks[i];
        own->index = index * cluster.count + i;
        poison_shared();
        begin_block();
        put_aside();
    }
    for (unsigned ended = 0; ended < cluster.count;) {
        const unsigned turned = chance() % cluster.count;
        int went_on = 0;
        for (unsigned i = 0; i < cluster.count; i++) {
            block *b = cluster.blocks[(i + turned) % cluster.count];
            if (b->ended) continue;
            give_turn_to(b);
            while (!own->ended && run_block()) went_on = 1;
            for (int j = 0; j < FENCE; j++) machine_must(fa__shared[cluster.shared_bytes + (size_t)j] == 0xFF, "written behind the block's shared memory");
            ended += (unsigned)own->ended;
            put_aside();
        }
        machine_must(went_on, "all threads wait for something that never comes");
    }
    machine_must(!cluster.arrived, "the cluster ends before all have come to its barrier");
}
static void run(const void *kernel, unsigned blocks, unsigned threads, unsigned clustered, const parameters &of, size_t shared_bytes) {
    std::lock_guard<std::recursive_mutex> lock(machine_is_used);
    running = (kernel_function)(uintptr_t)kernel;
    running_on = &of;
    gridDim.x = blocks, blockDim.x = threads;
    cluster.count = clustered, cluster.threads = threads, cluster.shared_bytes = shared_bytes;
    machine_must(dl_iterate_phdr(find_static, NULL), "shared memory is not among the program's variables"); /* of this thread */
    const unsigned backwards = chance() & 1, clusters = blocks / clustered;
    for (unsigned i = 0; i < clusters; i++) run_cluster(backwards ? clusters - 1 - i : i);
}
/* How many of `bytes` there are at an address: how large a kernel's parameters are is not known, and on the caller's
 * stack less may follow. */
static size_t readable(const void *from, size_t bytes) {
    static thread_local uintptr_t begin, end;
    const uintptr_t at = (uintptr_t)from;
    if (end == 0) {
        pthread_attr_t own;
        void *stack;
        size_t size;
        pthread_getattr_np(pthread_self(), &own);
        pthread_attr_getstack(&own, &stack, &size);
        pthread_attr_destroy(&own);
        begin = (uintptr_t)stack, end = begin + size;
    }
    return at >= begin && at < end && end - at < bytes ? end - at : bytes;
}
unsigned simulator_cluster_blocks = MACHINE_MAJOR < 9 ? 1 : CLUSTERED;
static cudaError_t launch(const void *kernel, dim3 blocks, dim3 threads, unsigned clustered, void **arguments, size_t shared_bytes, cudaStream_t stream) {
    const uint64_t in_all = (uint64_t)blocks.x * blocks.y * blocks.z;
    if (in_all == 0 || in_all != blocks.x || in_all > INT32_MAX || threads.x == 0 || threads.x > THREADS || threads.y * threads.z != 1 || shared_bytes > SHARED_OF_BLOCK)
        return says(cudaErrorInvalidValue);
    if (clustered == 0 || clustered > simulator_cluster_blocks || blocks.x % clustered)
        return says(cudaErrorInvalidValue);
    parameters of;
    memcpy(&of, arguments[0], readable(arguments[0], sizeof of));
    enqueue(stream, [=] { run(kernel, blocks.x, threads.x, clustered, of, shared_bytes); });
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared_bytes, cudaStream_t stream) {
    return launch(kernel, blocks, threads, 1, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *l, const void *kernel, void **arguments) {
    unsigned clustered = 1;
    for (unsigned i = 0; i < l->numAttrs; i++) clustered *= l->attrs[i].val.clusterDim.x;
    return launch(kernel, l->gridDim, l->blockDim, clustered, arguments, l->dynamicSmemBytes, l->stream);
}
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *, const cudaLaunchConfig_t *l) {
    *clusters = l->attrs[0].val.clusterDim.x > simulator_cluster_blocks ? 0 : 2;
    return MACHINE_MAJOR < 9 ? says(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
    memset(attributes, 0, sizeof *attributes);
    attributes->ptxVersion = attributes->binaryVersion = 10 * MACHINE_MAJOR + MACHINE_MINOR;
    attributes->maxThreadsPerBlock = THREADS;
    return cudaSuccess;
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel) {
    *function = (void *)(uintptr_t)kernel;
    return cudaSuccess;
}
static int set_attribute(void *, int, int) { return 0; }
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *found) {
    *found = cudaDriverEntryPointSuccess;
    *entry = strcmp(name, "cuFuncSetAttribute") == 0                             ? (void *)(uintptr_t)set_attribute
             : MACHINE_MAJOR == 9 && strcmp(name, "cuTensorMapEncodeTiled") == 0 ? (void *)(uintptr_t)encode_tiled
                                                                                 : NULL;
    return cudaSuccess;
}

/* ---- the device ---- */

const char *cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "an error of the simulator"; }
const char *cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaPeekAtLastError(void) { return last_error; }
cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : says(cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
    memset(properties, 0, sizeof *properties);
    properties->major = MACHINE_MAJOR, properties->minor = MACHINE_MINOR;
    properties->multiProcessorCount = PROCESSORS;
    properties->totalGlobalMem = (size_t)1 << 30;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = SHARED_OF_BLOCK; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = SHARED_OF_PROCESSOR; break;
    case cudaDevAttrMultiProcessorCount: *value = PROCESSORS; break;
    case cudaDevAttrComputeCapabilityMajor: *value = MACHINE_MAJOR; break;
    case cudaDevAttrComputeCapabilityMinor: *value = MACHINE_MINOR; break;
    }
    return cudaSuccess;
}
