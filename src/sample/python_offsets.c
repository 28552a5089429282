/* python_offsets: where the fields are that a reader needs, in the structs of each CPython version.
 * Any thread: constants and pure functions.
 * Must not know how memory is read. */
#include "python_inner.h"

#define NO TARE__PYTHON_NO

/* From the headers of CPython 3.9.18, 3.10.13, 3.11.7 and 3.12.1 on 64-bit Linux (tests/unit/sample_python.c compares
 * them with installed headers). CPython keeps these structs unchanged within a minor version after its release
 * candidates, since they are part of its ABI (PyThreadState, PyCodeObject, PyFrameObject) or are embedded in it. */
static const tare__python_layout layouts[] = {
    {.minor = 9, .table = TARE__PYTHON_LNOTAB,
     .runtime_interpreters = 32, .runtime_gil = 352,
     .interp_next = 0, .interp_threads = 8, .interp_collecting = 816, .interp_gil = NO,
     .gil_holder = 8, .gil_locked = 16,
     .state_next = 8, .state_interp = 16, .state_frame = 24, .state_ident = 176, .state_native = NO,
     .state_chunk = NO, .cframe_current = NO,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104, .frame_owner = NO, .frame_entry = NO,
     .frame_stack = NO, .frame_running = 116,
     .code_name = 112, .code_qualname = NO, .code_file = 104, .code_first_line = 40, .code_lines = 120,
     .code_traceable = NO, .code_start = 48,
     .text_state = 32, .text_length = 16, .text_ascii = 48, .text_compact = 72, .text_kind_shift = 2,
     .bytes_size = 16, .bytes_data = 32, .object_type = 8, .object_size = NO,
     .state_bytes = 184, .frame_bytes = 120, .code_bytes = 128},
    {.minor = 10, .table = TARE__PYTHON_LINETABLE,
     .runtime_interpreters = 32, .runtime_gil = 352,
     .interp_next = 0, .interp_threads = 8, .interp_collecting = 816, .interp_gil = NO,
     .gil_holder = 8, .gil_locked = 16,
     .state_next = 8, .state_interp = 16, .state_frame = 24, .state_ident = 176, .state_native = NO,
     .state_chunk = NO, .cframe_current = NO,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 96, .frame_owner = NO, .frame_entry = NO,
     .frame_stack = NO, .frame_running = 108,
     .code_name = 112, .code_qualname = NO, .code_file = 104, .code_first_line = 40, .code_lines = 120,
     .code_traceable = NO, .code_start = 48,
     .text_state = 32, .text_length = 16, .text_ascii = 48, .text_compact = 72, .text_kind_shift = 2,
     .bytes_size = 16, .bytes_data = 32, .object_type = 8, .object_size = NO,
     .state_bytes = 184, .frame_bytes = 112, .code_bytes = 128},
    {.minor = 11, .table = TARE__PYTHON_LOCATIONS,
     .runtime_interpreters = 40, .runtime_gil = 360,
     .interp_next = 0, .interp_threads = 16, .interp_collecting = 848, .interp_gil = NO,
     .gil_holder = 8, .gil_locked = 16,
     .state_next = 8, .state_interp = 16, .state_frame = 56, .state_ident = 152, .state_native = 160,
     .state_chunk = 296, .cframe_current = 8,
     .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69, .frame_entry = 68,
     .frame_stack = 64, .frame_running = NO,
     .code_name = 120, .code_qualname = 128, .code_file = 112, .code_first_line = 72, .code_lines = 136,
     .code_traceable = 168, .code_start = 184,
     .text_state = 32, .text_length = 16, .text_ascii = 48, .text_compact = 72, .text_kind_shift = 2,
     .bytes_size = 16, .bytes_data = 32, .object_type = 8, .object_size = 16,
     .state_bytes = 312, .frame_bytes = 72, .code_bytes = 172},
    {.minor = 12, .table = TARE__PYTHON_LOCATIONS,
     .runtime_interpreters = 40, .runtime_gil = NO,
     .interp_next = 0, .interp_threads = 72, .interp_collecting = 312, .interp_gil = 384,
     .gil_holder = 8, .gil_locked = 16,
     .state_next = 8, .state_interp = 16, .state_frame = 56, .state_ident = 136, .state_native = 144,
     .state_chunk = 232, .cframe_current = 0,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .frame_entry = NO,
     .frame_stack = 64, .frame_running = NO,
     .code_name = 120, .code_qualname = 128, .code_file = 112, .code_first_line = 68, .code_lines = 136,
     .code_traceable = 176, .code_start = 192,
     .text_state = 32, .text_length = 16, .text_ascii = 40, .text_compact = 56, .text_kind_shift = 2,
     .bytes_size = 16, .bytes_data = 32, .object_type = 8, .object_size = 16,
     .state_bytes = 248, .frame_bytes = 72, .code_bytes = 180},
};

