/* serve: the helper process of a program that records itself with tare_start.
 * One thread, in a separate process. Must not know what is recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch.h"

static void reply(int socket, int status, const tare__collector *collector)
{
    static tare__serve_reply answer;
    answer.abi = TARE__RING_ABI;
    answer.status = status;
    snprintf(answer.folder, sizeof answer.folder, "%s", collector->folder.path);
    snprintf(answer.trace, sizeof answer.trace, "%s",
             collector->folder.page ? collector->folder.page->trace : collector->writer.path);
    send(socket, &answer, sizeof answer, MSG_NOSIGNAL);
}

static void refuse(int socket, int status, const tare__error *error)
{
    static tare__serve_reply answer;
    answer.abi = TARE__RING_ABI;
    answer.status = status;
    snprintf(answer.trace, sizeof answer.trace, "%s", error->text);
    send(socket, &answer, sizeof answer, MSG_NOSIGNAL);
}

/* Reads the request first: closing the socket with unread data would discard the response. */
void tare__serve_refuse(int socket, int status, const tare__error *error)
{
    tare__serve_request request;
    if (recv(socket, &request, sizeof request, 0) > 0)
        refuse(socket, status, error);
}

static int open_session(tare__collector *collector, const tare__serve_request *request,
                        const tare__record_options *settings, tare__error *error)
{
    static char text[65536];
    char *words[1024];
    tare__record_options options = *settings;
    options.output = request->output[0] ? request->output : NULL;
    options.max_bytes = request->max_bytes;
    options.last_ns = request->last_ns;
    tare__arguments_of(request->pid, text, sizeof text, words, TARE__COUNT_OF(words));
    collector->busy_pool_bytes = TARE__BUSY_POOL_BYTES;
    return tare__record_prepare(collector, &options, TARE__POOL_BYTES,
                                &(tare__run_about){.command = words, .attached = request->pid}, error);
}

static void be_quiet(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && nothing >= 0; fd++)
        dup2(nothing, fd);
    signal(SIGPIPE, SIG_IGN);
}

/* Until it requests a stop, or it and every process that records with it is gone. A closed socket alone means
 * nothing: a program may close every descriptor it did not open. */
static bool attend(tare__collector *collector, int socket, pid_t pid)
{
    bool connected = true;
    for (;;) {
        struct pollfd events[1] = {{.fd = connected ? socket : -1, .events = POLLIN}};
        tare__collector_pause(collector, events, 1);
        tare__collector_tick(collector);
        tare__sampling_tick(collector, false);
        if (connected && events[0].revents) {
            tare__serve_request request;
            ssize_t got = recv(socket, &request, sizeof request, MSG_DONTWAIT);
            if (got == (ssize_t)sizeof request && request.kind == TARE__SERVE_STOP)
                return true;
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                connected = false;
        }
        if (kill(pid, 0) != 0 && errno == ESRCH && tare__collector_recording(collector) == 0)
            return false;
    }
}

/* Sampling starts here: the program already has its response and does not wait for the samplers to open. */
static bool watch(tare__collector *collector, int socket, pid_t pid, const tare__record_options *options)
{
    tare__sampling_open(collector, pid, options);
    bool asked = attend(collector, socket, pid);
    tare__sampling_tick(collector, true);
    collector->oom_killed = !asked && tare__sampling_oom(collector, false);
    return asked;
}

int tare__serve_process(int socket, const tare__record_options *options, char trace[TARE__PATH_BYTES],
                        tare__error *error)
{
    static tare__collector collector;
    collector.writer.fd = collector.folder.lock = collector.folder.socket = -1;
    tare__serve_request request;
    trace[0] = '\0';
    tare__inherited inherited; /* no process is started from here: it is not restored */
    tare__inherited_take(&inherited);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    if (recv(socket, &request, sizeof request, 0) != (ssize_t)sizeof request || request.abi != TARE__RING_ABI ||
        request.kind != TARE__SERVE_START)
        return tare__fail(error, TARE_E_VERSION, "the program uses another protocol version");
    request.output[sizeof request.output - 1] = '\0';
    int status = open_session(&collector, &request, options, error);
    if (status) {
        refuse(socket, status, error);
    } else {
        reply(socket, status, &collector);
        be_quiet();
        bool asked = watch(&collector, socket, request.pid, options);
        tare__collector_tick(&collector);
        uint32_t left = asked ? tare__collector_recording(&collector) : 0; /* children that continue to record */
        tare__collector_finish(&collector, -1, 0, left);
        tare__writer *writer = &collector.writer;
        bool kept = tare__file_keep(&writer->fd, writer->path, writer->mode, writer->moved, sizeof writer->moved);
        int result = writer->problem[0] || !kept ? TARE_E_SPACE : 0;
        if (asked)
            reply(socket, result, &collector);
        snprintf(trace, TARE__PATH_BYTES, "%s", collector.writer.path);
    }
    if (collector.folder.path[0] && !collector.unread_rings)
        tare__folder_remove(&collector.folder);
    tare__collector_free(&collector);
    return status;
}
