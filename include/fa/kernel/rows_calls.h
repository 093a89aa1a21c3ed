/* rows_calls.h: the calls of an instance whose two directions, FA__ROWS(__call)(args, backward, stream), differ
 * little, and need no workspace. FA__ARGS is the type of the arguments. */
FA_API fa_status FA__ROWS(_forward)(const FA__ARGS *args, fa_stream stream) { return FA__ROWS(__call)(args, 0, stream); }
FA_API fa_status FA__ROWS(_backward)(const FA__ARGS *args, fa_stream stream) { return FA__ROWS(__call)(args, 1, stream); }
FA_API size_t FA__ROWS(_workspace)(const FA__ARGS *args) {
    (void)args;
    return 0;
}
#undef FA__ARGS
