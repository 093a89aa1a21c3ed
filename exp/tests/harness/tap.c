#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int tests, failures;
static char context[256];

static void crashed(int signal_number) {
    static const char start[] = "\nBail out! ", middle[] = " while testing: ", end[] = "\n";
    const char *name = signal_number == SIGSEGV  ? "segmentation fault"
                       : signal_number == SIGBUS ? "bus error"
                       : signal_number == SIGFPE ? "arithmetic fault"
                       : signal_number == SIGILL ? "illegal instruction"
                                                 : "abort";
    ssize_t ignored = write(1, start, sizeof start - 1);
    ignored += write(1, name, strlen(name));
    ignored += write(1, middle, sizeof middle - 1);
    ignored += write(1, context, strlen(context));
    ignored += write(1, end, sizeof end - 1);
    (void)ignored;
    _exit(99);
}

static void start(void) {
    static int started;
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    if (started) return;
    started = 1;
    setvbuf(stdout, NULL, _IOLBF, 4096);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], crashed);
}

int tap_ok(int passed, const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&lock);
    start();
    failures += !passed;
    printf("%s %d - ", passed ? "ok" : "not ok", ++tests);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    pthread_mutex_unlock(&lock);
    return passed;
}

void tap_skip(const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&lock);
    start();
    printf("ok %d # SKIP ", ++tests);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    pthread_mutex_unlock(&lock);
}

void tap_note(const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&lock);
    start();
    printf("# ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    pthread_mutex_unlock(&lock);
}

void tap_context(const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&lock);
    start();
    va_start(arguments, format);
    vsnprintf(context, sizeof context, format, arguments);
    va_end(arguments);
    pthread_mutex_unlock(&lock);
}

void tap_bail(const char *format, ...) {
    va_list arguments;
    start();
    printf("Bail out! ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    _exit(99);
}

int tap_end(void) {
    printf("1..%d\n", tests);
    if (failures) printf("# %d of %d tests failed\n", failures, tests);
    return failures || !tests;
}
