/* Catches what a command prints, so that a test can read it. One thread; standard output and error are
 * swapped while a command runs. Must not know the commands. */
#ifndef TARE_TEST_CLI_CAPTURE_H
#define TARE_TEST_CLI_CAPTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char printed[65536], said[65536]; /* to standard output, to standard error */

static void swap_in(int fd)
{
    int file = memfd_create("printed", 0);
    assert_true(file >= 0);
    dup2(file, fd);
    close(file);
}

static void swap_out(int fd, int saved, char *text, size_t room)
{
    ssize_t got = pread(fd, text, room - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    dup2(saved, fd);
    close(saved);
}

/* Calls a command's main; `argv` ends with NULL. */
static int call(int (*command)(int argc, char **argv), char **argv)
{
    int argc = 0, out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    while (argv[argc])
        argc++;
    fflush(NULL);
    swap_in(STDOUT_FILENO);
    swap_in(STDERR_FILENO);
    int status = command(argc, argv);
    fflush(NULL);
    swap_out(STDOUT_FILENO, out, printed, sizeof printed);
    swap_out(STDERR_FILENO, err, said, sizeof said);
    return status;
}

#define CALL(command, ...) call(command, (char *[]){__VA_ARGS__, NULL})

#endif
