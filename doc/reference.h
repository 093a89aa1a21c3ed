/**
 * @file reference.h
 * @brief What the template headers take and generate, written down as if it were plain C.
 *
 * Do not include this file. It holds the reference of what exists only after an instantiation: the parameters, and the
 * functions, with `NAME` for the value of FA_NAME. A test compiles its prototypes after real instances, so that they
 * cannot differ from the templates.
 */
#if defined(DOXYGEN)

/** @defgroup parameters Parameters
 *  Macros that an instance is made of: define them, one a line and in any order, then include the header.
 *
 *  The header undefines those that it takes; one that it does not take, such as #FA_OPERAND before fa/mma.h, stays, and reaches the next
 *  instance. Values are literals or names of macros: the preprocessor compares them. A misspelt optional parameter is not noticed, since
 *  the header cannot know the name: `-Wunused-macros` finds it.
 *  @{ */

/** Prefix of every generated name: with `#define FA_NAME attn` there is attn_forward(). Required. */
#define FA_NAME NAME

/** The type of the tensors: #FA_F32, #FA_F16, #FA_BF16 or #FA_TF32. Required, but for fa/softmax.h, where it is the type that weights
 *  are rounded to, and fa/reduce.h, which has none. */
#define FA_DTYPE FA_BF16

/** Head dimension of q and k: a multiple of 8 from 8 to 256 (fa/attention.h, required). */
#define FA_HEAD_DIM 128

/** Head dimension of v and o: a multiple of 8 from 8 to 256 (fa/attention.h). Default: #FA_HEAD_DIM. */
#define FA_HEAD_DIM_V FA_HEAD_DIM

/** Prefix of a mask's four functions (fa/attention.h). One of fa_causal, fa_causal_top_left, fa_sliding_window,
 *  fa_prefix, fa_document, fa_causal_document, fa_span (fa/mask.h), a combination of them or your own. Default: every key is visible. */
#define FA_MASK fa_causal

/** Name of a score hook (fa/attention.h). One of fa_alibi(), fa_softcap(), fa_bias(), fa_key_bias() (fa/score.h), a
 *  chain of them or your own. Default: scores stay as they are. */
#define FA_SCORE fa_alibi

/** The type that `user` of the arguments points to, without const, for hooks of your own (fa/attention.h, fa/swiglu.h, fa/tile.h): up to some
 *  3.5 KB, on the CPU, too, since on a GPU it is passed with the launch. Defined after fa/fa.h. Default: a type without a definition, for hooks that read nothing. */
#define FA_USER_ARGS struct my_args

/** Linkage of the generated functions (fa/attention.h and its companions). Default: static, and #FA_EXTERN with #FA_DECLARE. `#define
 *  FA_API FA_EXTERN` gives C linkage, for instances that other files call through #FA_DECLARE. */
#define FA_API static

/** Prototypes only: for a file that calls an instance of another file (fa/attention.h and its companions). That file is compiled with the
 *  same #FA_NAME and with #FA_API FA_EXTERN; the other parameters are ignored here. */
#define FA_DECLARE

/** The schedule: #FA_CPU; 80, which runs on every GPU from compute capability 8.0 on; or 90, for Hopper and #FA_F16 and
 *  #FA_BF16, which needs -arch=sm_90a. Default: #FA_CPU without nvcc; under nvcc 80, and in fa/attention.h, if compiled
 *  for sm_90a, also 90 for those types, and the device decides between them (with tile sizes of your own, 80 alone).
 *  Tiles, products and softmax of a kernel have the same schedule. Instances for several may stand side by side in a .cu
 *  file. The companions, fa/row.h and fa/reduce.h have one schedule for every GPU, 80, and no other. */
#define FA_ARCH FA_CPU

/** Second part of the prefix, for a template header that is included inside another template. Names start with
 *  FA_NAME followed by FA_SUB, and #FA_NAME, #FA_DTYPE, #FA_ARCH and #FA_USER_ARGS stay defined. One level only. */
#define FA_SUB _part

/** Queries per tile: a multiple of 16 up to 1024, and 16 or 32 times #FA_WARPS on a GPU; with #FA_ARCH 90: 64, 128 or 192
 *  (fa/attention.h). Default: from the tuning table in fa/kernel/attention_tiles.h. */
#define FA_BLOCK_M 64

/** Keys per tile: a multiple of 16 up to 1024, with #FA_ARCH 90 up to 256 (fa/attention.h). Default: from the tuning table. */
#define FA_BLOCK_N 64

/** Warps of a thread block that compute products; not used on the CPU. Default: in fa/attention.h from the tuning table, with #FA_ARCH 90
 *  #FA_BLOCK_M / 16, or 16 with #FA_BLOCK_M 128, two teams; in the primitives 4. With #FA_ARCH 90, fa/mma.h and fa/softmax.h need #FA_M / 16, a multiple of 4: define it
 *  unless #FA_M is 64. */
#define FA_WARPS 4

/** Pipeline stages, tiles of K and V in flight on a GPU: 1 or 2, with #FA_ARCH 90 up to 4 (fa/attention.h). Default: from the tuning table. */
#define FA_STAGES 1

/** Rows of the tile (fa/tile.h, required; with #FA_ARCH 90 a multiple of 8, with #FA_TMA up to 256), or rows of a score tile that one owner holds (fa/softmax.h). The softmax
 *  takes #FA_M and #FA_N instead, if its scores are the result of a product. */
#define FA_ROWS 64

/** Columns of the tile, a multiple of 8 (fa/tile.h, required), or columns that one owner holds (fa/softmax.h). The
 *  softmax takes #FA_M and #FA_N instead, if its scores are the result of a product. In fa/row.h: columns that a team holds
 *  at a time, a piece of the row or all of it: 1 or more (required). */
#define FA_COLS 64

/** Which operand of a product the tile will be: #FA_OPERAND_A, #FA_OPERAND_B or #FA_OPERAND_BT (fa/tile.h).
 *  Default: #FA_OPERAND_B. */
#define FA_OPERAND FA_OPERAND_B

/** How the tile is filled: #FA_BLOCK (block pointer), #FA_POINTER (any row address), or, with #FA_ARCH 90, #FA_TMA (a
 *  tensor map, which the copy engine follows) (fa/tile.h). Default: #FA_BLOCK. */
#define FA_LOADER FA_BLOCK

/** Where a row of the source lies: a function (const FA_USER_ARGS *user, int row), required with #FA_LOADER FA_POINTER
 *  (fa/tile.h). It returns the address of the row, 16-byte aligned, or NULL for a row of zeros. */
#define FA_ROW_ADDRESS row_address

/** Rows of C: on a GPU a multiple of 16 times #FA_WARPS, with #FA_ARCH 90 just that (fa/mma.h, required; fa/softmax.h: of the product
 *  that computes the scores). */
#define FA_M 64

/** Columns of C: a multiple of 8; of 16 when C feeds another product, and with #FA_ARCH 80, but for #FA_OPERAND_BT of 4-byte types; up to 256 with
 *  #FA_ARCH 90 (fa/mma.h, required; fa/softmax.h: as #FA_M). */
#define FA_N 64

/** Length of the dot products: a multiple of 8, on GPUs of 16 with #FA_FRAGMENT or #FA_OPERAND_BT (fa/mma.h, required). */
#define FA_K 64

/** Where A comes from: #FA_SHARED (a tile) or #FA_FRAGMENT (an earlier product) (fa/mma.h). Default: #FA_SHARED. */
#define FA_A FA_SHARED

/** How B's tile is laid out: #FA_OPERAND_B (N x K) or #FA_OPERAND_BT (K x N; on GPUs with #FA_SHARED for #FA_F16 and
 *  #FA_BF16 only) (fa/mma.h). Default: #FA_OPERAND_B. */
#define FA_B FA_OPERAND_B

/** Neighbouring lanes that share the rows: 1, where each holds whole rows, 2, 4, 8, 16 or 32 (fa/softmax.h). Default: 4 on GPUs, as fa/mma.h spreads a product; 1 on the CPU. */
#define FA_OWNERS 4

