/* nvtx: a collector for NVIDIA's NVTX interface, which PyTorch's emit_nvtx and others call: ranges become spans.
 * Any thread of the target; InitializeInjectionNvtx2 is called once for each binary image that calls NVTX.
 * Must not know anything outside the target. */
#include <stddef.h>
#include <string.h>

#include "inject.h"

/* ---- the interface, as laid out by nvtx3's headers ---------------------------------------------------------- */
enum { EXPORT_CALLBACKS = 1 }; /* of the export tables */
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { CORE_PUSH_EX = 8, CORE_PUSH = 9, CORE_POP = 11 };
enum { CORE2_PUSH_EX = 4, CORE2_POP = 5, CORE2_REGISTER = 10, CORE2_CREATE = 12, CORE2_DESTROY = 14 };
enum { MESSAGE_ASCII = 1, MESSAGE_REGISTERED = 3 };

typedef struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
} nvtx_attributes;

typedef struct nvtx_callbacks {
    size_t struct_size;
    int (*get_functions)(int module, void (****table)(void), unsigned *size);
} nvtx_callbacks;

typedef const void *nvtx_get_table(uint32_t id);

/* ---- names -------------------------------------------------------------------------------------------------- */
/* emit_nvtx appends details of a call: "aten::mm, seq = 12, op_id = 7, sizes = [[..]]". A name with a number in it
 * would be a different name for each call. */
static size_t length_of_name(const char *text, int *is_operator)
{
    const char *rest = strstr(text, ", seq = ");
    if (!rest)
        rest = strstr(text, ", op_id = ");
    *is_operator = rest != NULL;
    return rest ? (size_t)(rest - text) : strlen(text);
}

static int push_text(const char *text)
{
    int is_operator;
    if (!text)
        text = "(null)";
    size_t length = length_of_name(text, &is_operator);
    tare__inject_name *name = tare__inject_name_of(text, length);
    return tare__inject_push(is_operator ? &name->as_operator : &name->as_span);
}

static const char *message_of(const nvtx_attributes *attributes)
{
    if (!attributes || attributes->size < offsetof(nvtx_attributes, message) + sizeof attributes->message)
        return NULL;
    if (attributes->message_type == MESSAGE_REGISTERED && attributes->message)
        return ((const tare__inject_name *)attributes->message)->as_span.name;
    return attributes->message_type == MESSAGE_ASCII ? attributes->message : NULL; /* wide text is not used here */
}

/* ---- functions ---------------------------------------------------------------------------------------------- */
static int push(const char *text)
{
    return push_text(text);
}

static int push_ex(const nvtx_attributes *attributes)
{
    return push_text(message_of(attributes));
}

static int pop(void)
{
    return tare__inject_pop();
}

/* A domain is its name; ranges of all domains nest on their thread. */
static const void *create_domain(const char *name)
{
    return tare__inject_name_of(name ? name : "", name ? strlen(name) : 0);
}

static void destroy_domain(const void *domain)
{
    (void)domain;
}

static const void *register_string(const void *domain, const char *text)
{
    (void)domain;
    return tare__inject_name_of(text ? text : "", text ? strlen(text) : 0);
}

static int push_in_domain(const void *domain, const nvtx_attributes *attributes)
{
    (void)domain;
    return push_ex(attributes);
}

static int pop_in_domain(const void *domain)
{
    (void)domain;
    return pop();
}

/* ---- entry point -------------------------------------------------------------------------------------------- */
typedef void function(void);

static const struct {
    int module;
    unsigned at;
    function *ours;
} implemented[] = {
    {MODULE_CORE, CORE_PUSH_EX, (function *)push_ex},
    {MODULE_CORE, CORE_PUSH, (function *)push},
    {MODULE_CORE, CORE_POP, (function *)pop},
    {MODULE_CORE2, CORE2_PUSH_EX, (function *)push_in_domain},
    {MODULE_CORE2, CORE2_POP, (function *)pop_in_domain},
    {MODULE_CORE2, CORE2_REGISTER, (function *)register_string},
    {MODULE_CORE2, CORE2_CREATE, (function *)create_domain},
    {MODULE_CORE2, CORE2_DESTROY, (function *)destroy_domain},
};

static void fill(function ***table, unsigned size, int module)
{
    for (size_t i = 0; i < sizeof implemented / sizeof *implemented; i++)
        if (implemented[i].module == module && implemented[i].at < size && table[implemented[i].at])
            *table[implemented[i].at] = implemented[i].ours;
}

/* 1: attached; 0: not attached, and the caller continues without. */
TARE_API int InitializeInjectionNvtx2(nvtx_get_table *get_table);
TARE_API int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    const nvtx_callbacks *callbacks = get_table ? get_table(EXPORT_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks || !callbacks->get_functions)
        return 0;
    static const int modules[] = {MODULE_CORE, MODULE_CORE2};
    int filled = 0;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        function ***table = NULL;
        unsigned size = 0;
        if (callbacks->get_functions(modules[i], &table, &size) && table) {
            fill(table, size, modules[i]);
            filled = 1;
        }
    }
    return filled;
}
