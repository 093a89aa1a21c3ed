/* same.h: the instructions that sm_90a takes over from sm_80. */
#ifndef FA_ARCH_SM90_SAME_H
#define FA_ARCH_SM90_SAME_H

#include <fa/arch/sm80/ops.h>

/** @cond PRIVATE */
#define fa_sm90_fma fa_sm80_fma
#define fa_sm90_pack_bf16 fa_sm80_pack_bf16
#define fa_sm90_pack_f16 fa_sm80_pack_f16
#define fa_sm90_opaque fa_sm80_opaque
#define fa_sm90_row_max fa_sm80_row_max
#define fa_sm90_row_sum fa_sm80_row_sum
#define fa_sm90_shuffle fa_sm80_shuffle
#define fa_sm90_warp_barrier fa_sm80_warp_barrier
#define fa_sm90_from_lane fa_sm80_from_lane
#define fa_sm90_any fa_sm80_any
#define fa_sm90_lowest fa_sm80_lowest
#define fa_sm90_highest fa_sm80_highest
#define fa_sm90_ballot fa_sm80_ballot
#define fa_sm90_lowest_bit fa_sm80_lowest_bit
#define fa_sm90_thread fa_sm80_thread
#define fa_sm90_copy_commit fa_sm80_copy_commit
#define fa_sm90_copy_wait fa_sm80_copy_wait
#define fa_sm90_shared_address fa_sm80_shared_address
#define fa_sm90_ldmatrix fa_sm80_ldmatrix
#define fa_sm90_store16 fa_sm80_store16
#define fa_sm90_unpack fa_sm80_unpack
#define fa_sm90_hide_unset fa_sm80_hide_unset
/** @endcond */

#endif
