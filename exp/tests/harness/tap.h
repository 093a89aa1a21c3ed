/* tap.h: the Test Anything Protocol, version 12: numbered ok / not ok lines, skips with a reason, a plan at the end.
 *
 *     int main(void) {
 *         tap_ok(1 + 1 == 2, "one and one make %d", 2);
 *         return tap_end();
 *     }
 *
 * Failures may be reported from several threads. A crash prints "Bail out!" with the current tap_context().
 */
#ifndef TAP_H
#define TAP_H

#if defined(__cplusplus)
extern "C" {
#endif

/* One test: prints "ok N - ..." or "not ok N - ..." and returns `passed`. */
int tap_ok(int passed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One test that cannot run here: prints "ok N # SKIP reason". */
void tap_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A comment line. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What is being tested now, said if the program crashes. */
void tap_context(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Something without which no further test makes sense: prints it and exits with an error. */
void tap_bail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints the plan; the exit status of the program: 0 if every test passed and there was one. */
int tap_end(void);

#if defined(__cplusplus)
}
#endif
#endif
