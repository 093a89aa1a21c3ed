#!/bin/sh
# products.sh CHUNK CHUNKS: writes a part of the products that the suite of sm_90a's primitives tries, a C file of instances
# of suites/sm90_product.h. Every N that wgmma has goes with both places of A, both majors of B and both types; K, the
# number of warps, the loaders and the source of A's registers take turns, each at its own pace, so that all of them meet.
awk -v chunk="$1" -v chunks="$2" '
BEGIN {
    split("16 64 96 176 256 24", ks, " ")
    print "#include \"suites/sm90.h\"\n#include <fa/arch/operand.h>\n"
    for (n = 8; n <= 256; n += 8) for (combination = 0; combination < 8; combination++) {
        at = n / 8
        fragment = combination % 2; transposed = int(combination / 2) % 2; f16 = int(combination / 4)
        k = ks[(at + 2 * combination) % (fragment || transposed ? 5 : 6) + 1] # 24 only where K is padded
        if (at % chunks != chunk) continue
        # K takes turns of six where neither: three would not meet all of them.
        warps = (at + combination + (fragment || transposed ? 0 : int(at / 6))) % 3 == 0 ? 8 : 4
        name = sprintf("%s_n%d_k%d_%s_%s_w%d", f16 ? "f16" : "bf16", n, k, fragment ? "registers" : "shared", transposed ? "bt" : "b", warps)
        names = names sprintf("%s%s_product", names ? ", " : "", name)
        printf "#define P_NAME %s\n#define P_DTYPE %s\n#define P_N %d\n#define P_K %d\n#define P_WARPS %d\n", name, f16 ? "FA_F16" : "FA_BF16", n, k, warps
        printf "#define P_A %s\n#define P_B %s\n", fragment ? "FA_FRAGMENT" : "FA_SHARED", transposed ? "FA_OPERAND_BT" : "FA_OPERAND_B"
        printf "#define P_LOAD_A %s\n#define P_LOAD_B %s\n", int(at / 2) % 2 ? "FA_TMA" : "FA_BLOCK", (at + int(at / 4)) % 2 ? "FA_TMA" : "FA_BLOCK"
        printf "#define P_PACK %d\n#include \"suites/sm90_product.h\"\n\n", int(at / 4) % 2
    }
    printf "static const product list[] = {%s};\n", names
    printf "extern const product_list products_%d;\nconst product_list products_%d = {list, (int)(sizeof list / sizeof list[0])};\n", chunk, chunk
}'
