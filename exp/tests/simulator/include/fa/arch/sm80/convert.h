/* arch/sm80/convert.h of the simulator: nothing, since fa.h can do it by itself. */
