/* attention_warpgroups_choices.h: what the sm_90a schedule chooses by mask, hook and head dimension, beside its
 * tiles (attention_tiles.h): warpgroups, registers, and what was found by measurement (doc/log.md). */

/* Whether there is a mask that is not a band. */
#define FA__NO_BAND (FA__HAS_MASK && !FA__MASK_IS_BAND)

/* Consumer warpgroups of a team; whether they take turns; and the registers per thread of consumers and producers. A
 * launch gives each thread 168 with two consumer warpgroups, 128 with three, 96 with four, in two teams, and with
 * one what that one asks for: a request for more in all would wait forever. */
#if FA__TEAMS == 2
#define FA__GROUPS 2
#define FA__TURNS FA__SOFT_CAP /* whose polynomial needs them (FA__CURVED); elsewhere as fast or 1% faster without: the other team fills the gaps */
#define FA__REGISTERS 112
#define FA__PRODUCER_REGISTERS 32
#elif FA_WARPS == 12
#define FA__GROUPS 3
#define FA__TURNS 1
#define FA__REGISTERS 160
#define FA__PRODUCER_REGISTERS 32
#else
#if FA_WARPS == 8
#define FA__GROUPS 2
#define FA__TURNS 1
#else
#define FA__GROUPS 1
#define FA__TURNS 0
#endif
/* With a user's hook under a band, or that or a soft cap under a prefix up to 96, 1 to 6% faster than the next line;
 * without one no faster. */
#if !FA__HAS_MASK || (FA__HOOKED && FA__WIDEST > 64 && ((FA__MASK_IS_BAND && !FA__SCORE_NEEDS) || (FA__MASK_IS_PREFIX && FA__WIDEST <= 96)))
#define FA__REGISTERS 240
#define FA__PRODUCER_REGISTERS 24
#elif FA__MASK_IS_BAND /* the planner classifies tiles */
#define FA__REGISTERS 232
#define FA__PRODUCER_REGISTERS 40
#else /* and may read memory */
#define FA__REGISTERS 224
#define FA__PRODUCER_REGISTERS 56
#endif
#endif

/* Whether O is sent by warps of its own (attention_sender.h), one for each of two warpgroups. Measured: 0 to 3%
 * faster where it is 1 (masks of one's own, and 97 to 111, follow their neighbours), elsewhere up to 6% slower. */
#if FA__GROUPS != 2 || FA__TEAMS == 2 || FA__WIDEST <= 80 || FA__WIDEST > 128 || FA__COLUMNS || FA__BIAS_TILES || FA__SOFT_CAP
#define FA__SENDS 0
#elif FA__NO_BAND
#define FA__SENDS 1
#elif FA__HAS_MASK && !FA__HAS_SCORE
#define FA__SENDS (FA__WIDEST > 96 && FA__WIDEST <= 120)
#else
#define FA__SENDS (FA__WIDEST > 112)
#endif

/* Whether each warpgroup of a team has notes of its own, about what the mask leaves of a tile to its 64 queries, not
 * to the team's 128: with tiles of 64 keys, half of those that the mask looks at are whole for one warpgroup and
 * empty for the other, which skips them. (With turns that is slower, since others cannot use its turn; a buffer of a
 * bias would have to be given back, too; masks of one's own spill.) FA__READERS: how many there are. */
#if FA__TEAMS == 2 && !FA__TURNS && FA__HAS_MASK && !FA__MASK_IS_OWN && !FA__BIAS_TILES && FA_BLOCK_N >= 32 && FA_STAGES > 1
#define FA__OWN_NOTES 1
#define FA__READERS FA__GROUPS
#else
#define FA__OWN_NOTES 0
#define FA__READERS 1
#endif
/* Whether it may also skip a block's first tile: where tiles come from the diagonal on, whose first one half of the
 * queries do not see. */
#define FA__SKIPS_FIRST (FA__OWN_NOTES && FA__LINES)

/* Whether there is a hook of one's own. */
#define FA__OWN_HOOK (FA__HOOKED && !FA__SOFT_CAP)

/* Whether a block's first maximum is taken from a quarter of the columns, and checked afterwards like the others: up
 * to 3% faster, but with a user's hook that spills. */
#define FA__GUESSES (!FA__OWN_HOOK)

/* Whether exponents are computed as if no maximum were large, and recomputed where one is: this saves an instruction
 * per score. */
#define FA__NEAR FA__WIDE_SCORE

/* Whether registers do not suffice for what other instances up to head dimension 64 do: 16 bytes would be spilled. */
#define FA__CRAMPED (FA__BIAS_TILES && FA__GROUPS == 3 && FA__WIDEST > 56)

/* Whether a maximum is tested for being large, or not there yet, only when it changes: up to 8% faster, with a
 * user's hook up to 5%, but beyond 96 up to 10% slower, because the assembler orders the exponentials differently. */
#define FA__FAR_KEPT (FA__NEAR && (FA__COLUMNS || FA__BIAS_TILES || FA__WIDEST <= 96) && !FA__CRAMPED)