/** How large finite scores may be: 1, any; 0, magnitudes up to 1e9 if weights stay fp32 (fa/softmax.h). Default: 1. 0 saves
 *  an instruction per score: scale and maximum go into one multiplication and addition, whose rounding grows with the score,
 *  so that at 1e8 a weight may come out as 2^8 instead of 1. If weights are rounded to #FA_F16, stay below 2e7. */
#define FA_WIDE 1

/** The type of weights and of their gradients: #FA_F32, #FA_F16, #FA_BF16 or #FA_TF32 (fa/layernorm.h, fa/rmsnorm.h).
 *  Default: #FA_F32, whatever #FA_DTYPE is. */
#define FA_WEIGHT_DTYPE FA_F32

/** Name of an activation (fa/swiglu.h): fa_silu(), fa_gelu() or fa_relu() (fa/activation.h), or your own, with its
 *  derivative, NAME_grad. Default: fa_silu(). */
#define FA_ACTIVATION fa_silu

/** Threads of the team among which the columns are divided, 1 or more; the CPU has one (fa/row.h). A team may have another
 *  number: a thread still holds the share that #FA_COLS / #FA_THREADS gives, and the team more or less than #FA_COLS. Default: 32. */
#define FA_THREADS 32

/** Where NAME_hold() keeps a row (fa/row.h): #FA_FRAGMENT, one piece, or all #FA_PIECES, in registers; or #FA_SHARED, shared memory, any
 *  number of pieces. Not used on the CPU. Default: #FA_FRAGMENT. */
#define FA_HOLD FA_FRAGMENT

/** Pieces of a row that NAME_keeps() allows to be kept as floats (fa/row.h); not used on GPUs. Default: 1. */
#define FA_KEEP 1

/** Pieces of every row, if known (fa/row.h); some may be empty; with #FA_SHARED there are always slots then. Not
 *  used on the CPU. Default: 0, it depends on the row. */
#define FA_PIECES 0

/** 1 if every row starts at a multiple of 16 bytes and has as many columns as the team holds, or a multiple of that (fa/row.h):
 *  there is no code for ends then; 2 if it starts there and consists of whole vectors of 16 bytes, as many as the team holds or fewer.
 *  Not used on the CPU. Default: 0, any rows. */
#define FA_WHOLE 0

/** Bytes of the vectors that neighbouring threads hold side by side (fa/row.h): 16, or 8 or 4 where #FA_WHOLE is 2 and #FA_HOLD is
 *  #FA_FRAGMENT, so that weights of floats for rows of halves lie side by side, too. Not used on the CPU. Default: 16. */
#define FA_VECTOR 16

/** Blocks that a cluster has at most: 1 to 16; more than 1 on GPUs from compute capability 9.0 on (fa/reduce.h). Default: 1.
 */
#define FA_BLOCKS 1
/** @} */
#endif

/** @defgroup attention Generated by fa/attention.h
 *  The functions of an attention instance, called on the host. Their parameters are macros: see @ref parameters.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_ATTENTION)
/** Attention forward: o = softmax(scale * q k^T, masked and modified) v, and lse where it is not NULL.
 *
 *  On a GPU it launches on the stream and returns: it neither allocates nor synchronises, and may be captured in a
 *  graph. On the CPU it returns when o is written. Bitwise deterministic, independent of the batch and of
 *  args->threads.
 *  @param args   tensors, sizes and the parameters of the mask and the score hook; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return FA_OK; ::FA_ERROR_ARGUMENT or ::FA_ERROR_WORKSPACE (nothing is written), ::FA_ERROR_NO_DEVICE, ::FA_ERROR_ARCHITECTURE,
 *          ::FA_ERROR_RESOURCE or ::FA_ERROR_CUDA, and then fa_last_error() says more */
fa_status NAME_forward(const fa_attention_args *args, fa_stream stream);

/** Says what NAME_forward() would run with these arguments, and how many tiles of the score matrix it would visit.
 *
 *  On a GPU, with a mask, it counts the tiles on the device, on the default stream, and waits: it cannot be captured in a
 *  graph.
 *  @param args the arguments that NAME_forward() would get
 *  @param plan written
 *  @return as NAME_forward(); but without a mask an instance for the CPU, or with #FA_ARCH 80, needs no device to say so */
fa_status NAME_plan(const fa_attention_args *args, fa_plan *plan);

/** Bytes of workspace that NAME_forward() can use with these arguments, 0 or 4; it needs none (fa_attention_args.workspace).
 *  @param args the arguments that NAME_forward() would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_attention_args *args);
#endif
/** @} */

/** @defgroup tile Generated by fa/tile.h
 *  A tile of a matrix and its loader, called inside kernels; made with #FA_ROWS, #FA_COLS, #FA_OPERAND and #FA_LOADER.
 *  @{ */
#if defined(DOXYGEN)
/** A tile of FA_ROWS x FA_COLS elements in the layout that the matrix unit reads. Place it in shared memory (GPU) or
 *  anywhere (CPU), aligned as the type is: to 64 bytes on the CPU, which malloc() does not promise, to 16 on a GPU, with #FA_ARCH 90 to 1024. */
typedef struct NAME_tile NAME_tile;

/** What NAME_load() reads from: an ::fa_block with the loader #FA_BLOCK; a struct of `user`, which #FA_ROW_ADDRESS is
 *  given, and `row`, the row of the source at which the tile starts, with #FA_POINTER; with #FA_TMA a struct of `map`, a
 *  pointer to the kernel's fa_tensor_map, `row`, at which the tile starts, `head` and `batch`. */
typedef fa_block NAME_source;
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_TILE)
/** Starts the copy of a tile. Elements outside the source arrive as zeros; memory there is never read.
 *  @param tile   filled when NAME_wait() says so
 *  @param source where from
 *  @param thread index of the caller among the FA_WARPS * 32 threads, all of which call; 0 on the CPU */
void NAME_load(NAME_tile *tile, NAME_source source, int thread);

/** Closes a group of loads of the calling thread. */
void NAME_commit(void);

/** Returns when all but the latest groups of the calling thread have landed; a block barrier then makes them visible.
 *  @param pending how many of the latest groups may still be under way */
void NAME_wait(int pending);

/** The block barrier: afterwards every thread sees what any thread has waited for, or written. Does nothing on the CPU. */
void NAME_barrier(void);

/** The index of the caller among the FA_WARPS * 32 threads.
 *  @return threadIdx.x on a GPU, 0 on the CPU */
int NAME_thread(void);

/** Changes the sign of every element of a tile that has landed; not with #FA_ARCH 90.
 *  @param tile   made visible by a barrier, before and after
 *  @param thread index of the caller among the FA_WARPS * 32 threads, all of which call; 0 on the CPU */
void NAME_negate(NAME_tile *tile, int thread);

/** Writes the rows and columns of a tile (#FA_OPERAND_A) that lie inside the destination.
 *  @param tile   made visible by a barrier
 *  @param to     where to; its bounds are kept
 *  @param thread index of the caller among the FA_WARPS * 32 threads, all of which call; 0 on the CPU */
void NAME_store(NAME_tile *tile, fa_block to, int thread);
#endif
#if defined(DOXYGEN)
/** Starts one part of the copies of a tile: for schedules that spread them between the steps of a product (GPU).
 *  @param tile   as for NAME_load()
 *  @param source as for NAME_load()
 *  @param thread as for NAME_load()
 *  @param part   0 to parts - 1; all of them make a NAME_load()
 *  @param parts  how many */
void NAME_load_part(NAME_tile *tile, NAME_source source, int thread, int part, int parts);

/** The address of an element of a tile: of the type FA_DTYPE on a GPU, float on the CPU.
 *  @param tile the tile
 *  @param row  0 to FA_ROWS - 1
 *  @param col  0 to FA_COLS - 1
 *  @return the element's address */
void *NAME_at(NAME_tile *tile, int row, int col);
#endif
/** @} */

/** @defgroup tile_tma Generated by fa/tile.h with FA_TMA
 *  A tile that the copy engine of sm_90a brings, with #FA_ARCH 90 and #FA_LOADER FA_TMA. One thread starts the copy, unlike
 *  the NAME_load() of other loaders, which all threads call. Copies complete at an ::fa_mbarrier; a thread that has waited
 *  there may read the tile, and multiply it.
 *  @{ */
