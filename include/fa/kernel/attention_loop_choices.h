/* attention_loop_choices.h: what the schedule for every GPU chooses by mask, hook and head dimension, beside its
 * tiles (attention_tiles.h): what it keeps in registers, and in which order it works (doc/log.md). */
#include <fa/arch/sm80/layout.h>
#include <fa/arch/targets.h>

/* Whether there is a bias of half types; whether there is a hook of one's own (FA__OWN_HOOK of the sm_90a schedule). */
#define FA__BIAS_HALVES (FA__IS_HALF && FA__SCORE_NEEDS == FA__NEED_BIAS)
#define FA__OWN_SCORE (FA__HAS_SCORE && !FA__SCORE_NEEDS)

/* Whether Q's fragments stay in registers: where they fit, this saves reading them for every tile. Hooks, and masks
 * that read memory, need registers, too; with 32 rows a warp a bias under a mask needs them all (at 64 1.1 to 1.4
 * times as fast if it is in registers itself, 1.00 to 1.03 if not). */
#define FA__WARP_ROWS (FA_BLOCK_M / FA_WARPS)
#define FA__KEEP_MOST                                                                       \
    (FA__WARP_ROWS == 16 ? (FA__MASK_READS && FA__SCORE_NEEDS == FA__NEED_BIAS ? 200 : 210) \
     : FA__SCORE_NEEDS == FA__NEED_BIAS && FA__HAS_MASK ? 0                                 \
     : FA__COLUMNS == FA__NEED_ALIBI && FA__MASK_READS  ? 150                               \
                         : (FA__HAS_SCORE || (FA__HAS_MASK && !FA__MASK_IS_BAND) ? 170 : 190))
#define FA__KEEP_Q                                             \
    (FA__ARCH == 80 && FA__IS_HALF && FA_HEAD_DIM % 16 == 0 && \
     FA__WARP_ROWS * (FA_HEAD_DIM_V + FA_BLOCK_N) / 32 + FA__WARP_ROWS * FA_HEAD_DIM / 64 <= FA__KEEP_MOST)

/* Whether Q, K and V are split into pairs of halves, or for FA_TF32 made halves (arch/sm80/tile_pairs.h). */
#define FA__PAIRS (FA__ARCH == 80 && !FA__IS_HALF)
/* Whether O is in units of its rows until the end (arch/sm80/mma_pairs.h). */
#define FA__IN_UNITS (FA__PAIRS && FA_DTYPE == FA_TF32)

/* Whether Q is loaded while the mask is asked for the first tile (2 to 4% faster where query blocks are short). That
 * costs registers, which types other than FA_F32 do not have at 72 to 128 before sm_90, nor with ALiBi from 88 to
 * 128. */
#if FA__HAS_MASK && (!FA__BEFORE_90 || FA_DTYPE == FA_F32 || FA_HEAD_DIM <= 64 || FA_HEAD_DIM > 128) && \
    !(FA__COLUMNS == FA__NEED_ALIBI && FA_HEAD_DIM > 80 && FA_HEAD_DIM <= 128)
#define FA__EARLY_Q 1
#else
#define FA__EARLY_Q 0
#endif

/* GPUs with 99 KB of shared memory per block (sm_86, sm_89, sm_120), and sm_87, get one stage, unless tiles are made
 * for them: kernel and host decide alike (FA__SMALL_SHARED, fa__compiled_for()). */
#if defined(__CUDA_ARCH__) && FA__SMALL_SHARED(__CUDA_ARCH__ / 10) && !FA__SCARCE
#define FA__STAGES 1
#define FA__LITTLE_SHARED 1
#else
#define FA__STAGES FA_STAGES
#define FA__LITTLE_SHARED 0
#endif

/* Whether half types look at the maximum of a tile only after its exponentials, taking the tile in halves
 * (attention_loop.h). */
#if FA__ARCH == 80 && FA__IS_HALF && FA__STAGES == 2 && FA_BLOCK_N % 32 == 0
#define FA__AFTERWARDS 1
#else
#define FA__AFTERWARDS 0
#endif

