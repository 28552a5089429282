/* ranges: a program that calls ITT and NVTX as the static parts of these interfaces do, without torch or a GPU.
 * Several threads, each its own ranges. usage: ranges itt|nvtx|names|threads|torch LIBRARY
 * Must not know how the libraries are made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *open_named(const char *variable)
{
    const char *path = getenv(variable);
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    if (!library) {
        printf("%s: %s\n", variable, path ? dlerror() : "not set");
        exit(3);
    }
    return library;
}

/* ---- ITT -------------------------------------------------------------------------------------------------- */
typedef struct { unsigned long long d[3]; } id;
typedef struct domain { volatile int flags; const char *name; void *w; int e1; void *e2; struct domain *next; } domain;
typedef struct string { const char *text; void *w; int e1; void *e2; struct string *next; } string;

static domain *(*create_domain)(const char *);
static string *(*create_string)(const char *);
static void (*begin_task)(const domain *, id, id, string *);
static void (*end_task)(const domain *);
static int (*frame_begin)(const domain *, id *) = NULL;
static int null_frame(const domain *d, id *i) { (void)d, (void)i; return 7; }

typedef struct { const char *name; void **function; void *init, *null; int group; } api;
static api apis[] = {
    {"__itt_domain_create", (void **)&create_domain, 0, 0, 1},
    {"__itt_string_handle_create", (void **)&create_string, 0, 0, 1},
    {"__itt_task_begin", (void **)&begin_task, 0, 0, 1},
    {"__itt_task_end", (void **)&end_task, 0, 0, 1},
    {"__itt_frame_begin_v3", (void **)&frame_begin, 0, (void *)null_frame, 1},
    {NULL, NULL, NULL, NULL, 0},
};

static domain early_domain = {.flags = 1, .name = "PyTorch"};
static string early_string = {.text = "aten::early"};

static struct {
    unsigned char magic[8];
    unsigned long version[3];
    volatile long state[3];
    pthread_mutex_t mutex;
    void *library, *error;
    const char **path;
    api *list;
    void *next, *threads;
    domain *domains;
    string *strings;
} global = {.list = apis, .domains = &early_domain, .strings = &early_string};

static void start_itt(void)
{
    void (*init)(void *, int) = (void (*)(void *, int))dlsym(open_named("INTEL_LIBITTNOTIFY64"), "__itt_api_init");
    init(&global, 1);
    if (frame_begin != (void *)null_frame)
        exit(4);
}

/* As the callers' macros: nothing for a domain that is off. */
static void begin(const domain *domain, string *name)
{
    static const id none;
    if (domain->flags)
        begin_task(domain, none, none, name);
}

static void end(const domain *domain)
{
    if (domain->flags)
        end_task(domain);
}

static void itt_step(const domain *torch)
{
    begin(torch, create_string("aten::linear"));
    begin(torch, create_string("aten::addmm"));
    end(torch);
    end(torch);
    begin(torch, create_string("autograd::engine::evaluate_function: AddmmBackward0"));
    end(torch);
}

static void use_itt(void)
{
    domain *torch = create_domain("PyTorch"), *other = create_domain("mine"), *mkl = create_domain("dnnl::primitive");
    if (torch != create_domain("PyTorch") || create_string("a") != create_string("a"))
        exit(5);
    end(torch); /* of a task that began before */
    for (int i = 0; i < 10; i++)
        itt_step(torch);
    begin(&early_domain, &early_string);
    end(&early_domain);
    begin(other, create_string("mine"));
    begin(mkl, create_string("primitive"));
    end(mkl);
    end(other);
    pid_t child = fork();
    if (child == 0) {
        itt_step(torch);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void *thread_main(void *arg)
{
    (void)arg;
    domain *torch = create_domain("PyTorch");
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "aten::op%d", i % 50);
        begin(torch, create_string(name));
        end(torch);
    }
    return NULL;
}

static void use_threads(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static void use_names(void)
{
    domain *torch = create_domain("PyTorch");
    for (int i = 0; i < 13000; i++) {
        char name[32];
        snprintf(name, sizeof name, "op %d", i);
        begin(torch, create_string(name));
        end(torch);
    }
    for (int i = 0; i < 200; i++)
        begin(torch, create_string("deep"));
    for (int i = 0; i < 200; i++)
        end(torch);
}

/* ---- NVTX ------------------------------------------------------------------------------------------------- */
typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
} attributes;

static int (*push)(const char *);
static int (*pop)(void);
static int (*push_ex)(const attributes *);
static const void *(*create)(const char *);
static const void *(*register_string)(const void *, const char *);
static int (*domain_push)(const void *, const attributes *);
static int (*domain_pop)(const void *);
static void *core[17], *core2[17];
static void **core_at[17], **core2_at[17];

