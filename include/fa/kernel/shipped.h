/**
 * @file shipped.h
 * @brief What is known of the masks and score hooks that the library ships.
 */
#ifndef FA_KERNEL_SHIPPED_H
#define FA_KERNEL_SHIPPED_H

#include <fa/arch/macros.h>

/** @cond PRIVATE */
/* What a shipped hook needs to be set, as bits of fa__instance.needs. FA__SHIPPED_NEEDS(hook) gives them, and 0 for a
 * user's hook: pasted to FA__NEEDS_, a shipped name expands to two arguments, of which the second is taken. */
#define FA__NEED_PREFIX 1
#define FA__NEED_DOCUMENT 2
#define FA__NEED_ALIBI 4
#define FA__NEED_SOFTCAP 8
#define FA__NEED_BIAS 16
#define FA__NEED_KEY_BIAS 32
#define FA__WITH_CAUSAL 64 /* not an argument: the mask is also causal */
#define FA__NEED_SPAN 128
#define FA__NEEDS_fa_prefix ~, FA__NEED_PREFIX
#define FA__NEEDS_fa_document ~, FA__NEED_DOCUMENT
#define FA__NEEDS_fa_causal_document ~, (FA__NEED_DOCUMENT | FA__WITH_CAUSAL)
#define FA__NEEDS_fa_span ~, FA__NEED_SPAN
#define FA__NEEDS_fa_alibi ~, FA__NEED_ALIBI
#define FA__NEEDS_fa_softcap ~, FA__NEED_SOFTCAP
#define FA__NEEDS_fa_bias ~, FA__NEED_BIAS
#define FA__NEEDS_fa_key_bias ~, FA__NEED_KEY_BIAS
#define FA__SHIPPED_NEEDS(hook) FA__SECOND(FA__CAT(FA__NEEDS_, hook), 0, ~)
/* In the same way: whether a mask is known to be a band, whose tiles are classified without reading memory: 1 if each
 * row has a last visible key, 2 if it has a first one, too; else 0. */
#define FA__BAND_fa_causal ~, 1
#define FA__BAND_fa_causal_top_left ~, 1
#define FA__BAND_fa_sliding_window ~, 2
#define FA__IS_BAND(mask) FA__SECOND(FA__CAT(FA__BAND_, mask), 0, ~)
/** @endcond */

#endif