/* Whether tiles of a bias of half types come by way of shared memory (attention_bias_room.h): under masks 1.0 to
 * 1.45 times as fast, without one from 72 to 112 1.0 to 1.2 times, elsewhere up to 6% slower. Not for tiles of the
 * user's, beside which there may be no room; nor where a target has 164 KB (sm_80) and would lose the second of two
 * thread blocks by it. */
#define FA__TILES_BYTES \
    (FA_BLOCK_M * FA__SM80_PITCH(FA__WIDEST, 2) + FA_STAGES * FA_BLOCK_N * (FA__SM80_PITCH(FA_HEAD_DIM, 2) + FA__SM80_PITCH(FA_HEAD_DIM_V, 2)))
#define FA__STAYS_BESIDE(bytes) ((bytes) <= 80 * 1024) /* another block like it */
#define FA__HAS_ROOM                                                              \
    (!FA__ANY_TARGET(FA__HAS_164_KB, 1) || !FA__STAYS_BESIDE(FA__TILES_BYTES) || \
     FA__STAYS_BESIDE(FA__TILES_BYTES + FA_BLOCK_M * FA__SM80_PITCH(FA_BLOCK_N, 2)))
#define FA__GAINS_BY_ROOM (FA__HAS_MASK ? !(FA__MASK_IS_PREFIX && FA__WIDEST > 112 && FA__WIDEST <= 128) : FA__WIDEST > 64 && FA__WIDEST <= 112)
#if FA__AFTERWARDS && FA__BIAS_HALVES && !FA__SCARCE && !FA__SIZED && FA__GAINS_BY_ROOM && FA__HAS_ROOM
#define FA__BIAS_ROOM 1
#else
#define FA__BIAS_ROOM 0
#endif

/* Whether a bias is loaded before the product where nothing is deferred to the exponentials: 1.0 to 1.9 times as
 * fast. Registers are short for FA_F32 where there is little shared memory, beyond 64; elsewhere from 105 to 128
 * under masks; and before sm_90 beyond 104. So they are for 32-bit types before sm_90 under masks that read memory.
 * (Half types spill up to 160 bytes, and are faster for all that.) */
#define FA__ADDENDS_FIT                                                                                                                          \
    (FA__IS_HALF ||                                                                                                                               \
     (!(FA__BEFORE_90 && FA__MASK_READS) &&                                                                                                       \
      (FA_DTYPE == FA_TF32 || FA__WIDEST <= 64 || (!FA__LITTLE_SHARED && (FA__WIDEST <= 104 || (!FA__BEFORE_90 && (FA__WIDEST > 128 || !FA__HAS_MASK)))))))
#if FA__ARCH == 80 && FA__SCORE_NEEDS == FA__NEED_BIAS && !FA__AFTERWARDS && FA__ADDENDS_FIT
#define FA__ADDENDS_AHEAD 1
#else
#define FA__ADDENDS_AHEAD 0
#endif

/* In how many parts Q K^T is computed then. Two parts hide all exponentials, but read Q's fragments twice where
 * these are not kept: at head dimensions 64 and 96 they are 9 to 13% faster than a maximum found first, at 128 no
 * faster, while one part is 3% faster there, and 7 and 4% at 192 and 256. Beyond 96 there are two parts for a soft
 * cap, which is deferred to the exponentials and gains from being hidden, too; and, for the registers, for hooks of
 * one's own under masks that are no bands (elsewhere one part is 2 to 10% faster) or before sm_90, for masks that
 * read memory, for a prefix before sm_90 or with columns of a hook, and for biases of keys under a window. Up to 96
 * (before sm_90 up to 72, since it would spill) a bias in registers is up to 1.5 times as fast with one part, for
 * there is more time between its loads and its use; and ALiBi's columns under a prefix, from 72 on, 1.01 to 1.05
 * times. A bias in shared memory is up to 7% faster with one part up to 88, but up to 19% slower up to 16, and under
 * a window up to 32, unless the mask reads memory. */
#define FA__HOOK_IN_PARTS                                                                \
    (FA__SCORE_NEEDS == FA__NEED_SOFTCAP || (FA__COLUMNS == FA__NEED_KEY_BIAS && FA__MASK_IS_BAND > 1) || \
     (FA__OWN_SCORE && (FA__BEFORE_90 || (FA__HAS_MASK && !FA__MASK_IS_BAND))))
