/* user.h: the user's struct of an instance with FA_USER_ARGS, among the parameters `p` of its kernel, and what its hooks are
 * given. It is stored as bytes, so that C++ need not be able to construct it (it may have constant members, or default ones);
 * and under a name of ours, since inside the struct C++ would find members before the program's types. */
#if defined(FA_USER_ARGS)
#define FA__HAS_USER 1
typedef FA_USER_ARGS FA__CAT(FA__PARAMS, _user);
#define FA__USER(p) ((const FA__CAT(FA__PARAMS, _user) *)(const void *)(p)->user)
#define FA__USER_BYTES unsigned char user[sizeof(FA__CAT(FA__PARAMS, _user))] __attribute__((__aligned__(__alignof__(FA__CAT(FA__PARAMS, _user)))));
#else
#define FA__HAS_USER 0
#define FA__USER(p) ((const FA_USER_ARGS *)0)
#define FA__USER_BYTES
#endif
