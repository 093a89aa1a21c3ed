/* rows_begin.h: the common start of the templates that work row by row: FA__ROWS(x), a name of the instance;
 * FA__ROWS_CALL(backward), that of a call as a string, for its errors; FA_API; the schedule. There is one for the
 * CPU and one for every GPU, whose number is 80. */
#include <fa/arch/api.h>
#define FA__ROWS(x) FA__CAT3(FA_NAME, FA_SUB, x)
#define FA__ROWS_CALL(backward) ((backward) ? FA__STR(FA__ROWS(_backward)) : FA__STR(FA__ROWS(_forward)))
#if !defined(FA_DECLARE)
#include <fa/arch/every_gpu.h>
#endif