#define FA__MASK_IN_PARTS (FA__MASK_READS || ((FA__BEFORE_90 || FA__COLUMNS) && FA__MASK_IS_PREFIX && !FA__HAS_SCORE))
#define FA__ROOM_IN_ONE (FA__WIDEST <= 88 && (FA__MASK_READS || FA__WIDEST > (FA__MASK_IS_BAND > 1 ? 32 : 16)))
#define FA__ONE_PART ((FA__BIAS_HALVES && (FA__BIAS_ROOM ? FA__ROOM_IN_ONE : !(FA__BEFORE_90 && FA__WIDEST > 72))) || (FA__COLUMNS == FA__NEED_ALIBI && FA__MASK_IS_PREFIX && FA__WIDEST > 64))
#if FA__AFTERWARDS && FA_BLOCK_N % 64 == 0 && (FA__WIDEST <= 96 ? !FA__ONE_PART : FA__WIDEST <= 128 && (FA__HOOK_IN_PARTS || FA__MASK_IN_PARTS))
#define FA__PARTS 2
#else
#define FA__PARTS 1
#endif

/* Whether values that follow from a thread block's number (its head, its queries, their addresses) are recomputed
 * where they are needed instead of being held in registers, up to ten. Where memory is read for masks or hooks this
 * is 1 to 8% faster than the spills that it saves, with a causal mask and a hook 1% faster to 5% slower. So it is
 * done for FA_F32 before sm_90, or where a mask meets a hook, except where nothing spills; for masks that read
 * memory, with 32-bit types or before sm_90 beyond 128; for half types up to 128 that would spill, or have a bias
 * (in shared memory only from 80 to 88); for columns of a hook before sm_90; and for ample tiles. */
#define FA__ANEW_HOOK                                                                \
    (FA__HAS_MASK && FA__HAS_SCORE &&                                                \
     (FA__WIDEST > 128 || (FA__WIDEST <= 96 && FA__SCORE_NEEDS == FA__NEED_ALIBI) || \
      (FA__WIDEST > 96 && FA__SCORE_NEEDS != FA__NEED_ALIBI && FA__SCORE_NEEDS != FA__NEED_BIAS)))
#define FA__ANEW_FLOATS                       \
    (FA_DTYPE == FA_F32 && FA__WIDEST > 64 && \
     (FA__BEFORE_90 ? !(FA__WIDEST > 96 && FA__WIDEST <= 128 && FA__MASK_IS_BAND && FA__HAS_SCORE) : FA__ANEW_HOOK))
#define FA__ANEW_MASK (FA__MASK_READS && (!FA__IS_HALF || (FA__BEFORE_90 && FA__WIDEST > 128)))
/* A bias of half types: as measured; the other choice is up to 1.2 times slower. */
#define FA__ANEW_BIAS                                                                           \
    (FA__BIAS_HALVES &&                                                                          \
     (FA__BIAS_ROOM                      ? FA__MASK_READS && FA__WIDEST > 72 && FA__WIDEST <= 88 \
      : FA__BEFORE_90 || FA__WIDEST > 96 ? FA__MASK_READS                                        \
      : FA__MASK_NEEDS == FA__NEED_SPAN  ? FA__WIDEST > 48 && FA__WIDEST <= 80                   \
      : FA__MASK_READS                   ? FA__WIDEST > 24 && FA__WIDEST <= 88                   \
                                         : FA__WIDEST == 80 && !FA__MASK_IS_BAND))
#define FA__ANEW_HALVES                                                       \
    (FA__IS_HALF && !FA__BEFORE_90 && FA__WIDEST > 64 && FA__WIDEST <= 128 && \
     (FA__MASK_READS ? !FA__HAS_SCORE : !FA__HAS_MASK && FA__COLUMNS == FA__NEED_ALIBI && FA__WIDEST <= 96))
#if FA__ARCH == 80 && (FA__AMPLE || FA__ANEW_FLOATS || FA__ANEW_MASK || FA__ANEW_BIAS || FA__ANEW_HALVES || (FA__BEFORE_90 && FA__COLUMNS))
#define FA__ANEW 1
#else
#define FA__ANEW 0
#endif