#if defined(DOXYGEN)
/** Bytes that a copy of the tile brings, a constant; zeros for elements outside the tensor count. */
#define NAME_BYTES
/** Bytes of a panel of it, 64 columns; a constant. */
#define NAME_PANEL_BYTES
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_TMA_HOST)
/** Makes the map of a tensor, on the host.
 *  @param map    written; pass it to the kernel as a `const __grid_constant__` parameter, or inside one
 *  @param tensor (batch, heads, seqlen, FA_COLS), on the device; strides from 0 on, multiples of 16 bytes
 *  @param batch  1 or more
 *  @param heads  1 or more
 *  @param seqlen 1 or more
 *  @return FA_OK; ::FA_ERROR_ARGUMENT or ::FA_ERROR_CUDA, and then fa_last_error() says more */
fa_status NAME_map(fa_tensor_map *map, fa_tensor tensor, int batch, int heads, int seqlen);
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_TMA)
/** Announces the bytes of a tile at a barrier, which is one arrival there, and starts the copy. One thread calls, when
 *  all threads are done with the tile.
 *  @param tile    filled when the barrier's phase ends
 *  @param source  where from
 *  @param barrier in shared memory */
void NAME_fetch(NAME_tile *tile, NAME_source source, fa_mbarrier *barrier);

/** Starts the copy alone, for several tiles at one barrier: fa_mbarrier_expect() announces NAME_BYTES of each.
 *  @param tile    as for NAME_fetch()
 *  @param source  where from
 *  @param barrier fa_mbarrier_address() of the barrier */
void NAME_load(NAME_tile *tile, NAME_source source, uint32_t barrier);

/** Brings what a tile will hold into the L2 cache. One thread calls.
 *  @param source where from */
void NAME_prefetch(NAME_source source);

/** Starts the copy of a panel, 64 columns of a tile, to where it would be loaded from; elements outside the tensor are not written.
 *  The threads that wrote the panel first make it visible to the copy engine, by NAME_barrier().
 *  @param from      NAME_PANEL_BYTES bytes of shared memory, in the layout of a tile
 *  @param to        where to; the row must not be negative (an illegal instruction)
 *  @param panel     which columns: from 64 * panel on
 *  @param condition whether the caller is the thread that sends */
void NAME_send_panel(const void *from, NAME_source to, int panel, int condition);

/** Closes a group of panels that the caller sends. */
void NAME_send(void);

/** Returns when what the caller has sent has been read, and may be written again. Call it before the thread block ends, too. */
void NAME_sent(void);
#endif
/** @} */

/** @defgroup mma Generated by fa/mma.h
 *  A product of tiles, called inside kernels; made with #FA_M, #FA_N, #FA_K, #FA_A and #FA_B.
 *  @{ */
#if defined(DOXYGEN)
/** Rows of C that an owner holds, a constant; fa/softmax.h generates it, too. */
#define NAME_ROWS
/** Columns of C that an owner holds, a constant; fa/softmax.h generates it, too. */
#define NAME_COLS
/** Steps that NAME_mma_steps() divides the product into, a constant (GPU). */
#define NAME_STEPS
/** An owner's part of C in fp32: element (r, c) is `x[NAME_AT(r, c)]`, and lies at row NAME_row(thread, r) and column
 *  NAME_col(thread, c) of C.
 *  @headerfile fa/mma.h */
typedef struct NAME_acc {
    float x[NAME_ROWS * NAME_COLS]; /**< the elements */
} NAME_acc;
/** An operand A in registers, made by NAME_pack(). */
typedef struct NAME_a NAME_a;
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_MMA)
/** The row of C in which an owner's element lies.
 *  @param thread index of the owner; 0 on the CPU
 *  @param r      0 to NAME_ROWS - 1
 *  @return row of C */
int NAME_row(int thread, int r);

/** The column of C in which an owner's element lies.
 *  @param thread index of the owner; 0 on the CPU
 *  @param c      0 to NAME_COLS - 1
 *  @return column of C: NAME_col(thread, 0) + NAME_col_offset(c) */
int NAME_col(int thread, int c);

/** The part of NAME_col() that every owner shares: a constant once the loop over c is unrolled.
 *  @param c 0 to NAME_COLS - 1
 *  @return columns from the owner's first */
int NAME_col_offset(int c);

/** Sets an accumulator to zero.
 *  @param acc the accumulator */
void NAME_zero(NAME_acc *acc);

/** Multiplies every row of an accumulator by a factor of its own.
 *  @param acc    the accumulator
 *  @param factor NAME_ROWS factors */
void NAME_scale_rows(NAME_acc *acc, const float *factor);

/** Multiplies every row by 1 / its sum of weights. A row whose inverse is 0 becomes exactly 0.
 *  @param acc     the accumulator
 *  @param inverse NAME_ROWS inverses, as a softmax's finish gives them */
void NAME_normalize(NAME_acc *acc, const float *inverse);

/** Makes operand A of a product with FA_A FA_FRAGMENT from the accumulator of a product whose N is this one's K; with
 *  #FA_F32 and #FA_TF32 one with #FA_B FA_OPERAND_B (columns of others are in another order: NAME_to_tile()).
 *  @param a   written; on the CPU it refers to acc
 *  @param acc `x` of that accumulator */
void NAME_pack(NAME_a *a, const float *acc);

/** C += A B. All threads of the FA_WARPS warps call, converged; done with the tiles when it returns.
 *  @param acc    the accumulator, C
 *  @param a      an #FA_OPERAND_A tile; with FA_A FA_FRAGMENT a NAME_a
 *  @param b_tile a tile of the operand that #FA_B names
 *  @param thread index of the caller among the FA_WARPS * 32 threads; 0 on the CPU */
void NAME_mma(NAME_acc *acc, const void *a, const void *b_tile, int thread);

/** C = A B: NAME_zero() and NAME_mma() in one.
 *  @param acc    the accumulator, C
 *  @param a      as for NAME_mma()
 *  @param b_tile as for NAME_mma()
 *  @param thread as for NAME_mma() */
void NAME_product(NAME_acc *acc, const void *a, const void *b_tile, int thread);

#if defined(DOXYGEN) || defined(FA_REFERENCE_MMA_80)
/** The steps of NAME_mma() from `first` up to `last`: a schedule may do something else between them (#FA_ARCH 80).
 *  @param acc    as for NAME_mma()
 *  @param a      as for NAME_mma()
 *  @param b_tile as for NAME_mma()
 *  @param thread as for NAME_mma()
 *  @param first  0 to NAME_STEPS - 1
 *  @param last   one past the last step, at most NAME_STEPS */
void NAME_mma_steps(NAME_acc *acc, const void *a, const void *b_tile, int thread, int first, int last);
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_LOAD_A)
/** Reads operand A of a product with FA_A FA_FRAGMENT from a tile, to be used many times (GPU, #FA_F16 and #FA_BF16).
 *  @param a      written
 *  @param a_tile an #FA_OPERAND_A tile of FA_M x FA_K
 *  @param thread as for NAME_mma() */
void NAME_load_a(NAME_a *a, const void *a_tile, int thread);
#endif

/** Writes an accumulator, rounded, into an #FA_OPERAND_A tile of FA_M x FA_N.
 *  @param acc    the accumulator
 *  @param tile   the tile, which a barrier makes visible afterwards
 *  @param thread index of the caller; 0 on the CPU */
void NAME_to_tile(const NAME_acc *acc, void *tile, int thread);
#endif
/** @} */

/** @defgroup wgmma Generated by fa/mma.h with FA_ARCH 90
 *  The parts of an asynchronous product, on sm_90a only: start, commit, do something else, wait. Whole warpgroups call,
 *  converged. Until the wait is over do not touch the accumulator or A's registers, and do not write the tiles.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_WGMMA)
/** Where a tile lies, for NAME_start() with FA_A FA_SHARED. A tile that lies n bytes further has a place larger by n / 16.
 *  @param a_tile an #FA_OPERAND_A tile
 *  @param thread index of the caller among the FA_WARPS * 32 threads
 *  @return half of a matrix descriptor */
uint32_t NAME_a_place(const void *a_tile, int thread);

/** Where B's tile lies.
 *  @param b_tile a tile of the operand that #FA_B names
 *  @return half of a matrix descriptor */
uint32_t NAME_b_place(const void *b_tile);

