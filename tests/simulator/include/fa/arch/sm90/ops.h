/* arch/sm90/ops.h of the simulator: its machine is of compute capability 8.0. */
#ifndef FA_ARCH_SM90_OPS_H
#define FA_ARCH_SM90_OPS_H
#include <fa/arch/sm80/ops.h>
#endif
