/* contracts_elsewhere.c: an instance that contracts.c only declares. */
#include <fa/fa.h>
#include <fa/mask.h>

#define FA_NAME c_elsewhere
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_MASK fa_causal
#define FA_API FA_EXTERN
#include <fa/attention.h>