/** Hands over registers (C, or A's) that threads have written since the last wait. Call it before the products that use them. */
void NAME_fence(void);

/** Starts C = A B, or C += A B.
 *  @param acc        the accumulator, C
 *  @param a          NAME_a_place() of a tile; with FA_A FA_FRAGMENT a pointer to a NAME_a
 *  @param b          NAME_b_place() of a tile
 *  @param accumulate whether C is added to */
void NAME_start(NAME_acc *acc, uint32_t a, uint32_t b, int accumulate);

/** Closes a group of products. */
void NAME_commit(void);

/** Returns when all but the latest groups are done.
 *  @param acc     the accumulator that may be read then
 *  @param pending how many of the latest groups may still be under way: 0 to 2 */
void NAME_wait(NAME_acc *acc, int pending);

/** Writes an accumulator, rounded, to the rows and columns of a block that lie inside it, from row to.row on.
 *  @param acc    the accumulator
 *  @param to     where to; its bounds are kept
 *  @param thread index of the caller among the FA_WARPS * 32 threads */
void NAME_store(const NAME_acc *acc, fa_block to, int thread);

/** A thread's elements of an accumulator, rounded to FA_DTYPE. */
typedef struct NAME_halves NAME_halves;
/** Rounds an accumulator.
 *  @param halves written
 *  @param acc    the accumulator */
void NAME_round(NAME_halves *halves, const NAME_acc *acc);

/** Writes 64 columns of each warp's 16 rows of what NAME_round() has rounded into a panel, for NAME_send_panel() of a tile with
 *  FA_ROWS 16.
 *  @param halves the elements of an accumulator, rounded
 *  @param panel  which columns, a constant: from 64 * panel on
 *  @param to     2048 bytes of shared memory of the warp's own, aligned to 1024
 *  @param thread index of the caller among the FA_WARPS * 32 threads */
void NAME_to_panel(const NAME_halves *halves, int panel, void *to, int thread);
#endif
/** @} */

/** @defgroup softmax Generated by fa/softmax.h
 *  Online softmax of scores that arrive in tiles, called inside kernels; made with #FA_M, #FA_N and #FA_WARPS of the
 *  product that computes the scores, or with #FA_ROWS and #FA_COLS.
 *  @{ */
#if defined(DOXYGEN)
/** What is known of a row's scores so far. All of it may be stored, and merged by the thread with the same index of another block.
 *
 *  One more score, such as a sink's, or the lse of other keys makes a state by hand, for NAME_merge(): NAME_init(), then max[r] becomes the score
 *  (lse / scale, with the scale of NAME_finish()) in all owners of the row, and sum[r] 1 in one of them and 0 in the others:
 *  NAME_col(thread, 0) == 0 ? 1 : 0, by the product's NAME_col().
 *  @headerfile fa/softmax.h */
typedef struct NAME_state {
    float max[NAME_ROWS]; /**< the largest score of each row, or an earlier maximum within a factor of 2^8 in weights; -inf: none yet */
    float sum[NAME_ROWS]; /**< the owner's share of the sum of exp2((score - max) * scale_log2) */
} NAME_state;
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_SOFTMAX)
/** Where element (row, col) of an owner's part lies in its array; generated by fa/mma.h, too.
 *  @param row 0 to NAME_ROWS - 1
 *  @param col 0 to NAME_COLS - 1
 *  @return index into the array */
int NAME_AT(int row, int col);

/** Starts a state: nothing seen yet.
 *  @param state written */
void NAME_init(NAME_state *state);

/** Takes a tile of scores into the state and turns the scores into weights.
 *  @param state      updated
 *  @param s          NAME_ROWS x NAME_COLS scores, which become exp2((score - max) * scale_log2); -inf becomes 0
 *  @param scale_log2 greater than 0; log2(e) for scores in natural units
 *  @param alpha      written: the factor of each row for what was accumulated with earlier weights
 *  @return whether any factor differs from 1 */
int NAME_update(NAME_state *state, float *s, float scale_log2, float *alpha);

/** First part of NAME_update(), for a schedule that interleaves other work: whether the tile may hold a score that raises a
 *  maximum. If not, NAME_weigh() is all that is left.
 *  @param state as NAME_init() or earlier tiles have left it
 *  @param s     NAME_ROWS x NAME_COLS scores
 *  @return on a GPU the same for the whole warp; a new state says yes */
int NAME_exceeds(const NAME_state *state, const float *s);

/** Second part: raises each maximum that the tile exceeds by more than a factor of 2^8 in weights.
 *  @param state      updated: the maxima
 *  @param s          NAME_ROWS x NAME_COLS scores
 *  @param scale_log2 as in NAME_update()
 *  @param alpha      written: the logarithms, to base 2, of what NAME_update() gives
 *  @return whether any maximum was raised, on a GPU the same for the whole warp */
int NAME_raise(NAME_state *state, const float *s, float scale_log2, float *alpha);

/** NAME_raise() that looks at one of every `step` columns. A maximum that is slightly too low does no harm, and NAME_behind()
 *  finds one that is much too low. On GPUs.
 *  @param state      updated: the maxima
 *  @param s          NAME_ROWS x NAME_COLS scores
 *  @param scale_log2 as in NAME_update()
 *  @param alpha      written: the logarithms, to base 2, of what NAME_update() gives
 *  @param step       a constant from 1 to FA_COLS
 *  @return as NAME_raise() */
int NAME_raise_by(NAME_state *state, const float *s, float scale_log2, float *alpha, int step);

#if defined(DOXYGEN) || defined(FA_REFERENCE_SOFTMAX_80)
/** For a schedule that weighs first and asks NAME_behind() afterwards: sets the maximum of each row that has seen no score yet. On GPUs.
 *  @param state      updated: those maxima
 *  @param s          NAME_ROWS x NAME_COLS scores
 *  @param scale_log2 as in NAME_update() */
void NAME_begin(NAME_state *state, const float *s, float scale_log2);
#endif

/** Third part, if a maximum was raised: applies the factors to the sums.
 *  @param state updated: the sums
 *  @param alpha the logarithms that NAME_raise() has left, which become factors */
void NAME_fade(NAME_state *state, float *alpha);

/** Last part: the weights of scores, and their sums.
 *  @param state      the maxima
 *  @param s          NAME_ROWS x NAME_COLS scores
 *  @param scale_log2 as in NAME_update()
 *  @param weights    written: NAME_ROWS x NAME_COLS weights; may be s
 *  @param sum        written: the owner's part of each row's sum, to be added to that of the state */
void NAME_weigh(const NAME_state *state, const float *s, float scale_log2, float *weights, float *sum);

#if defined(DOXYGEN) || defined(FA_REFERENCE_SOFTMAX_80)
/** The same for some columns, for a schedule that does something else in between. On GPUs.
 *  @param state      the maxima
 *  @param s          NAME_ROWS x NAME_COLS scores
 *  @param scale_log2 as in NAME_update()
 *  @param weights    written: the weights of these columns; may be s
 *  @param sum        the owner's part of each row's sum, to which those of these columns are added
 *  @param first      the first column, a constant from 0 to NAME_COLS
 *  @param last       the one after the last, likewise */
void NAME_weigh_columns(const NAME_state *state, const float *s, float scale_log2, float *weights, float *sum, int first,
                        int last);

/** For a schedule that weighs before it looks for maxima: whether NAME_raise() and NAME_fade() have to follow, and NAME_weigh()
 *  once more, since scores are far above their maximum, or the first that their row has seen. On GPUs.
 *  @param sum as NAME_weigh() left it
 *  @return on a GPU the same for the whole warp; if it says no, all weights are below 2^15 */
int NAME_behind(const float *sum);

/** NAME_weigh() of an instance with FA_WIDE 1, with one instruction less per score, for a schedule that asks NAME_behind() and NAME_far()
 *  afterwards and, if either says yes, calls NAME_raise(), NAME_fade() and NAME_weigh(). Parameters as of NAME_weigh(). On GPUs. */
void NAME_weigh_near(const NAME_state *state, const float *s, float scale_log2, float *weights, float *sum);

/** The same of the columns from `first` up to `last`, as NAME_weigh_columns(), which has the same parameters, weighs them. On GPUs. */
void NAME_weigh_columns_near(const NAME_state *state, const float *s, float scale_log2, float *weights, float *sum, int first,
                             int last);

