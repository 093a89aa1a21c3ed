/* unbind.h: ends what arch/bind.h began. */
#undef FA__ARCH
#undef FA__ARCH_STANDS_IN
#undef FA__FN
#undef FA__FN_CALLED
#undef FA__TARGET
#undef FA__UNROLL
#undef FA__ROLL
#undef FA__ROW_OWNERS
#undef FA__CHAINS
#undef FA__AT
#undef FA__LANES
#undef FA__FRAGMENT_ROWS
#undef FA__FRAGMENT_COLS
#undef FA__OP
#undef FA__LAYER
#undef FA__BIND
