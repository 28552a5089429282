/* views: writes a view of a trace: one file by an emitter, or the folder of tables; completely or not at all.
 * One thread.
 * Must not know how anything is analyzed or laid out. */
#define _GNU_SOURCE
#include "views.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sources.h"

#define TABLES_MAX      64u

/* ---- display options of a terminal ----------------------------------------------------------------- */
static bool wants_colour(void)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(no_colour && *no_colour) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static unsigned terminal_width(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 80)
        return TARE__EMIT_WIDTH;
    return size.ws_col > 120 ? 120 : size.ws_col;
}

void tare__view_suit(tare__emit_options *options, int fd, bool terminal)
{
    options->colour = terminal && wants_colour();
    options->pretty = terminal;
    if (options->width == 0)
        options->width = terminal ? terminal_width(fd) : TARE__EMIT_WIDTH;
}

/* ---- one file ------------------------------------------------------------------------------------- */
int tare__view_one(const char *path, const tare__emit_options *requested, bool lines, tare__emit_writer *write,
                   const void *what, bool *unwritten, tare__error *error)
{
    tare__cli_output output;
    tare__emit_options options = *requested;
    int status = tare__cli_output_open(&output, path, error);
    if (status) {
        *unwritten = true;
        return status;
    }
    tare__emit_sink sink = {.write = tare__cli_output_write, .context = &output};
    tare__view_suit(&options, output.fd, output.terminal);
    if (lines)
        tare__cli_output_lines(&output, options.colour);
    status = write(what, &options, &sink, error);
    bool refused = output.failure != 0; /* then the output's own message is printed */
    int closed = tare__cli_output_close(&output, status == 0, refused || !status ? error : NULL);
    *unwritten = closed != 0;
    return closed ? closed : refused ? 0 : status;
}

/* ---- a folder of files ---------------------------------------------------------------------------- */
typedef struct folder {
    const char *path;
    int fd; /* everything below is opened relative to it, so that no name is redirected in the meantime */
    struct below {
        char *path;
        int fd;
    } below[TABLES_MAX]; /* open folders in it */
    size_t n_below;
    tare__cli_output files[TABLES_MAX];
    size_t n;
    tare__emit_sink sink; /* of the file opened last */
    bool unwritten;
    tare__error *error;
} folder;

static int refuse_folder(const char *path, int failure, tare__error *error)
{
    return tare__fail(error, TARE_E_SYSTEM, "cannot write to the directory '%s': %s", path, strerror(failure));
}

/* A link in a directory where everybody may create files leads where its owner likes. The rule is that of the kernel's
 * fs.protected_symlinks, which may be off. */
static bool is_foreign_link(const char *path, bool *link)
{
    struct stat about, parent;
    char in[PATH_MAX];
    *link = lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
    if (!*link || about.st_uid == geteuid())
        return false;
    int bytes = (int)(tare__base_name(path) - path);
    snprintf(in, sizeof in, "%.*s", bytes ? bytes : 1, bytes ? path : ".");
    return stat(in, &parent) != 0 ||
           ((parent.st_mode & S_ISVTX) && (parent.st_mode & S_IWOTH) && parent.st_uid != about.st_uid);
}