/** Whether a maximum is finite and, times `scale`, above 65536 in magnitude, so that NAME_weigh_near() may have rounded differences of scores away. On GPUs.
 *  @param state as NAME_raise() left it
 *  @param scale of the scores: 1 if they are in natural units
 *  @param none  whether a row without a maximum yet counts, too: its scores below -1e30 are lost
 *  @return on a GPU the same for the whole warp; 0 with FA_WIDE 0 */
int NAME_far(const NAME_state *state, float scale, int none);
#endif

/** Merges two states of the same rows over different columns.
 *  @param state        one of them; becomes the state of both
 *  @param other        the other one
 *  @param scale_log2   as in NAME_update()
 *  @param weight       written: factor of each row for what was accumulated with `state`
 *  @param other_weight written: and with `other` */
void NAME_merge(NAME_state *state, const NAME_state *other, float scale_log2, float *weight, float *other_weight);

/** Completes the sums across the owners of a row.
 *  @param state   all tiles are in it
 *  @param scale   scale_log2 * ln 2
 *  @param inverse written: 1 / sum of each row; 0 for a row with nothing visible
 *  @param lse     written: natural log of the sum of exp(score * scale) of each row; -inf for such a row */
void NAME_finish(const NAME_state *state, float scale, float *inverse, float *lse);
#endif
/** @} */

/* Of the companions; @statuses stands for what doc/Doxyfile says. */
/** @defgroup row_softmax Generated by fa/row_softmax.h
 *  Softmax of the rows of a matrix. The functions of a companion are called on the host, like those of fa/attention.h.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_ROW_SOFTMAX)
/** The softmax of every row of args->x, or its logarithm, written to args->y.
 *
 *  On a GPU it launches on the stream and returns, as all of these functions do: it neither allocates nor synchronises,
 *  and may be captured in a graph. On the CPU it returns when the result is written. The same bits every time.
 *  @param args   matrices and sizes; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return @statuses */
fa_status NAME_forward(const fa_row_softmax_args *args, fa_stream stream);

/** The gradient args->d_x, from args->d_y and args->y.
 *  @param args   the forward's, with the gradients
 *  @param stream where to launch; ignored on the CPU
 *  @return as the forward */
fa_status NAME_backward(const fa_row_softmax_args *args, fa_stream stream);

/** Bytes of workspace that either needs with these arguments: 0.
 *  @param args the arguments that the call would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_row_softmax_args *args);
#endif
/** @} */

/** @defgroup layernorm Generated by fa/layernorm.h
 *  Layer normalisation of the rows of a matrix, with the dropout and the residual before it.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_LAYERNORM)
/** Normalises the rows of args->x, or of dropout(x) + residual, which args->sum gets.
 *  @param args   matrices, weights and sizes; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return @statuses */
fa_status NAME_forward(const fa_layernorm_args *args, fa_stream stream);

/** The gradients that are wanted: of x, of the residual, and, summed over all rows without atomics, of the weights.
 *  @param args   the forward's, with the gradients and the workspace
 *  @param stream where to launch; ignored on the CPU
 *  @return as the forward; ::FA_ERROR_WORKSPACE if the workspace is missing or too small */
fa_status NAME_backward(const fa_layernorm_args *args, fa_stream stream);

/** Bytes of workspace that the backward needs with these arguments, at a multiple of 16. Looks at rows, cols, and whether
 *  d_sum and the gradients of weights are wanted; on a GPU also at the current device, and 0 if there is none.
 *  @param args the arguments that NAME_backward() would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_layernorm_args *args);
#endif
/** @} */

/** @defgroup rmsnorm Generated by fa/rmsnorm.h
 *  Root-mean-square normalisation of the rows of a matrix, with the dropout and the residual before it.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_RMSNORM)
/** Normalises the rows of args->x, or of dropout(x) + residual, which args->sum gets.
 *  @param args   matrices, weights and sizes; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return @statuses */
fa_status NAME_forward(const fa_rmsnorm_args *args, fa_stream stream);

/** The gradients that are wanted: of x, of the residual, and, summed over all rows without atomics, of the weights.
 *  @param args   the forward's, with the gradients and the workspace
 *  @param stream where to launch; ignored on the CPU
 *  @return as the forward; ::FA_ERROR_WORKSPACE if the workspace is missing or too small */
fa_status NAME_backward(const fa_rmsnorm_args *args, fa_stream stream);

/** Bytes of workspace that the backward needs with these arguments, at a multiple of 16. Looks at rows, cols, and whether
 *  d_sum and the gradients of weights are wanted; on a GPU also at the current device, and 0 if there is none.
 *  @param args the arguments that NAME_backward() would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_rmsnorm_args *args);
#endif
/** @} */

/** @defgroup cross_entropy Generated by fa/cross_entropy.h
 *  Cross-entropy of the rows of a matrix of logits.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_CROSS_ENTROPY)
/** The loss of every row, args->loss, and its args->lse.
 *  @param args   logits, targets and sizes; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return @statuses */
fa_status NAME_forward(const fa_cross_entropy_args *args, fa_stream stream);

/** The gradient args->d_logits, which may be the logits, from args->d_loss and the forward's lse.
 *  @param args   the forward's, with the gradients
 *  @param stream where to launch; ignored on the CPU
 *  @return as the forward */
fa_status NAME_backward(const fa_cross_entropy_args *args, fa_stream stream);

/** Bytes of workspace that either needs with these arguments: 0.
 *  @param args the arguments that the call would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_cross_entropy_args *args);
#endif
/** @} */

/** @defgroup swiglu Generated by fa/swiglu.h
 *  Gated linear units.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_SWIGLU)
/** args->y = activation(gate) up.
 *  @param args   matrices and sizes; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return @statuses */
fa_status NAME_forward(const fa_swiglu_args *args, fa_stream stream);

/** The gradients args->d_gate and args->d_up, from args->d_y, the gate and the other factor.
 *  @param args   the forward's, with the gradients
 *  @param stream where to launch; ignored on the CPU
 *  @return as the forward */
fa_status NAME_backward(const fa_swiglu_args *args, fa_stream stream);

/** Bytes of workspace that either needs with these arguments: 0.
 *  @param args the arguments that the call would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_swiglu_args *args);
#endif
/** @} */

/** @defgroup rope Generated by fa/rope.h
 *  Rotary position embedding.
 *  @{ */
#if defined(DOXYGEN) || defined(FA_REFERENCE_ROPE)
/** args->q and args->k, rotated by the angles of their positions, to q_out and k_out.
 *  @param args   tensors, sizes and what tells the angles; not kept after the call
 *  @param stream where to launch; ignored on the CPU
 *  @return @statuses */
fa_status NAME_forward(const fa_rope_args *args, fa_stream stream);

/** args->d_q and args->d_k, gradients of q_out and k_out, become those of q and k: rotated back, in place.
 *  @param args   the forward's, with the gradients
 *  @param stream where to launch; ignored on the CPU
 *  @return as the forward */
fa_status NAME_backward(const fa_rope_args *args, fa_stream stream);

/** Bytes of workspace that either needs with these arguments: 0.
 *  @param args the arguments that the call would get
 *  @return bytes for args->workspace */
size_t NAME_workspace(const fa_rope_args *args);
#endif
/** @} */

/** @defgroup row Generated by fa/row.h
 *  Rows of a matrix in registers, called inside kernels; made with #FA_COLS, #FA_THREADS, #FA_HOLD, #FA_KEEP, #FA_PIECES,
 *  #FA_WHOLE and #FA_VECTOR.
 *  All threads of a team call, each for its own elements; nothing synchronises.
 *  @{ */
