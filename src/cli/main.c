/* main: finds the command in the one const table and runs it; help and version.
 * One thread.
 * Must not know what the commands do. */
#define _GNU_SOURCE
#include "cli.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

static const tare__cli_command help = {
    .name = "help",
    .summary = "Show help for a command",
    .usage = "[COMMAND]",
    .examples = "  tare help run\n",
    .main = help_main,
};

static const tare__cli_command version = {
    .name = "version",
    .summary = "Show the version",
    .usage = "",
    .examples = "  tare version\n",
    .main = version_main,
};

static const tare__cli_command *const commands[] = {
    &tare__cli_run,
    &tare__cli_attach,
    &tare__cli_top,
    &tare__cli_report,
    &tare__cli_compare,
    &tare__cli_import,
    &tare__cli_model_command,
    &tare__cli_check,
    &tare__cli_baseline,
    &tare__cli_history,
    &tare__cli_doctor,
    &tare__cli_clean,
    &help,
    &version,
};

static const tare__cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int unknown_command(const char *word)
{
    const char *names[TARE__COUNT_OF(commands)];
    for (size_t i = 0; i < TARE__COUNT_OF(commands); i++)
        names[i] = commands[i]->name;
    const char *near = tare__cli_nearest(word, names, TARE__COUNT_OF(commands));
    tare__error error;
    if (near)
        tare__fail(&error, TARE_E_USAGE, "unknown command '%.64s'; did you mean '%s'?", word, near);
    else
        tare__fail(&error, TARE_E_USAGE, "unknown command '%.64s'", word);
    return tare__cli_usage("tare", &error);
}

static void put_overview(tare__text *out)
{
    tare__text_string(out, "Profile ML workloads. Tare measures its own overhead and subtracts it.\n\n"
                           "usage: tare COMMAND [options]\n\nCommands:\n");
    for (size_t i = 0; i < TARE__COUNT_OF(commands); i++)
        tare__text_format(out, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    tare__text_string(out, "\nExamples:\n"
                           "  tare run -- python3 train.py     run, print a summary, write train.tare\n"
                           "  tare report --html train.tare    write an interactive HTML report\n"
                           "\nSee `tare COMMAND --help` or `man tare-COMMAND` for details.\n");
}

static int print_overview(void)
{
    tare__text text = {0};
    put_overview(&text);
    int exit_status = tare__cli_print(&text);
    tare__text_free(&text);
    return exit_status;
}

static int help_main(int argc, char **argv)
{
    if (argc < 2)
        return print_overview();
    const tare__cli_command *command = find_command(argv[1]);
    return command ? tare__cli_print_help(command) : unknown_command(argv[1]);
}

static int version_main(int argc, char **argv)
{
    tare__text text = {0};
    (void)argc, (void)argv;
    tare__text_string(&text, "tare " TARE_VERSION "\n");
    int exit_status = tare__cli_print(&text);
    tare__text_free(&text);
    return exit_status;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Commands without options: they accept only --help. */
static int run_command(const tare__cli_command *command, int argc, char **argv)
{
    if (command->option_count == 0 && argc > 1 && argv[1][0] == '-') {
        tare__error error;
        if (asks_for_help(argv[1]))
            return tare__cli_print_help(command);
        tare__fail(&error, TARE_E_USAGE, "unknown option %.64s", argv[1]);
        return tare__cli_usage("tare", &error);
    }
    return command->main(argc, argv);
}

static void on_nothing(int number)
{
    (void)number;
}

/* Exceeding the file size limit (ulimit -f) must fail the write with a message, not kill this command. A handler is
 * used, since started programs do not inherit it. */
static void keep_alive(void)
{
    struct sigaction before, nothing = {.sa_handler = on_nothing, .sa_flags = SA_RESTART};
    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &nothing, NULL);
}

/* If SIGCHLD is ignored, the exit status of a child is lost. The run command restores the setting for the program it
 * runs. */
static void keep_children(const char *command)
{
    if (strcmp(command, tare__cli_run.name) != 0)
        signal(SIGCHLD, SIG_DFL);
}

static int run_main(int argc, char **argv)
{
    tare__error error;
    keep_alive();
    if (argc < 2) {
        tare__fail(&error, TARE_E_USAGE, "missing command; try: tare run -- ./program");
        return tare__cli_usage("tare", &error);
    }
    const char *word = argv[1];
    keep_children(word);
    if (asks_for_help(word))
        return help_main(argc - 1, argv + 1);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return version_main(argc - 1, argv + 1);
    if (word[0] == '-') {
        tare__fail(&error, TARE_E_USAGE, "unknown option %.64s before the command", word);
        return tare__cli_usage("tare", &error);
    }
    if (strcmp(word, tare__cli_collect.name) == 0)
        return tare__cli_collect.main(argc - 1, argv + 1);
    const tare__cli_command *command = find_command(word);
    return command ? run_command(command, argc - 1, argv + 1) : unknown_command(word);
}

#define STACK_LEAST ((size_t)1 << 20)
#define STACK_BYTES ((size_t)8 << 20)

static struct {
    int argc, status;
    char **argv;
    ucontext_t here, there;
} aside;

static void run_aside(void)
{
    aside.status = run_main(aside.argc, aside.argv);
}

/* With a small stack limit (ulimit -s), Tare runs on a separately allocated stack: the limit is meant for the program
 * that it starts, which inherits it unchanged. */
int main(int argc, char **argv)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_LEAST)
        return run_main(argc, argv);
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || getcontext(&aside.there) != 0)
        return run_main(argc, argv);
    aside.argc = argc;
    aside.argv = argv;
    aside.there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
    aside.there.uc_link = &aside.here;
    makecontext(&aside.there, run_aside, 0);
    return swapcontext(&aside.here, &aside.there) == 0 ? aside.status : run_main(argc, argv);
}