/* Created if it does not exist. The folder given by the user may be a link. A descriptor or a status. */
static int open_folder(const char *path, tare__error *error)
{
    char name[PATH_MAX]; /* without slashes at the end, which would follow a link */
    bool link;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof name)
        return refuse_folder(path, ENAMETOOLONG, error);
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    int failure = mkdir(name, 0755) != 0 && errno != EEXIST ? errno : 0;
    if (is_foreign_link(name, &link))
        return tare__fail(error, TARE_E_PERMISSION, "'%s' is a symbolic link of another user: not followed", path);
    int fd = failure ? -1 : open(name, O_PATH | O_DIRECTORY | O_CLOEXEC | (link ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return refuse_folder(path, failure ? failure : errno, error);
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return fd;
    failure = errno;
    close(fd);
    return refuse_folder(path, failure, error);
}

/* A folder in another one: a link there is not followed, since it may lead anywhere. */
static int open_below(int in, const char *name, const char *shown, tare__error *error)
{
    struct stat about;
    if (mkdirat(in, name, 0755) != 0 && errno != EEXIST)
        return refuse_folder(shown, errno, error);
    int fd = openat(in, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), failure = errno;
    if (fd >= 0)
        return fd;
    if (fstatat(in, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(about.st_mode))
        return tare__fail(error, TARE_E_PERMISSION, "'%s' is a symbolic link; links are not followed", shown);
    return refuse_folder(shown, failure, error);
}

static int make_folder(const char *path, tare__error *error)
{
    int fd = open_folder(path, error);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

/* The folder of a file, by its full path: the folder itself, or one below, which is opened once. A descriptor, or a
 * status. */
static int folder_of(folder *to, char *path)
{
    int in = to->fd;
    for (char *slash = strchr(path + strlen(to->path) + 1, '/'); slash && in >= 0; slash = strchr(slash + 1, '/')) {
        size_t i = 0;
        *slash = '\0';
        while (i < to->n_below && strcmp(to->below[i].path, path) != 0)
            i++;
        if (i == to->n_below) {
            struct below one = {strdup(path), -1};
            if (i < TABLES_MAX && one.path)
                one.fd = open_below(in, strrchr(path, '/') + 1, path, to->error);
            else
                one.fd = tare__no_memory(to->error);
            if (one.fd >= 0)
                to->below[to->n_below++] = one;
            else
                free(one.path);
            in = one.fd;
        } else {
            in = to->below[i].fd;
        }
        *slash = '/';
    }
    return in;
}

static const tare__emit_sink *open_table(void *context, const char *name)
{
    folder *to = context;
    char *path = NULL;
    to->unwritten = true; /* until it is open */
    if (to->n == TABLES_MAX || asprintf(&path, "%s/%s", to->path, name) < 0) {
        tare__no_memory(to->error);
        return NULL;
    }
    int in = folder_of(to, path), status = in < 0 ? in : 0;
    if (!status)
        status = tare__cli_output_open_in(&to->files[to->n], in, path, strlen(strrchr(path, '/') + 1), to->error);
    free(path);
    if (status)
        return NULL;
    to->unwritten = false;
    to->sink = (tare__emit_sink){.write = tare__cli_output_write, .context = &to->files[to->n++]};
    return &to->sink;
}

/* The files are renamed together once all are written; until then only write failures are recorded. */
static int close_table(void *context)
{
    folder *to = context;
    const tare__cli_output *last = &to->files[to->n - 1];
    return last->failure ? TARE_E_SYSTEM : 0;
}

int tare__view_folder(const char *path, tare__view_tables *write, const void *what, bool *unwritten, tare__error *error)
{
    folder to = {.path = path, .error = error};
    tare__emit_files files = {.open = open_table, .close = close_table, .context = &to};
    to.fd = open_folder(path, error);
    *unwritten = to.fd < 0;
    if (to.fd < 0)
        return to.fd;
    int status = write(what, &files, error);
    *unwritten = to.unwritten;
    for (size_t i = 0; i < to.n; i++) {
        bool failed = to.files[i].failure != 0;
        int closed = tare__cli_output_close(&to.files[i], status == 0, failed || !status ? error : NULL);
        *unwritten = *unwritten || failed || closed;
        status = status ? status : closed;
    }
    for (size_t i = 0; i < to.n_below; i++) {
        close(to.below[i].fd);
        free(to.below[i].path);
    }
    close(to.fd);
    return status;
}

static bool is_folder(const char *format)
{
    return strcmp(format, TARE__VIEW_CSV) == 0 || strcmp(format, TARE__VIEW_TENSORBOARD) == 0;
}

/* ---- either --------------------------------------------------------------------------------------- */
bool tare__view_needs_tables(const char *format)
{
    const tare__emitter *emitter = tare__emit_find(format);
    if (!emitter)
        return strcmp(format, TARE__VIEW_TENSORBOARD) != 0;
    return emitter->needs & TARE__EMIT_TABLES;
}

typedef struct view {
    const tare__emitter *emitter;
    tare__emit_input input;
} view;

static int write_view(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                      tare__error *error)
{
    const view *one = what;
    return one->emitter->emit(&one->input, options, sink, error);
}

static int write_tensorboard(const void *what, const tare__emit_files *files, tare__error *error)
{
    const view *one = what;
    return tare__emit_tensorboard(one->input.trace, files, error);
}

static int write_csv(const void *what, const tare__emit_files *files, tare__error *error)
{
    const view *one = what;
    return tare__emit_csv(&tare__document_report, one->input.analysis, files, error);
}

static int write_one(view *one, const char *path, const tare__emit_options *options, bool *unwritten,
                     tare__error *error)
{
    char *sources[TARE__EMIT_SOURCES] = {NULL};
    bool wanted = options->source && strcmp(one->emitter->name, "html") == 0;
    int status = wanted && !tare__cli_sources_read(one->input.trace, one->input.analysis, sources, TARE__EMIT_SOURCES)
                     ? tare__fail(error, TARE_E_MEMORY, "out of memory")
                     : 0;
    one->input.sources = (const char *const *)sources;
    one->input.n_sources = wanted ? TARE__EMIT_SOURCES : 0;
    if (!status)
        status = tare__view_one(path, options, strcmp(one->emitter->name, "text") == 0, write_view, one, unwritten,
                                error);
    tare__cli_sources_free(sources, TARE__EMIT_SOURCES);
    return status;
}

int tare__view_write(const char *format, const char *path, tare__trace *trace, const tare__analysis *analysis,
                     const tare__emit_options *options, bool *unwritten, tare__error *error)
{
    view one = {tare__emit_find(format), {.analysis = analysis, .trace = trace}};
    bool is_tensorboard = strcmp(format, TARE__VIEW_TENSORBOARD) == 0;
    tare__timeline *timeline = NULL;
    *unwritten = false;
    if (one.emitter) {
        int status = one.emitter->needs & TARE__EMIT_TIMELINE
                         ? tare__analyze_timeline(trace, TARE__EMIT_BOXES, &timeline, error)
                         : 0;
        one.input.timeline = timeline;
        if (!status)
            status = write_one(&one, path, options, unwritten, error);
        tare__timeline_free(timeline);
        return status;
    }
    return tare__view_folder(path, is_tensorboard ? write_tensorboard : write_csv, &one, unwritten, error);
}

int tare__view_try(const char *format, const char *path, tare__error *error)
{
    tare__cli_output output;
    if (is_folder(format))
        return make_folder(path, error);
    int status = tare__cli_output_open(&output, path, error);
    return status ? status : tare__cli_output_close(&output, false, error);
}
