/* user.h: the user's struct of an instance with FA_USER_ARGS, among the parameters `p` of its kernel, and what its
 * hooks are given. It is stored as bytes, so that C++ need not be able to construct it (it may have constant
 * members, or default ones); and under a name of ours, since inside the struct C++ would find members before the
 * program's types. */
#if defined(FA_USER_ARGS)
#define FA__HAS_USER 1
#if FA__IS_NO_TYPE(FA__NO_TYPE FA_USER_ARGS (), 0, ~)
FA__REQUIRE(0, "FA_USER_ARGS is empty: define it as the type that hooks get a pointer to, or not at all");
#undef FA_USER_ARGS
#define FA_USER_ARGS int
#endif
#define FA__USER_TYPE FA__CAT(FA__PARAMS, _user)
typedef FA_USER_ARGS FA__USER_TYPE;
typedef FA__USER_TYPE FA__CAT(FA__PARAMS, _FA_USER_ARGS_is_not_void)[1]; /* which has no arrays, nor has a struct that is not known */
#define FA__USER(p) ((const FA__USER_TYPE *)(const void *)(p)->user)
#define FA__USER_BYTES unsigned char user[sizeof(FA__USER_TYPE)] __attribute__((__aligned__(__alignof__(FA__USER_TYPE))));
#else
#define FA__HAS_USER 0
#define FA__USER_TYPE FA_USER_ARGS
#define FA__USER(p) ((const FA_USER_ARGS *)0)
#define FA__USER_BYTES
#endif