#if defined(DOXYGEN)
/** Elements of a piece that a thread holds, a constant: the size of float x[]. */
#define NAME_LENGTH
/** Parts that a piece has for NAME_weights(), a constant: vectors of #FA_VECTOR bytes on GPUs, 1 on the CPU. */
#define NAME_PARTS
/** Elements of a part, a constant. */
#define NAME_PART
/** The most pieces of one row that NAME_keeps() says yes to: a constant. */
#define NAME_KEPT
/** A row, as a thread of its team sees it. */
typedef struct NAME_view NAME_view;
/** What holds a row that is read more than once. */
typedef struct NAME_held NAME_held;
/** Which elements of a row are dropped. */
typedef struct NAME_drawn NAME_drawn;
/** A row that is read only once. */
typedef struct NAME_scan NAME_scan;
/** A piece of such a row in flight, in NAME_PARTS parts. */
typedef struct NAME_flight NAME_flight;
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_ROW)
/** A row. Its threads hold vectors of 16 bytes in turn, which lie on boundaries of 16 bytes.
 *  @param row  element 0, aligned to its type
 *  @param cols elements; 0: there are none, and the row is not looked at
 *  @param team who shares it: fa/reduce.h makes it
 *  @return the caller's view */
NAME_view NAME_at(const void *row, int64_t cols, const fa_team *team);

/** Another row, as long, of the same type and team, whose elements the threads hold as they do those of `of`.
 *  @param row element 0
 *  @param of  the row whose boundaries count
 *  @return the caller's view */
NAME_view NAME_like(const void *row, const NAME_view *of);

/** Elements of a piece that x[] has.
 *  @param v     the row
 *  @param piece from 0 on
 *  @return NAME_LENGTH on GPUs, a constant; a multiple of 16 on the CPU */
int NAME_count(const NAME_view *v, int64_t piece);

/** The column of x[i].
 *  @param v     the row
 *  @param piece from 0 on
 *  @param i     0 to NAME_count() - 1
 *  @return a column; below 0, or cols or more: not in the row */
int64_t NAME_col(const NAME_view *v, int64_t piece, int i);

/** Pieces that the row takes.
 *  @param v the row
 *  @return on GPUs #FA_PIECES, if these are given */
int64_t NAME_pieces(const NAME_view *v);

/** Reads a piece.
 *  @param x     NAME_LENGTH floats, of which NAME_count() are written
 *  @param v     the row
 *  @param piece from 0 on
 *  @param fill  the value of elements outside the row */
void NAME_load(float *x, const NAME_view *v, int64_t piece, float fill);

/** Writes a piece, rounded to nearest even; elements outside the row are not written.
 *  @param v     the row
 *  @param piece from 0 on
 *  @param x     its elements */
void NAME_store(const NAME_view *v, int64_t piece, const float *x);

/** Writes a piece times a factor.
 *  @param v      the row
 *  @param piece  from 0 on
 *  @param x      its elements, which stay as they are
 *  @param factor multiplies them */
void NAME_store_times(const NAME_view *v, int64_t piece, const float *x, float factor);

/** How many of x[] are elements of the row.
 *  @param v     the row
 *  @param piece from 0 on
 *  @return 0 to NAME_count() */
int NAME_real(const NAME_view *v, int64_t piece);

/** Gives those of x[] that are not elements of the row a value.
 *  @param x     NAME_count() floats
 *  @param v     the row
 *  @param piece from 0 on
 *  @param value what they become */
void NAME_pad(float *x, const NAME_view *v, int64_t piece, float value);

/** The elements of another row, of any type, that belong to the same columns: weights of columns.
 *  @param w       NAME_PART floats, which may be written
 *  @param v       the row that tells the columns
 *  @param piece   from 0 on
 *  @param part    0 to NAME_PARTS - 1: x[part * NAME_PART] and those that follow
 *  @param row     element 0; NULL: there is none
 *  @param dtype   its type, a constant
 *  @param missing the value of elements outside the row
 *  @return NAME_PART floats, in `w` or in place */
const float *NAME_weights(float *w, const NAME_view *v, int64_t piece, int part, const void *row, int dtype, float missing);

/** Draws which elements of a row are dropped.
 *  @param v       the row
 *  @param first   the number of column 0 in its tensor: row * cols
 *  @param dropout fa_dropout_of() makes it; kept by address
 *  @return for NAME_dropout() */
NAME_drawn NAME_draw(const NAME_view *v, uint64_t first, const fa_dropout *dropout);

/** Sets dropped elements to 0, and scales the others.
 *  @param x     NAME_count() floats
 *  @param v     the row that NAME_draw() was given
 *  @param piece from 0 on
 *  @param d     what it returned */
void NAME_dropout(float *x, const NAME_view *v, int64_t piece, const NAME_drawn *d);

/** Lets later stores bypass the caches: for a large result that is not read again soon. Changes nothing on GPUs.
 *  @param v the row that will be written */
void NAME_stream(NAME_view *v);

/** Starts reading a row that is needed more than once.
 *  @param held  written
 *  @param slot0 with #FA_HOLD FA_SHARED on a GPU: shared memory at a multiple of 16 bytes, which every thread of the block gives alike, for
 *               (cols + 15) / (NAME_LENGTH * threads) + 1 pieces of NAME_LENGTH elements for each of them, where `threads` are those of a team, or for
 *               #FA_PIECES pieces, however short the row is, if they are given; NULL: the row stays where it is, and NAME_get() reads it (but if #FA_PIECES are given, whose slots are always written)
 *  @param v     the row
 *  @param fill  the value of elements outside the row */
void NAME_hold(NAME_held *held, void *slot0, const NAME_view *v, float fill);

#if defined(DOXYGEN) || defined(FA_REFERENCE_ROW_80)
/** For words in registers: from now on NAME_get() makes floats anew, which need no registers until then (GPU, with #FA_HOLD FA_FRAGMENT).
 *  @param held what holds the row
 *  @param none 0, which the compiler must not know */
void NAME_renew(NAME_held *held, int none);
#endif

/** Returns when all that the calling thread holds has arrived. */
void NAME_wait(void);

/** Reads a piece of what is held.
 *  @param x     NAME_LENGTH floats, of which NAME_count() are written
 *  @param held  after NAME_wait()
 *  @param v     the row that NAME_hold() was given
 *  @param piece 0 to NAME_held_pieces() - 1 */
void NAME_get(float *x, const NAME_held *held, const NAME_view *v, int64_t piece);

/** A piece of what is held, to be looked at only: read as NAME_get() does, or left where it is.
 *  @param x     NAME_LENGTH floats, which may be written
 *  @param held  after NAME_wait()
 *  @param v     the row that NAME_hold() was given
 *  @param piece 0 to NAME_held_pieces() - 1
 *  @return NAME_count() elements, in `x` or in the row: there until the row is written */
const float *NAME_look(float *x, const NAME_held *held, const NAME_view *v, int64_t piece);

/** Prefetches what follows a piece in memory, for code that computes long before it reads that: a hint, whose address need not
 *  exist. Does nothing on GPUs.
 *  @param v     the row
 *  @param piece the piece that is read now */
void NAME_ahead(const NAME_view *v, int64_t piece);

/** Pieces of a held row.
 *  @param v the row
 *  @return with #FA_HOLD FA_FRAGMENT on GPUs #FA_PIECES, or 1 if they are not known; else NAME_pieces() */
int64_t NAME_held_pieces(const NAME_view *v);

/** Whether the caller had better keep the floats of rows than get them again.
 *  @param v       one of the rows
 *  @param tensors how many such rows
 *  @return whether; if so, all pieces of all rows, at most NAME_KEPT of each */
int NAME_keeps(const NAME_view *v, int tensors);

/** A row that is read only once, with a piece in flight while the one before is used (GPU).
 *  @param row  element 0, aligned to its type
 *  @param cols elements
 *  @param team who shares it
 *  @return the caller's view: of the first piece */
NAME_scan NAME_scan_of(const void *row, int64_t cols, const fa_team *team);

/** Starts reading the first piece.
 *  @param f    written
 *  @param s    the row
 *  @param fill the value of elements outside the row */
void NAME_scan_begin(NAME_flight *f, NAME_scan *s, float fill);

/** Whether the row has all of the next piece.
 *  @param s the row
 *  @return whether it has */
int NAME_scan_full(const NAME_scan *s);

/** Whether the row has any of the next piece: also where it has all of it.
 *  @param s the row
 *  @return whether it has */
int NAME_scan_more(const NAME_scan *s);

/** Elements of a part that x[] has.
 *  @param s the row
 *  @return NAME_PART on GPUs, a constant; a multiple of 16 on the CPU */
int NAME_scan_count(const NAME_scan *s);

