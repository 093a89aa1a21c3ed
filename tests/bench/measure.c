/* measure [--alone LOCK] FILE COMMAND...: runs a compiler and writes to FILE, a line each, the seconds it took (wall
 * clock, then processor), the largest memory of any of its processes and, where ptxas reports them, the registers of
 * the hungriest kernel and the bytes spilled by all. What the command prints goes to FILE.log, and its first lines
 * to stderr if it fails. Those with the same LOCK, a file, run one after the other: a compiler that has several
 * threads takes twice as long beside seven of its kind. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "--alone")) {
        int lock = open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0644); /* until this program ends */
        if (lock < 0 || flock(lock, LOCK_EX)) perror(argv[2]);
        argv += 2, argc -= 2;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: measure [--alone LOCK] FILE COMMAND...\n");
        return 2;
    }
    char log_name[4096];
    snprintf(log_name, sizeof log_name, "%s.log", argv[1]);
    double start = seconds();
    pid_t child = fork();
    if (child == 0) {
        int log = open(log_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (log >= 0) dup2(log, 1), dup2(log, 2);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        perror("measure");
        return 1;
    }
    double wall = seconds() - start;
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage); /* ru_maxrss: the largest of all descendants that were waited for */
    double processor = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                       1e-6 * ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec);

    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1, registers = -1, kernels = 0;
    enum { SHOWN = 40 }; /* lines of a failure: one mistake in a template can cost thousands */
    int shown = 0;
    long spilled = 0;
    char line[65536];
    FILE *log = fopen(log_name, "r");
    while (log && fgets(line, sizeof line, log)) {
        if (code && ++shown <= SHOWN) fputs(line, stderr);
        int n;
        const char *used = strstr(line, "Used "), *spill = strstr(line, " bytes spill stores");
        if (used && sscanf(used, "Used %d registers", &n) == 1) {
            registers = n > registers ? n : registers;
            kernels++;
        }
        if (spill) {
            while (spill > line && spill[-1] != ' ') spill--;
            spilled += atol(spill);
        }
    }
    if (log) fclose(log);
    if (shown > SHOWN) fprintf(stderr, "... %d more lines in %s\n", shown - SHOWN, log_name);
    if (code) return code;

    FILE *out = fopen(argv[1], "w");
    if (!out) {
        perror(argv[1]);
        return 1;
    }
    fprintf(out, "seconds %.2f\ncpu_seconds %.2f\npeak_mb %.0f\n", wall, processor, (double)usage.ru_maxrss / 1024);
    if (kernels) fprintf(out, "kernels %d\nregisters %d\nspill_bytes %ld\n", kernels, registers, spilled);
    return fclose(out) != 0;
}
