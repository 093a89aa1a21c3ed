/* wgmma.h: the operand lists of wgmma, one row for each N that the instruction has: 8, 16, ... 256.
 *
 * An accumulator of 64 x N takes N / 2 registers a thread, each an operand of its own. A row extends the one before it
 * by the four of another eight columns; OUT gives the constraints of an array d, NAMES their names in the text, and
 * INPUTS the names of the operands that follow them. */
#ifndef FA_ARCH_SM90_WGMMA_H
#define FA_ARCH_SM90_WGMMA_H
/** @cond PRIVATE */
#define FA__SM90_FOUR(d, i) "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3])
#define FA__SM90_OUT_8(d) FA__SM90_FOUR(d, 0)
#define FA__SM90_NAMES_8 "%0, %1, %2, %3"
#define FA__SM90_INPUTS_8 "%4", "%5", "%6", "%7", "%8", "%9"
#define FA__SM90_OUT_16(d) FA__SM90_OUT_8(d), FA__SM90_FOUR(d, 4)
#define FA__SM90_NAMES_16 FA__SM90_NAMES_8 ", %4, %5, %6, %7"
#define FA__SM90_INPUTS_16 "%8", "%9", "%10", "%11", "%12", "%13"
#define FA__SM90_OUT_24(d) FA__SM90_OUT_16(d), FA__SM90_FOUR(d, 8)
#define FA__SM90_NAMES_24 FA__SM90_NAMES_16 ", %8, %9, %10, %11"
#define FA__SM90_INPUTS_24 "%12", "%13", "%14", "%15", "%16", "%17"
#define FA__SM90_OUT_32(d) FA__SM90_OUT_24(d), FA__SM90_FOUR(d, 12)
#define FA__SM90_NAMES_32 FA__SM90_NAMES_24 ", %12, %13, %14, %15"
#define FA__SM90_INPUTS_32 "%16", "%17", "%18", "%19", "%20", "%21"
#define FA__SM90_OUT_40(d) FA__SM90_OUT_32(d), FA__SM90_FOUR(d, 16)
#define FA__SM90_NAMES_40 FA__SM90_NAMES_32 ", %16, %17, %18, %19"
#define FA__SM90_INPUTS_40 "%20", "%21", "%22", "%23", "%24", "%25"
#define FA__SM90_OUT_48(d) FA__SM90_OUT_40(d), FA__SM90_FOUR(d, 20)
#define FA__SM90_NAMES_48 FA__SM90_NAMES_40 ", %20, %21, %22, %23"
#define FA__SM90_INPUTS_48 "%24", "%25", "%26", "%27", "%28", "%29"
#define FA__SM90_OUT_56(d) FA__SM90_OUT_48(d), FA__SM90_FOUR(d, 24)
#define FA__SM90_NAMES_56 FA__SM90_NAMES_48 ", %24, %25, %26, %27"
#define FA__SM90_INPUTS_56 "%28", "%29", "%30", "%31", "%32", "%33"
#define FA__SM90_OUT_64(d) FA__SM90_OUT_56(d), FA__SM90_FOUR(d, 28)
#define FA__SM90_NAMES_64 FA__SM90_NAMES_56 ", %28, %29, %30, %31"
#define FA__SM90_INPUTS_64 "%32", "%33", "%34", "%35", "%36", "%37"
#define FA__SM90_OUT_72(d) FA__SM90_OUT_64(d), FA__SM90_FOUR(d, 32)
#define FA__SM90_NAMES_72 FA__SM90_NAMES_64 ", %32, %33, %34, %35"
#define FA__SM90_INPUTS_72 "%36", "%37", "%38", "%39", "%40", "%41"
#define FA__SM90_OUT_80(d) FA__SM90_OUT_72(d), FA__SM90_FOUR(d, 36)
#define FA__SM90_NAMES_80 FA__SM90_NAMES_72 ", %36, %37, %38, %39"
#define FA__SM90_INPUTS_80 "%40", "%41", "%42", "%43", "%44", "%45"
#define FA__SM90_OUT_88(d) FA__SM90_OUT_80(d), FA__SM90_FOUR(d, 40)
#define FA__SM90_NAMES_88 FA__SM90_NAMES_80 ", %40, %41, %42, %43"
#define FA__SM90_INPUTS_88 "%44", "%45", "%46", "%47", "%48", "%49"
#define FA__SM90_OUT_96(d) FA__SM90_OUT_88(d), FA__SM90_FOUR(d, 44)
#define FA__SM90_NAMES_96 FA__SM90_NAMES_88 ", %44, %45, %46, %47"
#define FA__SM90_INPUTS_96 "%48", "%49", "%50", "%51", "%52", "%53"
#define FA__SM90_OUT_104(d) FA__SM90_OUT_96(d), FA__SM90_FOUR(d, 48)
#define FA__SM90_NAMES_104 FA__SM90_NAMES_96 ", %48, %49, %50, %51"
#define FA__SM90_INPUTS_104 "%52", "%53", "%54", "%55", "%56", "%57"
#define FA__SM90_OUT_112(d) FA__SM90_OUT_104(d), FA__SM90_FOUR(d, 52)
#define FA__SM90_NAMES_112 FA__SM90_NAMES_104 ", %52, %53, %54, %55"
#define FA__SM90_INPUTS_112 "%56", "%57", "%58", "%59", "%60", "%61"
#define FA__SM90_OUT_120(d) FA__SM90_OUT_112(d), FA__SM90_FOUR(d, 56)
#define FA__SM90_NAMES_120 FA__SM90_NAMES_112 ", %56, %57, %58, %59"
#define FA__SM90_INPUTS_120 "%60", "%61", "%62", "%63", "%64", "%65"
#define FA__SM90_OUT_128(d) FA__SM90_OUT_120(d), FA__SM90_FOUR(d, 60)
#define FA__SM90_NAMES_128 FA__SM90_NAMES_120 ", %60, %61, %62, %63"
#define FA__SM90_INPUTS_128 "%64", "%65", "%66", "%67", "%68", "%69"
#define FA__SM90_OUT_136(d) FA__SM90_OUT_128(d), FA__SM90_FOUR(d, 64)
#define FA__SM90_NAMES_136 FA__SM90_NAMES_128 ", %64, %65, %66, %67"
#define FA__SM90_INPUTS_136 "%68", "%69", "%70", "%71", "%72", "%73"
#define FA__SM90_OUT_144(d) FA__SM90_OUT_136(d), FA__SM90_FOUR(d, 68)
#define FA__SM90_NAMES_144 FA__SM90_NAMES_136 ", %68, %69, %70, %71"
#define FA__SM90_INPUTS_144 "%72", "%73", "%74", "%75", "%76", "%77"
#define FA__SM90_OUT_152(d) FA__SM90_OUT_144(d), FA__SM90_FOUR(d, 72)
#define FA__SM90_NAMES_152 FA__SM90_NAMES_144 ", %72, %73, %74, %75"
#define FA__SM90_INPUTS_152 "%76", "%77", "%78", "%79", "%80", "%81"
#define FA__SM90_OUT_160(d) FA__SM90_OUT_152(d), FA__SM90_FOUR(d, 76)
#define FA__SM90_NAMES_160 FA__SM90_NAMES_152 ", %76, %77, %78, %79"
#define FA__SM90_INPUTS_160 "%80", "%81", "%82", "%83", "%84", "%85"
#define FA__SM90_OUT_168(d) FA__SM90_OUT_160(d), FA__SM90_FOUR(d, 80)
#define FA__SM90_NAMES_168 FA__SM90_NAMES_160 ", %80, %81, %82, %83"
#define FA__SM90_INPUTS_168 "%84", "%85", "%86", "%87", "%88", "%89"
#define FA__SM90_OUT_176(d) FA__SM90_OUT_168(d), FA__SM90_FOUR(d, 84)
#define FA__SM90_NAMES_176 FA__SM90_NAMES_168 ", %84, %85, %86, %87"
#define FA__SM90_INPUTS_176 "%88", "%89", "%90", "%91", "%92", "%93"
#define FA__SM90_OUT_184(d) FA__SM90_OUT_176(d), FA__SM90_FOUR(d, 88)
#define FA__SM90_NAMES_184 FA__SM90_NAMES_176 ", %88, %89, %90, %91"
#define FA__SM90_INPUTS_184 "%92", "%93", "%94", "%95", "%96", "%97"
#define FA__SM90_OUT_192(d) FA__SM90_OUT_184(d), FA__SM90_FOUR(d, 92)
#define FA__SM90_NAMES_192 FA__SM90_NAMES_184 ", %92, %93, %94, %95"
#define FA__SM90_INPUTS_192 "%96", "%97", "%98", "%99", "%100", "%101"
#define FA__SM90_OUT_200(d) FA__SM90_OUT_192(d), FA__SM90_FOUR(d, 96)
#define FA__SM90_NAMES_200 FA__SM90_NAMES_192 ", %96, %97, %98, %99"
#define FA__SM90_INPUTS_200 "%100", "%101", "%102", "%103", "%104", "%105"
#define FA__SM90_OUT_208(d) FA__SM90_OUT_200(d), FA__SM90_FOUR(d, 100)
#define FA__SM90_NAMES_208 FA__SM90_NAMES_200 ", %100, %101, %102, %103"
#define FA__SM90_INPUTS_208 "%104", "%105", "%106", "%107", "%108", "%109"
#define FA__SM90_OUT_216(d) FA__SM90_OUT_208(d), FA__SM90_FOUR(d, 104)
#define FA__SM90_NAMES_216 FA__SM90_NAMES_208 ", %104, %105, %106, %107"
#define FA__SM90_INPUTS_216 "%108", "%109", "%110", "%111", "%112", "%113"
#define FA__SM90_OUT_224(d) FA__SM90_OUT_216(d), FA__SM90_FOUR(d, 108)
#define FA__SM90_NAMES_224 FA__SM90_NAMES_216 ", %108, %109, %110, %111"
#define FA__SM90_INPUTS_224 "%112", "%113", "%114", "%115", "%116", "%117"
#define FA__SM90_OUT_232(d) FA__SM90_OUT_224(d), FA__SM90_FOUR(d, 112)
#define FA__SM90_NAMES_232 FA__SM90_NAMES_224 ", %112, %113, %114, %115"
#define FA__SM90_INPUTS_232 "%116", "%117", "%118", "%119", "%120", "%121"
#define FA__SM90_OUT_240(d) FA__SM90_OUT_232(d), FA__SM90_FOUR(d, 116)
#define FA__SM90_NAMES_240 FA__SM90_NAMES_232 ", %116, %117, %118, %119"
#define FA__SM90_INPUTS_240 "%120", "%121", "%122", "%123", "%124", "%125"
#define FA__SM90_OUT_248(d) FA__SM90_OUT_240(d), FA__SM90_FOUR(d, 120)
#define FA__SM90_NAMES_248 FA__SM90_NAMES_240 ", %120, %121, %122, %123"
#define FA__SM90_INPUTS_248 "%124", "%125", "%126", "%127", "%128", "%129"
#define FA__SM90_OUT_256(d) FA__SM90_OUT_248(d), FA__SM90_FOUR(d, 124)
#define FA__SM90_NAMES_256 FA__SM90_NAMES_248 ", %124, %125, %126, %127"
#define FA__SM90_INPUTS_256 "%128", "%129", "%130", "%131", "%132", "%133"
/** @endcond */
#endif