/** A part of the piece, once it has arrived.
 *  @param x    NAME_PART floats, of which NAME_scan_count() are written
 *  @param f    the piece
 *  @param s    the row
 *  @param part 0 to NAME_PARTS - 1
 *  @param fill that of NAME_scan_begin() */
void NAME_scan_land(float *x, const NAME_flight *f, const NAME_scan *s, int part, float fill);

/** Starts reading a part of the next piece, after NAME_scan_land() of it.
 *  @param f    the piece
 *  @param s    the row
 *  @param part 0 to NAME_PARTS - 1
 *  @param full NAME_scan_full()
 *  @param fill that of NAME_scan_begin() */
void NAME_scan_start(NAME_flight *f, const NAME_scan *s, int part, int full, float fill);

/** Goes on to the next piece, all of whose parts have been started.
 *  @param f the piece
 *  @param s the row */
void NAME_scan_next(NAME_flight *f, NAME_scan *s);

/** Gives elements outside the row a value.
 *  @param x     what NAME_scan_land() wrote
 *  @param f     the piece
 *  @param s     the row
 *  @param part  0 to NAME_PARTS - 1
 *  @param value what they become */
void NAME_scan_pad(float *x, const NAME_flight *f, const NAME_scan *s, int part, float value);

/** Elements at the row's ends that are in no piece, and that the caller has to handle itself. All threads of the team are told
 *  the same ones: each takes those with i % team.threads == team.thread.
 *  @param s the row
 *  @return how many; 0 on the CPU */
int NAME_scan_edges(const NAME_scan *s);

/** The column of one of those.
 *  @param s the row
 *  @param i 0 to NAME_scan_edges() - 1
 *  @return its column */
int64_t NAME_scan_edge(const NAME_scan *s, int i);

/** Adds to the element of a column, in the thread that has it.
 *  @param x     NAME_count() floats
 *  @param v     the row
 *  @param piece from 0 on
 *  @param col   the column
 *  @param value what is added */
void NAME_add_at(float *x, const NAME_view *v, int64_t piece, int64_t col, float value);
#endif
#if defined(DOXYGEN)
/** The largest of the piece, as NAME_max_of() of fa/reduce.h has it (GPU).
 *  @param f     the piece
 *  @param start the result if all are smaller
 *  @return the largest */
float NAME_scan_max(const NAME_flight *f, float start);

/** An element as a float, whose load is waited for only here.
 *  @param element of the type FA_DTYPE
 *  @return its value */
float NAME_late(uint16_t element);
#endif
/** @} */

/** @defgroup reduce Generated by fa/reduce.h
 *  Reductions over a thread's elements and over the threads of a team, called inside kernels; made with #FA_BLOCKS.
 *  @{ */
#if defined(DOXYGEN)
/** Shared memory of a block for the reductions of its teams. Place it in shared memory (GPU) or anywhere (CPU). */
typedef struct NAME_shared NAME_shared;
#endif
#if defined(DOXYGEN) || defined(FA_REFERENCE_REDUCE)
/** The caller's team: neighbouring lanes of its warp, or else its block.
 *  @param threads 1, 2, 4, 8, 16 or 32, of which a block may have several teams; or all threads of the block, a multiple of 32
 *  @return the team; of one thread on the CPU */
fa_team NAME_team(int threads);

/** All threads of the caller's cluster.
 *  @param blocks of the cluster: 1 to #FA_BLOCKS
 *  @return the team; of one thread on the CPU */
fa_team NAME_cluster(int blocks);

/** The largest of a thread's elements; NaNs are ignored.
 *  @param x     the elements
 *  @param count how many: a constant on GPUs, a multiple of 16 on the CPU
 *  @param start the result if all are smaller
 *  @return the largest */
float NAME_max_of(const float *x, int count, float start);

/** Their sum.
 *  @param x     the elements
 *  @param count as for NAME_max_of()
 *  @return the sum of x[i] */
float NAME_sum_of(const float *x, int count);

/** The dot product of two arrays.
 *  @param x     the elements
 *  @param y     as many
 *  @param count as for NAME_max_of()
 *  @return the sum of x[i] * y[i] */
float NAME_dot_of(const float *x, const float *y, int count);

/** The sum of squares about a number.
 *  @param x      the elements
 *  @param count  as for NAME_max_of()
 *  @param center the number
 *  @return the sum of (x[i] - center)^2 */
float NAME_squares_of(const float *x, int count, float center);

/** Turns elements into exponentials.
 *  @param x          the elements, which become 2^((x[i] - base) * scale_log2)
 *  @param count      as for NAME_max_of()
 *  @param base       their largest, or another number that no difference from overflows; finite: fmaxf(largest, -1e30f) where a thread may see
 *                    nothing, since -inf - -inf is NaN
 *  @param scale_log2 log2(e) for the exponential function
 *  @return the sum of what they become */
float NAME_exp_of(float *x, int count, float base, float scale_log2);

/** The same, but the elements stay as they are.
 *  @param to         gets what the elements become; may be x
 *  @param x          the elements
 *  @param count      as for NAME_max_of()
 *  @param base       as for NAME_exp_of()
 *  @param scale_log2 as for NAME_exp_of()
 *  @return the sum of to[i] */
float NAME_exp_to(float *to, const float *x, int count, float base, float scale_log2);

/** The same sum, but nothing is written.
 *  @param x          the elements
 *  @param count      as for NAME_max_of()
 *  @param base       as for NAME_exp_of()
 *  @param scale_log2 as for NAME_exp_of()
 *  @return the sum of 2^((x[i] - base) * scale_log2) */
float NAME_exp_sum_of(const float *x, int count, float base, float scale_log2);

/** Merges what is known of two sets of numbers (Chan, Golub and LeVeque, 1979). An empty one has mean 0 and squares 0.
 *  @param count         numbers of a set; becomes that of both
 *  @param mean          their mean; likewise
 *  @param squares       the sum of (x - mean)^2; likewise
 *  @param other_count   of the other set
 *  @param other_mean    of the other set
 *  @param other_squares of the other set */
void NAME_merge(float *count, float *mean, float *squares, float other_count, float other_mean, float other_squares);

/** The largest value of a team's threads, in all of them.
 *  @param x      the caller's
 *  @param team   all of whose threads call
 *  @param shared of the block
 *  @return the largest */
float NAME_max(float x, fa_team *team, NAME_shared *shared);

/** The sum of the values of a team's threads, in all of them.
 *  @param x      the caller's
 *  @param team   all of whose threads call
 *  @param shared of the block
 *  @return the sum, added in an order that depends on the number of threads alone */
float NAME_sum(float x, fa_team *team, NAME_shared *shared);

/** Two sums at once.
 *  @param a      the caller's; becomes the sum
 *  @param b      likewise
 *  @param team   all of whose threads call
 *  @param shared of the block */
void NAME_sum2(float *a, float *b, fa_team *team, NAME_shared *shared);

/** Merges what the threads know of their numbers, as NAME_merge() does: *squares / *count is the variance of all.
 *  @param count   the caller's; becomes that of all
 *  @param mean    likewise
 *  @param squares likewise
 *  @param team    all of whose threads call
 *  @param shared  of the block */
void NAME_moments(float *count, float *mean, float *squares, fa_team *team, NAME_shared *shared);

#if defined(DOXYGEN) || defined(FA_REFERENCE_REDUCE_80)
/** The sum over the threads of a warp that are in the team (GPU).
 *  @param x    the caller's
 *  @param team all of whose threads call
 *  @return     the same in all of them */
float NAME_lanes_sum(float x, const fa_team *team);
#endif

#if defined(DOXYGEN) || defined(FA_REFERENCE_MOMENTS_80)
/** As NAME_moments(), of numbers that the threads of a warp, or of a team within one, know together (GPU).
 *  @param count   of the caller's warp; becomes that of all, as the others do
 *  @param mean    likewise
 *  @param squares likewise
 *  @param team    all of whose threads call
 *  @param shared  of the block */
void NAME_warps_moments(float *count, float *mean, float *squares, fa_team *team, NAME_shared *shared);
#endif

/** Merges the states of an online softmax.
 *  @param max        the caller's largest; becomes that of all
 *  @param sum        its sum of exponentials relative to that; becomes the sum relative to the largest of all
 *  @param scale_log2 as for NAME_exp_of()
 *  @param team       all of whose threads call
 *  @param shared     of the block */