const tare__python_layout *tare__python_layout_of(uint32_t minor)
{
    for (size_t i = 0; i < TARE__COUNT_OF(layouts); i++)
        if (layouts[i].minor == minor)
            return &layouts[i];
    return NULL;
}

/* ---- _Py_DebugOffsets: 8-byte numbers in groups, each group begins with the size of its struct  */
typedef enum place {
    RUNTIME_HEAD, INTERP_NEXT, INTERP_THREADS, INTERP_GC, INTERP_GIL, INTERP_OWN_GIL, INTERP_LOCKED, INTERP_HOLDER,
    STATE_NEXT, STATE_INTERP, STATE_FRAME, STATE_IDENT, STATE_NATIVE, STATE_CHUNK,
    FRAME_PREVIOUS, FRAME_CODE, FRAME_INSTRUCTION, FRAME_OWNER, FRAME_LOCALS,
    CODE_FILE, CODE_NAME, CODE_QUALNAME, CODE_LINES, CODE_FIRST_LINE, CODE_START,
    OBJECT_TYPE, BYTES_SIZE, BYTES_DATA, TEXT_STATE, TEXT_LENGTH, GC_COLLECTING, PLACES,
} place;

/* Number of the group's size and of the field, counted in 8-byte numbers from the start; the field's bytes. */
typedef struct field {
    uint8_t size, at, bytes;
} field;

/* Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of 3.14. */
static const field fields_313[PLACES] = {
    [RUNTIME_HEAD] = {3, 5, 8},
    [INTERP_NEXT] = {6, 8, 8}, [INTERP_THREADS] = {6, 9, 8}, [INTERP_GC] = {6, 10, 8}, [INTERP_GIL] = {6, 14, 8},
    [INTERP_OWN_GIL] = {6, 15, 8}, [INTERP_LOCKED] = {6, 17, 4}, [INTERP_HOLDER] = {6, 18, 8},
    [STATE_NEXT] = {19, 21, 8}, [STATE_INTERP] = {19, 22, 8}, [STATE_FRAME] = {19, 23, 8}, [STATE_IDENT] = {19, 24, 8},
    [STATE_NATIVE] = {19, 25, 8}, [STATE_CHUNK] = {19, 26, 16},
    [FRAME_PREVIOUS] = {28, 29, 8}, [FRAME_CODE] = {28, 30, 8}, [FRAME_INSTRUCTION] = {28, 31, 8},
    [FRAME_LOCALS] = {28, 32, 8}, [FRAME_OWNER] = {28, 33, 1},
    [CODE_FILE] = {34, 35, 8}, [CODE_NAME] = {34, 36, 8}, [CODE_QUALNAME] = {34, 37, 8}, [CODE_LINES] = {34, 38, 8},
    [CODE_FIRST_LINE] = {34, 39, 4}, [CODE_START] = {34, 43, 1},
    [OBJECT_TYPE] = {44, 45, 8}, [BYTES_SIZE] = {64, 65, 8}, [BYTES_DATA] = {64, 66, 1},
    [TEXT_STATE] = {67, 68, 4}, [TEXT_LENGTH] = {67, 69, 8}, [GC_COLLECTING] = {71, 72, 4},
};
static const field fields_314[PLACES] = {
    [RUNTIME_HEAD] = {3, 5, 8},
    [INTERP_NEXT] = {6, 8, 8}, [INTERP_THREADS] = {6, 9, 8}, [INTERP_GC] = {6, 11, 8}, [INTERP_GIL] = {6, 15, 8},
    [INTERP_OWN_GIL] = {6, 16, 8}, [INTERP_LOCKED] = {6, 18, 4}, [INTERP_HOLDER] = {6, 19, 8},
    [STATE_NEXT] = {22, 24, 8}, [STATE_INTERP] = {22, 25, 8}, [STATE_FRAME] = {22, 26, 8}, [STATE_IDENT] = {22, 27, 8},
    [STATE_NATIVE] = {22, 28, 8}, [STATE_CHUNK] = {22, 29, 16},
    [FRAME_PREVIOUS] = {31, 32, 8}, [FRAME_CODE] = {31, 33, 8}, [FRAME_INSTRUCTION] = {31, 34, 8},
    [FRAME_LOCALS] = {31, 35, 8}, [FRAME_OWNER] = {31, 36, 1},
    [CODE_FILE] = {39, 40, 8}, [CODE_NAME] = {39, 41, 8}, [CODE_QUALNAME] = {39, 42, 8}, [CODE_LINES] = {39, 43, 8},
    [CODE_FIRST_LINE] = {39, 44, 4}, [CODE_START] = {39, 48, 1},
    [OBJECT_TYPE] = {50, 51, 8}, [BYTES_SIZE] = {74, 75, 8}, [BYTES_DATA] = {74, 76, 1},
    [TEXT_STATE] = {77, 78, 4}, [TEXT_LENGTH] = {77, 79, 8}, [GC_COLLECTING] = {81, 82, 4},
};

