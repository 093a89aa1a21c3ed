/* bounds.h: units of 16 bytes, in which tiles are loaded and stored, that a matrix ends in. */
#ifndef FA_ARCH_SM80_BOUNDS_H
#define FA_ARCH_SM80_BOUNDS_H

#include <fa/arch/sm80/ops.h>
/** @cond PRIVATE */
/* How many of the 16 bytes from `at` on, which begins inside `bytes`, are inside. (Of a constant the compiler would
 * not see that nothing is left over.) */
FA__DEVICE int fa__bytes_inside(int at, int bytes) { return bytes % 16 == 0 || bytes - at > 16 ? 16 : bytes - at; }
/* The first `bytes` of 16, one element after the other if that is not all. */
FA__DEVICE void fa__store_bytes(void *to, const uint4 *from, int bytes, int element_bytes) {
    const uint32_t words[4] = {from->x, from->y, from->z, from->w};
    if (bytes == 16) *(uint4 *)to = *from;
#pragma unroll
    for (int i = 0; bytes < 16 && i < 16 / element_bytes; i++)
        if (i * element_bytes < bytes) {
            if (element_bytes == 4) ((uint32_t *)to)[i] = words[i % 4];
            else ((uint16_t *)to)[i] = (uint16_t)(words[i / 2 % 4] >> i % 2 * 16);
        }
}
/** @endcond */
#endif