void NAME_softmax(float *max, float *sum, float scale_log2, fa_team *team, NAME_shared *shared);
#endif
/** @} */

#if defined(DOXYGEN)
/* Names of other headers that have no room there for a sentence of their own. */

/** @def FA_EXTERN
 *  A value of #FA_API: external linkage with a C name. One file instantiates, others use #FA_DECLARE. */
/** @def FA_UNUSED
 *  Attribute of a function that a file may leave unused without a warning. */
/** @def FA_HOOK
 *  Every hook and every mask function starts with this: a function that is inlined into kernels, on every
 *  architecture. */

/** @fn int fa_causal_keep(const void *user, fa_index at)
 *  Whether a query sees a key: keys up to the query's own position, bottom-right aligned. */
/** @fn fa_tile_class fa_causal_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither. */
/** @fn fa_range fa_causal_keys(const void *user, fa_box box)
 *  The keys of a block that some query of it may see. */
/** @fn fa_range fa_causal_queries(const void *user, fa_box box)
 *  The queries of a block that may see some key of it. */

/** @fn int fa_causal_top_left_keep(const void *user, fa_index at)
 *  Whether a query sees a key: keys up to the query's own number. */
/** @fn fa_tile_class fa_causal_top_left_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither. */
/** @fn fa_range fa_causal_top_left_keys(const void *user, fa_box box)
 *  The keys of a block that some query of it may see. */
/** @fn fa_range fa_causal_top_left_queries(const void *user, fa_box box)
 *  The queries of a block that may see some key of it. */

/** @fn int fa_sliding_window_keep(const void *user, fa_index at)
 *  Whether a query sees a key: keys from position - window_left to position + window_right. */
/** @fn fa_tile_class fa_sliding_window_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither. */
/** @fn fa_range fa_sliding_window_keys(const void *user, fa_box box)
 *  The keys of a block that some query of it may see. */
/** @fn fa_range fa_sliding_window_queries(const void *user, fa_box box)
 *  The queries of a block that may see some key of it. */

/** @fn int fa_prefix_keep(const void *user, fa_index at)
 *  Whether a query sees a key: the first prefix[batch] keys, and causally beyond. */
/** @fn fa_tile_class fa_prefix_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither. */
/** @fn fa_range fa_prefix_keys(const void *user, fa_box box)
 *  The keys of a block that some query of it may see. */
/** @fn fa_range fa_prefix_queries(const void *user, fa_box box)
 *  The queries of a block that may see some key of it. */

/** @fn int fa_document_keep(const void *user, fa_index at)
 *  Whether a query sees a key: keys of the query's own document. */
/** @fn fa_tile_class fa_document_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither. */
/** @fn fa_range fa_document_keys(const void *user, fa_box box)
 *  The keys of a block that some query of it may see. */
/** @fn fa_range fa_document_queries(const void *user, fa_box box)
 *  The queries of a block that may see some key of it. */

/** @fn int fa_causal_document_keep(const void *user, fa_index at)
 *  Whether a query sees a key: keys of the query's own document up to its own position. */
/** @fn fa_tile_class fa_causal_document_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither. */
/** @fn fa_range fa_causal_document_keys(const void *user, fa_box box)
 *  The keys of a block that some query of it may see. */
/** @fn fa_range fa_causal_document_queries(const void *user, fa_box box)
 *  The queries of a block that may see some key of it. */

/** @fn int fa_span_keep(const void *user, fa_index at)
 *  Whether a query sees a key: span_begin <= key < span_end, of the query. */
/** @fn fa_tile_class fa_span_tile(const void *user, fa_box box)
 *  Whether a block is empty, full or neither; exactly. */
/** @fn fa_range fa_span_keys(const void *user, fa_box box)
 *  The keys of a block from the first that some query of it sees to the last. */
/** @fn fa_range fa_span_queries(const void *user, fa_box box)
 *  All queries of a block. */

/** @fn float fa_alibi(const void *user, float score, fa_index at)
 *  Score hook: score - alibi_slopes[head] * |distance|. */
/** @fn float fa_alibi_grad(const void *user, float score, fa_index at)
 *  Its derivative with respect to the score. */

/** @fn float fa_softcap(const void *user, float score, fa_index at)
 *  Score hook: softcap * tanh(score / softcap). Outside a chain it takes caps from 1e-30 to 1e8; a cap of 1e8
 *  leaves scores up to 4e4 unchanged as floats. */
/** @fn float fa_softcap_grad(const void *user, float score, fa_index at)
 *  Its derivative with respect to the score. */

/** @fn float fa_bias(const void *user, float score, fa_index at)
 *  Score hook: score + bias[batch][head][query][key]. */
/** @fn float fa_bias_grad(const void *user, float score, fa_index at)
 *  Its derivative with respect to the score. */

/** @fn float fa_key_bias(const void *user, float score, fa_index at)
 *  Score hook: score + key_bias[batch][head][key]. */
/** @fn float fa_key_bias_grad(const void *user, float score, fa_index at)
 *  Its derivative with respect to the score. */

/** @def FA_SCORE_CHAIN_GRAD
 *  Defines name_grad, the derivative of FA_SCORE_CHAIN(name, f, g), from f_grad and g_grad. */
/** @fn float fa_silu(const void *user, float x)
 *  Activation: x / (1 + exp(-x)).
 *  @param user ignored
 *  @param x    the gate
 *  @return the activation of it */
/** @fn float fa_silu_grad(const void *user, float x)
 *  Its derivative. */
/** @fn float fa_gelu(const void *user, float x)
 *  Activation: x (1 + erf(x / sqrt(2))) / 2. */
/** @fn float fa_gelu_grad(const void *user, float x)
 *  Its derivative. */
/** @fn float fa_relu(const void *user, float x)
 *  Activation: x above 0, else 0. */
/** @fn float fa_relu_grad(const void *user, float x)
 *  Its derivative: 0 at 0. */
/** @var fa_random4::word
 *  The words, in the order of the paper. */
/** @var fa_dropout::seed
 *  Of the call. */
/** @var fa_dropout::offset
 *  The counter of element 0. */
/** @var fa_dropout::threshold
 *  fa_dropout_threshold() of the probability. */
/** @var fa_row_softmax_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_layernorm_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_rmsnorm_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_cross_entropy_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_swiglu_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_rope_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_team::thread
 *  The caller's number in the team. */
/** @var fa_team::block
 *  The caller's block in its cluster: 0 without one. */
/** @var fa_tensor::data
 *  Element (0, 0, 0, 0), aligned to 16 bytes. */
/** @var fa_tensor::stride_batch
 *  Elements from one sequence to the next. */
/** @var fa_tensor::stride_head
 *  Elements from one head to the next. */
/** @var fa_tensor::stride_seq
 *  Elements from one position to the next. */
/** @var fa_attention_args::bias_stride_batch
 *  Elements from one sequence's bias to the next; 0 broadcasts. */
/** @var fa_attention_args::bias_stride_head
 *  Elements from one head's bias to the next; 0 broadcasts. */
/** @var fa_attention_args::key_bias_stride_batch
 *  Elements from one sequence's key bias to the next; 0 broadcasts. */
/** @var fa_attention_args::key_bias_stride_head
 *  Elements from one head's key bias to the next; 0 broadcasts. */
/** @var fa_attention_args::workspace_bytes
 *  Bytes at workspace. */
/** @var fa_block::rows
 *  Rows of the matrix, 0 or more: what lies outside reads as zero. */
/** @var fa_box::args
 *  The call's arguments. */
/** @var fa_box::batch
 *  Which sequence. */
/** @var fa_box::head
 *  Which query head. */
/** @var fa_box::head_kv
 *  Which key and value head. */
/** @var fa_box::queries
 *  Rows of the block, inside the sequence. */
/** @var fa_index::batch
 *  Which sequence. */
/** @var fa_index::head
 *  Which query head. */
/** @var fa_index::head_kv
 *  Which key and value head. */
/** @var fa_index::query
 *  Row of the score matrix. */
/** @var fa_index::key
 *  Column of the score matrix. */
/** @var fa_plan::block_m
 *  Queries of a tile. */
/** @var fa_range::begin
 *  First position. */
/** @var fa_range::end
 *  One past the last position. */
#endif
