/* Tests of what counts as code of the program in sampled stacks, and of imports: figures by hand on known samples.
 * One thread.
 * Must not know how the analysis works. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"
#include "stacks_builder.h"

#define APP "/home/user/app/"
#define LIB "/usr/lib/python3.12/"
#define SITE "/home/user/app/.venv/lib/python3.12/site-packages/"
#define IS_MS(value, expected) NEAR((value) / 1e6, expected)

static builder *b;
static stacks_builder s;
static uint32_t main_thread;
static const char importlib[] = "<frozen importlib._bootstrap>";

static void begin(void)
{
    b = build_single();
    s = stacks_start(b);
    main_thread = stacks_thread(&s, 77, 77, 5, "MainThread");
}

static tare__analysis *finish(void)
{
    stacks_done(&s);
    build_end(b, BUILD_START + 2 * 1000 * MS);
    return analyze(b);
}

static void samples(uint32_t stack, int n)
{
    stacks_samples(&s, main_thread, stack, TARE__STATE_RUNNING, n);
}

static const tare__package_row *package_at(const tare__analysis *of, const char *name)
{
    for (size_t i = 0; i < of->n_packages; i++)
        if (strcmp(of->packages[i].package, name) == 0)
            return &of->packages[i];
    fail_msg("no package %s", name);
    return NULL;
}

/* Of lines of own code: 0 where there is no such line. */
static double own_ns(const tare__analysis *of, const char *file, uint32_t line)
{
    for (size_t i = 0; i < of->n_lines; i++)
        if (of->lines[i].own && of->lines[i].line == line && strcmp(of->lines[i].file, file) == 0)
            return of->lines[i].own_ns;
    return 0;
}

/* ---- imports ------------------------------------------------------------------------------------------------- */
static uint32_t import(uint32_t caller, const char *file)
{
    uint32_t finds = stacks_python(&s, caller, "_find_and_load", importlib, 1176);
    uint32_t calls = stacks_python(&s, finds, "_call_with_frames_removed", importlib, 241);
    return stacks_python(&s, calls, "<module>", file, 5);
}

static const tare__sampled_import_row *import_of(const tare__analysis *of, const char *module)
{
    for (size_t i = 0; i < of->n_sampled_imports; i++)
        if (strcmp(of->sampled_imports[i].module, module) == 0)
            return &of->sampled_imports[i];
    fail_msg("no import of %s", module);
    return NULL;
}

/* app.py imports pandas, which imports numpy and works; numpy calls a function of its own. */
static void imports_by_module(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "app.py", 1);
    uint32_t finds = stacks_python(&s, module, "_find_and_load", importlib, 1176);
    uint32_t loads = stacks_python(&s, finds, "_call_with_frames_removed", importlib, 241);
    uint32_t pandas = stacks_python(&s, loads, "<module>", SITE "pandas/__init__.py", 10);
    uint32_t inner = stacks_python(&s, pandas, "_find_and_load", importlib, 1176);
    uint32_t calls = stacks_python(&s, inner, "_call_with_frames_removed", importlib, 241);
    uint32_t numpy = stacks_python(&s, calls, "<module>", SITE "numpy/core/multi.py", 5);
    uint32_t helper = stacks_python(&s, numpy, "helper", SITE "numpy/core/multi.py", 50);
    uint32_t own = stacks_python(&s, loads, "<module>", APP "mylib/__init__.py", 3);
    stacks_samples(&s, main_thread, finds, TARE__STATE_RUNNING, 5); /* finding pandas: of no module yet */
    stacks_samples(&s, main_thread, pandas, TARE__STATE_RUNNING, 20);
    stacks_samples(&s, main_thread, inner, TARE__STATE_DISK, 7); /* finding numpy */
    stacks_samples(&s, main_thread, numpy, TARE__STATE_RUNNING, 30);
    stacks_samples(&s, main_thread, helper, TARE__STATE_RUNNING, 10);
    stacks_samples(&s, main_thread, own, TARE__STATE_RUNNING, 2);
    tare__analysis *of = finish();
    assert_int_equal(of->n_sampled_imports, 3); /* the program itself is no import */
    IS_MS(import_of(of, "pandas")->self_ns, 270);
    IS_MS(import_of(of, "pandas")->total_ns, 670);
    assert_string_equal(import_of(of, "pandas")->package, "pandas");
    IS_MS(import_of(of, "numpy.core.multi")->self_ns, 400);
    IS_MS(import_of(of, "numpy.core.multi")->total_ns, 400);
    assert_int_equal(import_of(of, "numpy.core.multi")->samples, 40);
    IS_MS(import_of(of, "mylib")->total_ns, 20);
    done(b, of);
}

