/* macros.h: what the library's macros are made of: names and strings, assertions, and what can be asked about a
 * macro or a hook when an instance is compiled. */
#ifndef FA_ARCH_MACROS_H
#define FA_ARCH_MACROS_H

#define FA__CAT_(a, b) a##b
#define FA__CAT(a, b) FA__CAT_(a, b)
#define FA__CAT3_(a, b, c) a##b##c
#define FA__CAT3(a, b, c) FA__CAT3_(a, b, c)
#define FA__CAT4_(a, b, c, d) a##b##c##d
#define FA__CAT4(a, b, c, d) FA__CAT4_(a, b, c, d)
#define FA__STR_(a) #a
#define FA__STR(a) FA__STR_(a)
#define FA__EMPTY
#if defined(__cplusplus)
#define FA__STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define FA__STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif
/* That structs are laid out as their members want it, here: a header that leaves #pragma pack in force takes their
 * alignment from tiles, without a warning. (gcc's -fpack-struct leaves them the one that they ask for.) A struct of
 * a name of its own each time, since it counts where it is defined. */
#define FA__NOT_PACKED FA__NOT_PACKED_(FA__CAT(fa__not_packed_, __COUNTER__))
#define FA__NOT_PACKED_(name)                           \
    struct name {                                       \
        char first;                                     \
        int second;                                     \
        char line[64] __attribute__((__aligned__(64))); \
    };                                                  \
    FA__STATIC_ASSERT(sizeof(struct name) == 128 && __builtin_offsetof(struct name, second) == sizeof(int), "fa: #pragma pack, or -fpack-struct, is in force: include fa's headers without it (push and pop it around what needs it)")
/* Whether the instance's elements have 16 bits. */
#define FA__IS_HALF (FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16)
/* An error of the instance being defined: its name, then what to write. */
#define FA__REQUIRE(condition, message) FA__STATIC_ASSERT(condition, FA__STR(FA_NAME) ": " message)
/* The second of some arguments: of a name pasted to another one, which expands to two arguments if it is known. */
#define FA__SECOND_(a, b, ...) b
#define FA__SECOND(...) FA__SECOND_(__VA_ARGS__)
/* 1 if a hook is defined as nothing, else 0. */
#define FA__NOTHING_IS ~, 1
#define FA__IS_NOTHING(hook) FA__SECOND(FA__CAT3(FA__NOTHING, hook, _IS), 0, ~)
/* The same of a type, which need not begin with a name: FA__IS_NO_TYPE(FA__NO_TYPE type (), 0, ~). */
#define FA__NO_TYPE() ~, 1
#define FA__IS_NO_TYPE(...) FA__SECOND(__VA_ARGS__)
/* For the preprocessor: whether a positive number is an expression without parentheses, which a division would take
 * apart, or an unsigned one (64U), which would make the numbers that it meets unsigned, too. */
#define FA__IS_BARE(x) (0x40000000 / x + 0 != 0x40000000 / (x + 0) || -1 - (x + 0) > 0)
#define FA__AS_A_NUMBER "in parentheses if it is an expression, without a suffix" /* how to write others */
/* At the beginning of a function: its additions are done in the order written, whatever flags clang was given
 * (fast-math). */
#if defined(__clang__) && !defined(__CUDACC__)
#define FA__IN_ORDER _Pragma("clang fp reassociate(off)")
#else
#define FA__IN_ORDER
#endif

/* ---- hooks ---- */

/* Whether a hook is a function of one of the types FA__FUNCTION(result, user, others of its parameters): the first
 * one is a pointer to the user's type, or to void. For C compilers: they do not report other types where these
 * headers lie in a system's directory, and FA__STRICT_BEGIN has no effect there. C++ always reports them. */
#define FA__FUNCTION(result, user, ...) result(*)(const user *, __VA_ARGS__): 1, result(*)(const void *, __VA_ARGS__): 1
/* Those of a number to a number, float or double; then come nothing, or a comma and other parameters. */
#define FA__FUNCTIONS_OF_NUMBERS(user, ...)                                                               \
    FA__FUNCTION(float, user, float __VA_ARGS__), FA__FUNCTION(double, user, float __VA_ARGS__),          \
        FA__FUNCTION(float, user, double __VA_ARGS__), FA__FUNCTION(double, user, double __VA_ARGS__)
#if defined(__cplusplus)
#define FA__IS_ONE_OF(hook, ...) true /* not 1: behind nvcc clang warns of && with numbers */
#elif __STDC_VERSION__ < 201112L
#define FA__IS_ONE_OF(hook, ...) 1
#else
#define FA__IS_ONE_OF(hook, ...) _Generic(&hook, __VA_ARGS__, default: 0)
#endif
/* Returns what a hook returns, which must be float or double. C++ would convert an integer silently; in C
 * FA__IS_ONE_OF has refused it. */
#if defined(__cplusplus)
#define FA__RETURN_NUMBER(call, message)                       \
    auto fa__result = call;                                    \
    FA__REQUIRE((decltype(fa__result))0.5f > 0.0f, message);   \
    return fa__result
#else
#define FA__RETURN_NUMBER(call, message) return call
#endif
/* Around code that calls hooks: between these two such warnings are errors. A hook that does not exist, that takes
 * another type of arguments, or that may write the user's struct, is an error in C++ but only a warning in C. And
 * nvcc only warns of a hook without FA_HOOK that is called for both host and device, and leaves it out for the
 * device. (20013 and 20015 are those that are constexpr. Of a file that is none of CUDA nvcc only calls the host's
 * compiler.) */
#if defined(__NVCC__) && defined(__CUDACC__)
#define FA__STRICT_BEGIN                                                                                \
    _Pragma("nv_diagnostic push") _Pragma("nv_diag_error 20011") _Pragma("nv_diag_error 20013")         \
        _Pragma("nv_diag_error 20014") _Pragma("nv_diag_error 20015")
#define FA__STRICT_END _Pragma("nv_diagnostic pop")
#elif defined(__cplusplus)
#define FA__STRICT_BEGIN
#define FA__STRICT_END
#else
#if defined(__clang__)
#define FA__STRICT_QUALIFIERS /* in -Wincompatible-pointer-types */
#else
#define FA__STRICT_QUALIFIERS _Pragma("GCC diagnostic error \"-Wdiscarded-qualifiers\"")
#endif
#define FA__STRICT_BEGIN                                                \
    _Pragma("GCC diagnostic push")                                      \
    _Pragma("GCC diagnostic error \"-Wincompatible-pointer-types\"")    \
    _Pragma("GCC diagnostic error \"-Wint-conversion\"")                \
    _Pragma("GCC diagnostic error \"-Wimplicit-function-declaration\"") FA__STRICT_QUALIFIERS
#define FA__STRICT_END _Pragma("GCC diagnostic pop")
#endif

#endif