static int table_of(int module, void ****table, unsigned *size)
{
    *size = 16;
    *table = module == 1 ? core_at : module == 5 ? core2_at : NULL;
    return *table != NULL;
}

static const struct {
    size_t bytes;
    int (*get)(int, void ****, unsigned *);
} callbacks = {sizeof callbacks, table_of};

static const void *export_table(uint32_t id)
{
    return id == 1 ? &callbacks : NULL;
}

static void start_nvtx(void)
{
    for (int i = 0; i < 16; i++)
        core_at[i] = &core[i], core2_at[i] = &core2[i];
    void *library = open_named("NVTX_INJECTION64_PATH");
    int (*init)(const void *(*)(uint32_t)) =
        (int (*)(const void *(*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2");
    if (init(export_table) != 1)
        exit(4);
    push = (int (*)(const char *))core[9];
    pop = (int (*)(void))core[11];
    push_ex = (int (*)(const attributes *))core[8];
    create = (const void *(*)(const char *))core2[12];
    register_string = (const void *(*)(const void *, const char *))core2[10];
    domain_push = (int (*)(const void *, const attributes *))core2[4];
    domain_pop = (int (*)(const void *))core2[5];
}

static void use_nvtx(void)
{
    attributes plain = {.version = 3, .size = sizeof plain, .message_type = 1, .message = "loading"};
    if (pop() != -1 || push("aten::mm, seq = 12, op_id = 7, sizes = [[2, 3], [3, 4]]") != 0)
        exit(5);
    if (push("aten::mul, op_id = 8") != 1 || pop() != 1 || pop() != 0)
        exit(6);
    for (int i = 0; i < 5; i++) {
        char text[64];
        snprintf(text, sizeof text, "aten::mm, seq = %d, op_id = %d", 20 + i, i);
        push(text);
        pop();
    }
    push_ex(&plain);
    const void *domain = create("mine");
    attributes named = {.version = 3, .size = sizeof named, .message_type = 3,
                        .message = register_string(domain, "registered")};
    domain_push(domain, &named);
    domain_pop(domain);
    pop();
}

/* ---- a torch that was there before anybody listened -------------------------------------------------------- */
static void (*torch_push)(const char *), (*torch_pop)(void), (*torch_mark)(const char *);

static void *torch_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        torch_push("aten::linear");
        torch_push("aten::addmm");
        torch_pop();
        torch_pop();
    }
    return NULL;
}

static void need(int there, int status)
{
    if (!there)
        exit(status);
}

static void use_torch(const char *path)
{
    int (*listen)(void) = (int (*)(void))dlsym(open_named("INTEL_LIBITTNOTIFY64"), "tare_inject_torch");
    need(listen != NULL, 4);
    need(listen() != 0, 5); /* there is no torch */
    void *library = dlopen(path, RTLD_NOW);
    need(library != NULL, 6);
    torch_push = (void (*)(const char *))dlsym(library, "fake_push");
    torch_pop = (void (*)(void))dlsym(library, "fake_pop");
    torch_mark = (void (*)(const char *))dlsym(library, "fake_mark");
    int (*enabled)(void) = (int (*)(void))dlsym(library, "fake_enabled");
    int (*reached)(void) = (int (*)(void))dlsym(library, "fake_reached");
    need(torch_push && torch_pop && torch_mark && enabled && reached, 7);
    torch_push("aten::unheard");
    torch_pop();
    need(!enabled(), 8);
    need(listen() == 0 && listen() == 0, 9); /* a second time changes nothing */
    need(enabled(), 10);
    torch_pop(); /* of an operator that began before */
    pthread_t thread;
    need(pthread_create(&thread, NULL, torch_thread, NULL) == 0, 11);
    torch_thread(NULL);
    pthread_join(thread, NULL);
    torch_push(NULL);
    torch_pop();
    torch_mark("a mark");
    torch_mark(NULL);
    need(reached() == 3, 12); /* push and pop before, and now a function that is left as it was */
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "nvtx") == 0) {
        start_nvtx();
        use_nvtx();
        return 0;
    }
    if (strcmp(what, "torch") == 0) {
        use_torch(argc > 2 ? argv[2] : "");
        return 0;
    }
    start_itt();
    if (strcmp(what, "itt") == 0)
        use_itt();
    else if (strcmp(what, "threads") == 0)
        use_threads();
    else if (strcmp(what, "names") == 0)
        use_names();
    else
        return 2;
    return 0;
}