/* torch imports torch.nn, and numpy, which imports torch.utils; later torch._dynamo is imported alone. Of http, only a
 * submodule was seen. */
static void imports_of_a_package_count_once(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "app.py", 1);
    uint32_t torch = import(module, SITE "torch/__init__.py");
    uint32_t nn = import(torch, SITE "torch/nn/__init__.py");
    uint32_t numpy = import(torch, SITE "numpy/__init__.py");
    uint32_t utils = import(numpy, SITE "torch/utils.py");
    uint32_t later = import(stacks_python(&s, 0, "<module>", APP "app.py", 9), SITE "torch/_dynamo/__init__.py");
    uint32_t http = import(module, LIB "http/client.py"), other = import(module, SITE "torchvision/__init__.py");
    stacks_samples(&s, main_thread, torch, TARE__STATE_RUNNING, 10);
    stacks_samples(&s, main_thread, nn, TARE__STATE_RUNNING, 20);
    stacks_samples(&s, main_thread, utils, TARE__STATE_RUNNING, 5);
    stacks_samples(&s, main_thread, later, TARE__STATE_RUNNING, 40);
    stacks_samples(&s, main_thread, http, TARE__STATE_RUNNING, 7);
    stacks_samples(&s, main_thread, other, TARE__STATE_RUNNING, 3);
    tare__analysis *of = finish();
    IS_MS(import_of(of, "torch")->outer_ns, 350);
    IS_MS(import_of(of, "torch.nn")->outer_ns, 0);
    IS_MS(import_of(of, "torch.nn")->total_ns, 200);
    IS_MS(import_of(of, "numpy")->outer_ns, 50);
    IS_MS(import_of(of, "torch.utils")->outer_ns, 0);
    IS_MS(import_of(of, "torch._dynamo")->outer_ns, 400);
    IS_MS(import_of(of, "http.client")->outer_ns, 70);
    IS_MS(import_of(of, "torchvision")->outer_ns, 30);
    done(b, of);
}

/* Wherever the standard library is. */
static void modules_by_path(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/usr/lib64/python3.11/json/decoder.py", "json.decoder"},
        {"/usr/lib/python3.13t/concurrent/futures/__init__.py", "concurrent.futures"},
        {"/usr/lib/python312.zip/email/parser.py", "email.parser"},
        {"/usr/lib/python3/dist-packages/apt/cache.py", "apt.cache"},
        {"/src/python/tare/torch/_forward.py", "tare.torch._forward"},
    };
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "app.py", 1);
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++)
        samples(import(module, cases[i][0]), 1);
    tare__analysis *of = finish();
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++)
        assert_string_equal(import_of(of, cases[i][1])->file, cases[i][0]);
    done(b, of);
}

/* ---- code without a file ------------------------------------------------------------------------------------- */
/* A .pth file is executed as "<string>", like code of the program, and may execute more. */
static void lines_of_pth_files_are_not_own_code(void **state)
{
    (void)state;
    begin();
    uint32_t site = stacks_python(&s, 0, "addpackage", "<frozen site>", 186);
    uint32_t pth = stacks_python(&s, site, "<module>", "<string>", 1);
    uint32_t inner = stacks_python(&s, pth, "<module>", "<string>", 2);
    uint32_t program = stacks_python(&s, 0, "<module>", "<string>", 1);
    stacks_samples(&s, main_thread, pth, TARE__STATE_RUNNING, 10);
    stacks_samples(&s, main_thread, inner, TARE__STATE_RUNNING, 20);
    stacks_samples(&s, main_thread, program, TARE__STATE_RUNNING, 40);
    tare__analysis *of = finish();
    double own = 0, others = 0;
    for (size_t i = 0; i < of->n_lines; i++)
        if (of->lines[i].file && strcmp(of->lines[i].file, "<string>") == 0)
            *(of->lines[i].own ? &own : &others) += of->lines[i].self_ns;
    IS_MS(own, 400);
    IS_MS(others, 300);
    IS_MS(package_at(of, "your code")->self_ns, 400);
    IS_MS(package_at(of, "site")->self_ns, 300);
    done(b, of);
}