static uint64_t number_at(const unsigned char *offsets, size_t number)
{
    return tare__python_u64(offsets + 8 * number);
}

/* The largest struct sizes that are plausible, by the first field of each group. */
static uint64_t size_max(place which)
{
    return which <= INTERP_HOLDER ? UINT64_C(16) << 20 : which <= STATE_CHUNK ? 64u << 10 : 4096;
}

static bool read_fields(const unsigned char *offsets, const field *fields, uint32_t out[PLACES])
{
    for (place which = 0; which < PLACES; which++) {
        const field *at = &fields[which];
        uint64_t size = number_at(offsets, at->size), offset = number_at(offsets, at->at);
        if (size > size_max(which) || at->bytes > size || offset > size - at->bytes ||
            offset % (at->bytes == 16 ? 8 : at->bytes) != 0)
            return false;
        out[which] = (uint32_t)offset;
    }
    return true;
}

static uint32_t end_of(const uint32_t *at, const place *places, size_t n, uint32_t bytes)
{
    uint32_t end = 0;
    for (size_t i = 0; i < n; i++)
        if (at[places[i]] + bytes > end)
            end = at[places[i]] + bytes;
    return end;
}

static bool fill(tare__python_layout *out, const uint32_t *at, uint64_t ascii_size)
{
    static const place state[] = {STATE_NEXT, STATE_INTERP, STATE_FRAME, STATE_IDENT, STATE_NATIVE};
    /* The last two are of the start of every code object: its type and its size. */
    static const place code[] = {CODE_FILE, CODE_NAME, CODE_QUALNAME, CODE_LINES, CODE_FIRST_LINE, OBJECT_TYPE,
                                 BYTES_SIZE};
    static const place frame[] = {FRAME_PREVIOUS, FRAME_CODE, FRAME_INSTRUCTION};
    bool split_code = out->free_threaded && out->minor > 13; /* each thread has its copy of the code */
    *out = (tare__python_layout){
        .minor = out->minor, .free_threaded = out->free_threaded, .tagged = out->minor >= 14,
        .table = TARE__PYTHON_LOCATIONS,
        .runtime_interpreters = at[RUNTIME_HEAD], .runtime_gil = NO,
        .interp_next = at[INTERP_NEXT], .interp_threads = at[INTERP_THREADS],
        .interp_collecting = at[INTERP_GC] + at[GC_COLLECTING], .interp_gil = at[INTERP_GIL],
        /* These two are published as offsets in PyInterpreterState, where the GIL may be embedded. */
        .gil_holder = at[INTERP_HOLDER] - at[INTERP_OWN_GIL], .gil_locked = at[INTERP_LOCKED] - at[INTERP_OWN_GIL],
        .state_next = at[STATE_NEXT], .state_interp = at[STATE_INTERP], .state_frame = at[STATE_FRAME],
        .state_ident = at[STATE_IDENT], .state_native = at[STATE_NATIVE], .state_chunk = at[STATE_CHUNK],
        .cframe_current = NO,
        .frame_code = at[FRAME_CODE], .frame_previous = at[FRAME_PREVIOUS],
        .frame_instruction = at[FRAME_INSTRUCTION], .frame_owner = at[FRAME_OWNER], .frame_entry = NO,
        .frame_stack = NO, .frame_running = NO,
        .code_name = at[CODE_NAME], .code_qualname = at[CODE_QUALNAME], .code_file = at[CODE_FILE],
        .code_first_line = at[CODE_FIRST_LINE], .code_lines = at[CODE_LINES], .code_start = at[CODE_START],
        /* `int _co_firsttraceable; void *co_extra;` come before the code; free-threaded 3.14: co_tlbc too. */
        .code_traceable = at[CODE_START] < 32 ? NO : (at[CODE_START] & ~7u) - (split_code ? 24 : 16),
        .text_state = at[TEXT_STATE], .text_length = at[TEXT_LENGTH], .text_ascii = (uint32_t)ascii_size,
        .text_compact = (uint32_t)ascii_size + 16, /* char *utf8; Py_ssize_t utf8_length; */
        .text_kind_shift = split_code ? 8 : 2, /* `interned` is a byte of its own there */
        .bytes_size = at[BYTES_SIZE], .bytes_data = at[BYTES_DATA], .object_type = at[OBJECT_TYPE],
        .object_size = at[BYTES_SIZE], /* of any variable-size object */
    };
    out->state_bytes = end_of(at, state, TARE__COUNT_OF(state), 8);
    if (out->state_chunk + 16 > out->state_bytes)
        out->state_bytes = out->state_chunk + 16;
    out->frame_bytes = end_of(at, frame, TARE__COUNT_OF(frame), 8);
    if (out->frame_owner + 1 > out->frame_bytes)
        out->frame_bytes = out->frame_owner + 1;
    /* 3.13: `int stacktop` follows instr_ptr. */
    if (out->minor == 13 && !out->free_threaded && out->frame_owner == out->frame_instruction + 14)
        out->frame_stack = out->frame_instruction + 8;
    out->code_bytes = end_of(at, code, TARE__COUNT_OF(code), 8);
    if (out->code_traceable != NO && out->code_traceable + 4 > out->code_bytes)
        out->code_bytes = out->code_traceable + 4;
    return out->state_bytes <= TARE__PYTHON_STATE_BYTES && out->frame_bytes <= TARE__PYTHON_FRAME_BYTES &&
           out->code_bytes <= TARE__PYTHON_CODE_BYTES && out->gil_holder <= 256 && out->gil_locked <= 256 &&
           ascii_size >= 24 && ascii_size <= 256 && out->text_state + 4 <= ascii_size &&
           out->text_length + 8 <= ascii_size && out->bytes_data >= 16 && out->bytes_data <= 256 &&
           out->bytes_size + 8 <= out->bytes_data;
}