/* A row that has seen nothing yet is asked about, too: its scores may all be below -1e30. (Where registers are short
 * that spills, and without FA__NEAR a bias is 3% slower there: doc/numerics.md, "Low scores".) */
#define FA__FAR(c) FA__LOOP(_softmax_far)(&(c)->state, FA__LOOP(_to_natural)((c)->p), !FA__CRAMPED)

/* Whether the planner remembers what it has learnt of tiles of keys, each lane for the same tiles in every block. */
#define FA__REMEMBERS (FA__MASK_NEEDS & FA__NEED_DOCUMENT)

/* Whether the planner's code for the next tile is there twice: under bands, where it is short, 2% faster at 32 and
 * 48; but 8 bytes are spilled with ALiBi. */
#define FA__PLANS_TWICE (FA__MASK_IS_BAND && FA__COLUMNS != FA__NEED_ALIBI)

/* Whether the planner keeps in shared memory what it can, since it would spill 16 bytes. */
#define FA__PLANS_TIGHT (FA__OWN_NOTES && FA__MASK_READS && (FA__OWN_HOOK || FA__ROUND_TRIP))

/* With ALiBi the tile of the diagonal comes first, so that the maximum does not grow from tile to tile: then those
 * before it and those behind it (FA__LINES); or, where the planner remembers tiles by 32s, those behind it, and from
 * the first one on the others (FA__ROUND_TRIP). */
#define FA__LINES (FA__COLUMNS == FA__NEED_ALIBI && !FA__REMEMBERS)
#define FA__ROUND_TRIP (FA__COLUMNS == FA__NEED_ALIBI && FA__REMEMBERS)

/* Whether a note tells the tiles that the diagonal crosses, where ALiBi's lines bend, from those that the mask looks
 * at: 1 to 4% faster where these are not mostly the same, up to 2% slower elsewhere. A note has room for that if
 * tiles are not too many. */
#define FA__BENDS_APART (FA__COLUMNS == FA__NEED_ALIBI && FA__NO_BAND && !(FA__MASK_NEEDS & FA__WITH_CAUSAL) && FA_BLOCK_N >= 64)

/* Whether the first tile of a block is, of those that need no mask, the one with the roundest number, after which
 * come those behind it and then those before it: neighbours under a window, which all begin at about the same time,
 * then begin with the same tile, and wait less for memory. Up to 3% faster with two warpgroups, but up to 2% slower
 * up to 80, with two teams or with three warpgroups. */
#define FA__ROUND_FIRST (FA__MASK_IS_BAND > 1 && !FA__LINES && FA__GROUPS == 2 && FA__WIDEST > 80)

/* Whether there are ALiBi's columns and no others, and no window, with which 16 bytes would be spilled. */
#define FA__ALIBI_ALONE (FA__COLUMNS == FA__NEED_ALIBI && FA__MASK_IS_BAND < 2)

/* Whether there are documents and a hook of one's own; whether there is no mask but a causal one, and a hook at 192
 * as well. */
#define FA__DOCUMENTS_OWN (FA__REMEMBERS && FA__OWN_HOOK)
#define FA__CAUSAL_AT_MOST (!FA__HAS_MASK || FA__MASK_IS_BAND == 1)
#define FA__HOOKED_192 (FA__HOOKED && FA__WIDEST == 192 && FA__CAUSAL_AT_MOST)

/* Whether a warpgroup's turn ends when its hook has been applied, not when its products have begun: the others'
 * products would come between them and the exponentials. Measured: 1 to 16% faster where it is 1 (under causal masks
 * beyond 112 only with many keys), elsewhere up to 20% slower. */
#if FA__BIAS_TILES
#define FA__TURN_LATE (FA__WIDEST <= 64 ? !FA__HAS_MASK : FA__WIDEST <= (FA__MASK_IS_BAND > 1 ? 112 : 176))
#else
#define FA__TURN_LATE (FA__OWN_HOOK && (FA__CAUSAL_AT_MOST || FA__MASK_IS_PREFIX) && FA__WIDEST > 48 && FA__WIDEST <= 64)
#endif

/* Whether a tile of keys that has not landed before the exponentials is waited for after them. As there is no branch
 * in between, the assembler can then also begin them while P V runs. Measured: 1 to 9% faster where it is 1, elsewhere
 * up to 6% slower, and up to 10% with three warpgroups and biases of keys. */
#if FA__WIDEST <= 64
#define FA__LATE_K (FA__WIDEST <= 56 || !(FA__CRAMPED || FA__ALIBI_ALONE || FA__DOCUMENTS_OWN))
#elif FA__BIAS_TILES
#define FA__LATE_K (FA__WIDEST <= 128 || FA__WIDEST > 160)
#elif FA__HOOKED
#define FA__LATE_K FA__HOOKED_192
#elif FA__HAS_MASK && FA__COLUMNS == FA__NEED_KEY_BIAS
#define FA__LATE_K (FA__WIDEST <= (FA__CAUSAL_AT_MOST || FA__MASK_IS_PREFIX ? 104 : 120))
#elif FA__HAS_MASK
#define FA__LATE_K (FA__WIDEST <= 96 && (FA__WIDEST > 80 || (FA__COLUMNS && FA__NO_BAND && !FA__MASK_IS_PREFIX)))
#else
#define FA__LATE_K (FA__WIDEST <= 112)
#endif