/* Methods of a dataclass and a named tuple, a library's use of exec(), attrs; and what the program itself executes. */
static void code_that_libraries_write_belongs_to_its_caller(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "app.py", 1);
    uint32_t load = stacks_python(&s, module, "load", APP "app.py", 20);
    uint32_t library = stacks_python(&s, load, "read", LIB "csv.py", 100);
    samples(stacks_python(&s, module, "__create_fn__.<locals>.__init__", "<string>", 3), 10);
    samples(stacks_python(&s, module, "<lambda>", "<string>", 1), 5);
    samples(stacks_python(&s, library, "<module>", "<string>", 7), 20);
    samples(stacks_python(&s, stacks_python(&s, library, "<module>", "<string>", 7), "f", "<string>", 8), 1);
    samples(stacks_python(&s, module, "C.__init__", "<attrs generated init app.C>", 3), 2);
    uint32_t text = stacks_python(&s, module, "<module>", "<string>", 40);
    samples(text, 3);
    samples(stacks_python(&s, text, "work", "<string>", 41), 30);
    tare__analysis *of = finish();
    IS_MS(own_ns(of, APP "app.py", 1), 170);
    IS_MS(own_ns(of, APP "app.py", 20), 210);
    IS_MS(own_ns(of, "<string>", 40), 30);
    IS_MS(own_ns(of, "<string>", 41), 300);
    IS_MS(package_at(of, "your code")->self_ns, 500);
    IS_MS(package_at(of, "csv")->self_ns, 210);
    for (size_t i = 0; i < of->n_lines; i++)
        assert_true(!of->lines[i].own || strcmp(of->lines[i].file, APP "app.py") == 0 || of->lines[i].line >= 40);
    done(b, of);
}

/* python -c, with a thread: what a library calls is the program's. */
static void the_program_may_be_a_text(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", "<string>", 5);
    uint32_t thread = stacks_python(&s, 0, "Thread._bootstrap", LIB "threading.py", 1000);
    samples(module, 5);
    samples(stacks_python(&s, thread, "work", "<string>", 2), 30);
    tare__analysis *of = finish();
    IS_MS(own_ns(of, "<string>", 5), 50);
    IS_MS(own_ns(of, "<string>", 2), 300);
    done(b, of);
}

/* Several texts, each with a line 3: a row for each function, with its comprehensions. */
static void lines_of_texts_belong_to_functions(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", "<string>", 5);
    uint32_t f = stacks_frame(&s, module, TARE__FRAME_PYTHON, "f", "<string>", 1, 3);
    samples(f, 10);
    samples(stacks_frame(&s, module, TARE__FRAME_PYTHON, "g", "<string>", 1, 3), 20);
    samples(stacks_frame(&s, f, TARE__FRAME_PYTHON, "f.<locals>.<listcomp>", "<string>", 3, 3), 40);
    tare__analysis *of = finish();
    uint64_t found[2] = {0};
    for (uint64_t i = 0; i < of->n_lines; i++)
        if (of->lines[i].line == 3) {
            assert_true(strcmp(of->lines[i].function, "f") == 0 || strcmp(of->lines[i].function, "g") == 0);
            found[of->lines[i].function[0] == 'g'] += of->lines[i].own_ns;
        }
    IS_MS(found[0], 500);
    IS_MS(found[1], 200);
    assert_int_equal(of->n_lines, 3);
    done(b, of);
}

/* python -c "from multiprocessing.spawn import spawn_main; ...": the worker's own code is what it calls. */
static void the_command_of_a_worker_is_no_code_of_the_program(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", "<string>", 1);
    uint32_t spawn = stacks_python(&s, module, "spawn_main", LIB "multiprocessing/spawn.py", 120);
    samples(stacks_python(&s, spawn, "Connection.recv", LIB "multiprocessing/connection.py", 250), 30);
    samples(stacks_python(&s, spawn, "work", APP "app.py", 7), 20);
    tare__analysis *of = finish();
    IS_MS(own_ns(of, "<string>", 1), 0);
    IS_MS(own_ns(of, APP "app.py", 7), 200);
    done(b, of);
}