int tare__python_layout_read(const unsigned char *offsets, tare__python_layout *layout, uint32_t *version,
                             tare__error *error)
{
    if (memcmp(offsets, "xdebugpy", 8) != 0)
        return tare__fail(error, TARE_E_INPUT, "CPython's table of offsets does not start with its cookie");
    uint64_t hex = number_at(offsets, 1), free_threaded = number_at(offsets, 2);
    uint32_t minor = hex >> 16 & 0xff;
    if (hex >> 24 != 3 || (minor != 13 && minor != 14))
        return tare__fail(error, TARE_E_VERSION, "stacks of Python %u.%u are not supported (3.9 to 3.14 are)",
                          (unsigned)(hex >> 24 & 0xff), (unsigned)minor);
    uint32_t at[PLACES];
    *layout = (tare__python_layout){.minor = minor, .free_threaded = free_threaded != 0};
    const field *fields = minor == 13 ? fields_313 : fields_314;
    uint64_t ascii_size = number_at(offsets, fields[TEXT_LENGTH].at + 1u);
    if (free_threaded > 1 || !read_fields(offsets, fields, at) || !fill(layout, at, ascii_size))
        return tare__fail(error, TARE_E_INPUT, "CPython's table of offsets (3.%u) has values that are not plausible",
                          (unsigned)minor);
    *version = (uint32_t)hex;
    return 0;
}