/* Whether a tile's sums are added to its block's at the end of its step, not at the beginning of the next one. This
 * changes nothing but the order in which the assembler puts instructions, and is as measured: 1 to 6% faster where
 * it is 1, up to 6% slower elsewhere; under a soft cap at 96 12% faster. */
#if FA__WIDEST <= 64
#define FA__SUMS_EARLY ((FA_HEAD_DIM_V == 64 && ((FA__SOFT_CAP && FA__TEAMS != 2 && FA__HAS_MASK) || FA__DOCUMENTS_OWN || (FA__ROUND_TRIP && FA__MASK_NEEDS & FA__WITH_CAUSAL))) || \
                         (FA__WIDEST <= 48 && FA__SOFT_CAP && FA__NO_BAND && FA__TEAMS == 2) || \
                         (FA__WIDEST == 32 && FA__OWN_HOOK && FA__MASK_IS_BAND) || (FA__MASK_IS_BAND && !FA__HAS_SCORE && !FA__COLUMNS))
#elif FA__WIDEST > 160
#define FA__SUMS_EARLY FA__HOOKED_192
#elif FA__SOFT_CAP
#define FA__SUMS_EARLY (FA__WIDEST > 128 ? !FA__NO_BAND : FA__WIDEST <= 96 && (FA__WIDEST > 80 ? !FA__MASK_READS : FA__MASK_IS_BAND))
#elif FA__HAS_SCORE
#define FA__SUMS_EARLY (FA__WIDEST > (FA__HAS_MASK ? 96 : 88) && !FA__SENDS)
#elif FA__HAS_MASK
#define FA__SUMS_EARLY (FA__WIDEST > 96 && FA__WIDEST <= 128 && FA__MASK_IS_BAND)
#else
#define FA__SUMS_EARLY (FA__WIDEST <= 80 || (FA__COLUMNS && FA__WIDEST > 112 && FA__WIDEST <= 128))
#endif

/* Whether the loop asks two questions about what comes after a tile: by one number up to 5% faster, but where
 * registers are short that spills (with ALiBi under a window only at 56). With a hook of one's own that divides the
 * assembler then even serialises all products, for want of registers, under masks that are no bands, and with three
 * warpgroups beyond 64. Without a mask two are 1.01 to 1.06 times as fast with such hooks at 24, 32, 56 and 64, and
 * 0.95 to 0.99 at 16, 40 and 48. */
#define FA__ASKED_OWN (FA__NO_BAND || (FA__GROUPS == 3 && (FA__WIDEST > 64 || (!FA__HAS_MASK && (FA__WIDEST <= 32 ? FA__WIDEST > 16 : FA__WIDEST > 48)))))
#define FA__ASKS_TWICE (FA__CRAMPED || (FA__OWN_HOOK && FA__ASKED_OWN) || (FA__WIDEST == 56 && FA__MASK_IS_BAND > 1 && FA__COLUMNS == FA__NEED_ALIBI))

/* Whether masked tiles inside a block have a copy of a step for them, which does without what ends a block: where
 * such steps are short, and many, up to 5% faster; with columns or a bias in tiles slower, and with other hooks at
 * 64 4 to 80 bytes are spilled. With many keys such tiles are rare. */
#define FA__MASKED_INSIDE (FA__MASK_IS_BAND && !FA__LONG && FA__WIDEST <= (FA__HOOKED ? 48 : 64) && !FA__COLUMNS && !FA__BIAS_TILES)

/* Whether Q's columns for a hook are computed while the other columns are multiplied: 1 to 3% faster with a mask and
 * two warpgroups, and with ALiBi up to 64. */
#define FA__COLUMNS_LATE (FA__GROUPS < 3 || (FA__ALIBI_ALONE && FA__WIDEST <= 64))

/* Whether the exponentials are kept apart from what comes before them: where O is small the assembler begins so many
 * of them while P V runs that it spills. Up to 10% faster there; with a hook, which then does not run beside P V
 * either, up to 13% slower. */
#define FA__APART (FA__GROUPS == 3 && !FA__HAS_SCORE && (FA_HEAD_DIM_V <= 40 || FA_BLOCK_N < 128))

/* Whether weights under a soft cap are computed by a polynomial (attention_soft_cap.h). The larger the head
 * dimension, the more of tanh products hide: 1.21 times as fast at 64, 1.13 at 128, 1.07 at 160, 1.00 at 192 and
 * 0.93 at 256 (under masks that are no bands 0.98 to 1.00 at 144 and 160). It needs turns, whose barriers order what
 * warps tell each other. */
#define FA__CURVED (FA__SOFT_CAP && FA__TURNS && FA__WIDEST <= (FA__NO_BAND ? 128 : 160))

/* Whether the plain loop takes something for granted that saves instructions: that scores are far from the soft cap
 * (FA__CURVED), or that its queries exist (FA__ALL_THERE, attention_scores.h). Where it does not hold, a block's
 * tiles are rough. */
#define FA__SMOOTH (FA__CURVED || FA__ALL_THERE)