/* The interpreter collects garbage after the program has ended. */
static void time_outside_of_the_program(void **state)
{
    (void)state;
    begin();
    uint32_t other = stacks_thread(&s, 77, 78, 5, "other");
    uint32_t library = stacks_python(&s, 0, "_exitfunc", LIB "weakref.py", 660);
    uint32_t collects = stacks_frame(&s, 0, TARE__FRAME_NOTE, "garbage collection", "", 0, 0);
    samples(stacks_python(&s, 0, "<module>", APP "app.py", 1), 60);
    samples(collects, 30);
    samples(library, 10);
    stacks_samples(&s, other, library, TARE__STATE_LOCK, 50);
    tare__analysis *of = finish();
    const tare__line_row *outside = &of->stacks.outside;
    IS_MS(outside->main_ns, 400);
    NEAR(outside->main_share, 0.4);
    IS_MS(outside->main.ns[TARE__STATE_RUNNING], 400);
    assert_string_equal(outside->inner, "garbage collection");
    IS_MS(outside->inner_ns, 300);
    done(b, of);
}

/* A line of a report has no room for types: they would hide the name. */
static void names_of_c_plus_plus_functions(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"unsigned long partition_unrolled<zmm_vector<double>, Comparator<double, false>, 8>(double*, unsigned long)",
         "partition_unrolled"},
        {"void np::qsort_simd::QSort<short>(short*, long)", "np::qsort_simd::QSort"},
        {"at::native::(anonymous namespace)::copy_kernel(at::TensorIterator&, bool)",
         "at::native::(anonymous namespace)::copy_kernel"},
        {"(anonymous namespace)::run(int) [clone .isra.0]", "(anonymous namespace)::run"},
        {"std::ostream& operator<< <char>(std::ostream&, char)", "operator<<"},
        {"bool ns::operator<(A const&, A const&)", "ns::operator<"},
        {"ns::A::operator unsigned long() const", "ns::A::operator unsigned long"},
        {"std::vector<int, std::allocator<int> >::~vector()", "std::vector::~vector"},
        {"f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda}::operator()"},
        {"A::g() const &", "A::g"},
        {"decltype(auto) h<&(A::g)>(A->*)", "h"},
        {"<module>", "<module>"},
        {"f.<locals>.<lambda>", "f.<locals>.<lambda>"},
        {"(no stack)", "(no stack)"},
        {"<alloc::vec::Vec<T> as Clone>::clone", "<alloc::vec::Vec<T> as Clone>::clone"},
        {"memcpy", "memcpy"},
        {"f(", "f"},
        {"x (", "x"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char out[200], small[4];
        assert_string_equal(tare__short_function(names[i][0], out, sizeof out), names[i][1]);
        assert_non_null(tare__short_function(names[i][0], small, sizeof small));
    }
}

/* Files of code that a program executes itself may have a relative name. */
static void relative_names_keep_their_folders(void **state)
{
    (void)state;
    tare__analysis of = {.run.directory = "/srv/app"};
    assert_string_equal(tare__source_name(&of, "pkg/__main__.py"), "pkg/__main__.py");
    assert_string_equal(tare__source_name(&of, "./train.py"), "train.py");
    assert_string_equal(tare__source_name(&of, "/srv/app/pkg/a.py"), "pkg/a.py");
    assert_string_equal(tare__source_name(&of, "/elsewhere/pkg/a.py"), "a.py");
    assert_string_equal(tare__source_name(&of, "<frozen importlib._bootstrap>"), "<frozen importlib._bootstrap>");
    assert_string_equal(tare__source_name(&of, "../src/lib.c"), "lib.c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imports_by_module),
        cmocka_unit_test(imports_of_a_package_count_once),
        cmocka_unit_test(modules_by_path),
        cmocka_unit_test(lines_of_pth_files_are_not_own_code),
        cmocka_unit_test(code_that_libraries_write_belongs_to_its_caller),
        cmocka_unit_test(the_program_may_be_a_text),
        cmocka_unit_test(lines_of_texts_belong_to_functions),
        cmocka_unit_test(the_command_of_a_worker_is_no_code_of_the_program),
        cmocka_unit_test(time_outside_of_the_program),
        cmocka_unit_test(names_of_c_plus_plus_functions),
        cmocka_unit_test(relative_names_keep_their_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
